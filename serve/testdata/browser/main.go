//go:build js && wasm

// Command browser lets a page predict: its functions load and predict are those of the page.
//
//	GOOS=js GOARCH=wasm go build -o browser.wasm ./serve/testdata/browser
package main

import (
	"bytes"
	"syscall/js"

	"github.com/kelvin-ppl/kelvin/serve"
)

func main() {
	var model *serve.Model
	// load takes the bytes of an exported model, and returns an error, empty for none.
	js.Global().Set("load", js.FuncOf(func(_ js.Value, args []js.Value) any {
		file := make([]byte, args[0].Length())
		js.CopyBytesToGo(file, args[0])
		var err error
		if model, err = serve.Load(bytes.NewReader(file)); err != nil {
			return err.Error()
		}
		return ""
	}))
	// predict takes a row of the design, and returns the mean of the prediction.
	js.Global().Set("predict", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var x []float64
		for i := range args[0].Length() {
			x = append(x, args[0].Index(i).Float())
		}
		y, err := model.Predict(nil, 1, map[string][]float64{"x": x}, 3, "y")
		if err != nil {
			return err.Error()
		}
		mean, err := y.Mean("y")
		if err != nil {
			return err.Error()
		}
		return mean[0]
	}))
	select {} // the page calls
}
