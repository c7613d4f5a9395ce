//go:build cgo

package serve_test

import (
	"bytes"
	"fmt"

	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/serve"
)

// A model is compiled and exported where libtorch is, and used where it is not.
func Example() {
	schools, err := models.EightSchools()
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := schools.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := program.Export(&file); err != nil {
		fmt.Println(err)
		return
	}
	model, err := serve.Load(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, grad := make([]float64, model.Dim()), make([]float64, model.Dim())
	fmt.Printf("%.3f\n", model.LogDensity(x, grad))
	fmt.Println(model.Names(), model.Constrain(x)["tau"])
	// Output:
	// -43.436
	// [mu tau theta theta_decentred] [1]
}
