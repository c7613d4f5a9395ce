package models_test

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A regression with more features than data, of which about two are expected to matter.
func ExampleHorseshoe() {
	const data, features = 20, 50
	model := func(c *ppl.Ctx) {
		sigma := c.Sample("sigma", dist.HalfNormal(1))
		global := torch.Must(models.GlobalScale(2, features, sigma, data))
		b := models.Horseshoe{Global: global, Slab: 2}.Sample(c, "b", features)
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").MatMul(b), sigma), c.Data("y"))
		})
	}
	x := torch.New(make([]float64, data*features), data, features)
	y := torch.New(make([]float64, data))
	program, err := ppl.Compile(model, infer.Batch{"x": x, "y": y})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(program.Layout())
	// Output: b_global[] b_local[50] b_raw[50] b_slab[] sigma[]
}
