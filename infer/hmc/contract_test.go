package hmc_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestContract(t *testing.T) {
	normal := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Sub(b.Get("c")).Square().Sum().Mul(-0.5), nil
	}
	infertest.Contract(t, map[string]infer.Method{"NUTS": hmc.NUTS{}, "HMC": hmc.HMC{}, "MAMS": hmc.MAMS{}},
		infertest.Ground{Posterior: infertest.Walled(normal), Layout: infertest.Layout(infer.Shapes{"x": {3}}),
			Batch: infer.Batch{"c": torch.Of(infertest.Vector([]float64{1, 2, 3}))}, Run: infer.Options{Warmup: 20, Draws: 10},
			Together: true})
}
