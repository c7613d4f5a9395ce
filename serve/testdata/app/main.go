// Command app is a service of one file: the model is in the program. It builds with CGO_ENABLED=0, and without a set-up.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"log"
	"net"

	"github.com/kelvin-ppl/kelvin/serve"
)

//go:embed model.kelvin
var file []byte

func main() {
	model, err := serve.Load(bytes.NewReader(file))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", ":8080")
	if err != nil {
		log.Fatal(err)
	}
	service := serve.Service{Model: model}
	log.Fatal(service.Serve(context.Background(), l))
}
