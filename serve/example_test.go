//go:build cgo

package serve_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
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

// Draws and the design go into the file too, and what reads it predicts for new rows.
func ExampleModel_Predict() {
	table, err := data.NewTable(data.Column{Name: "hours", Numbers: []float64{1, 2, 3, 4}},
		data.Column{Name: "sold", Numbers: []float64{3, 5.5, 7, 9.5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	design, err := data.Spec{Terms: []data.Term{{Column: "hours"}}, Outcome: data.Term{Column: "sold"}}.Fit(table)
	if err != nil {
		fmt.Println(err)
		return
	}
	frame, err := design.Frame(table)
	if err != nil {
		fmt.Println(err)
		return
	}
	tensors, err := batch.Of(frame)
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		a, w := c.Sample("a", dist.Normal(0, 10)), c.Sample("w", dist.Normal(0, 10).Expand(1))
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").MatMul(w).Add(a), 0.5), c.Data("y"))
		})
	}, tensors)
	if err != nil {
		fmt.Println(err)
		return
	}
	posterior, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := program.ExportFitted(&file, posterior, design); err != nil {
		fmt.Println(err)
		return
	}
	model, err := serve.Load(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	y, err := model.Predict(nil, 1, map[string][]float64{"x": {2.5}}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, err := y.Mean("y")
	fmt.Printf("%d predictions, mean %.1f, %v\n", y.Total(), mean[0], err)
	// Output:
	// 4000 predictions, mean 6.2, <nil>
}
