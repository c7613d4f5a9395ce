package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// updated is a method, and how many updates of it are compared. Transitions that accept or refuse are few: one that
// turns at a rounding is another one.
type updated struct {
	method  infer.Method
	updates int
}

// everyMethod are those of the library that start from a point, with fixed steps.
func everyMethod() []updated {
	c := infer.Constant
	var list []updated
	for _, m := range []infer.Method{
		optim.SGD{LR: c(1e-4), Momentum: 0.9}, optim.Adam{}, optim.AdamW{}, optim.LBFGS{}, sgmcmc.SGLD{LR: c(1e-4)},
		sgmcmc.PSGLD{LR: c(1e-4)}, sgmcmc.SGLRW{LR: c(1e-4)}, sgmcmc.SGHMC{LR: c(1e-3)},
		sgmcmc.SymplecticSGHMC{LR: c(1e-3)}, sgmcmc.BAOA{LR: c(1e-3)}, sgmcmc.SGNHT{LR: c(1e-3)},
		sgmcmc.ATMC{LR: c(1e-3)}, vi.Diag{}, vi.Dense{}, vi.LowRank{}, svi.SVI{}, laplace.DenseHessian{},
		laplace.DenseFisher{}, laplace.DiagFisher{}, ekf.Dense{}, ekf.Diag{},
	} {
		list = append(list, updated{m, 20})
	}
	step := c(0.01)
	return append(list, updated{hmc.HMC{StepSize: step, KeepMetric: true}, 3},
		updated{hmc.NUTS{StepSize: step, MaxDepth: 4, KeepMetric: true}, 3},
		updated{hmc.Exchange{Ladder: []float64{1, 2, 4}, Kernel: hmc.HMC{StepSize: step, KeepMetric: true}}, 3},
		updated{hmc.MAMS{StepSize: step, KeepMetric: true}, 3}, updated{hmc.MCLMC{StepSize: step}, 3})
}

// methods are the states after updates of every method on a model, three chains of it, in each precision.
func methods(p infer.Program) (list []agreement) {
	for _, u := range everyMethod() {
		for _, c := range []struct {
			precision gotch.DType
			name      string
			tolerance float64
		}{{gotch.Double, "float64", updates}, {gotch.Float, "float32", updates32}} {
			list = append(list, agreement{fmt.Sprintf("infer: %d updates of %T, %s", u.updates, u.method, c.name),
				c.tolerance, func(device gotch.Device) ([]float64, error) { return u.after(p, device, c.precision) }})
		}
	}
	return list
}

// after are the numbers of the state after the updates.
func (u updated) after(p infer.Program, device gotch.Device, precision gotch.DType) ([]float64, error) {
	_, start, batch, err := placed(p, 3, device, precision)
	if err != nil {
		return nil, err
	}
	transform, err := u.method.Build(p.Target())
	if err != nil {
		return nil, err
	}
	state, err := infer.Init(transform, start, 4)
	if err != nil {
		return nil, err
	}
	defer func() { infer.Free(state) }()
	for range u.updates {
		next, _, err := infer.Advance(transform, state, batch)
		if err != nil {
			return nil, err
		}
		state = next
	}
	tensors := state.Save().Tensors
	var numbers []float64
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		x, err := torch.ToSlice[float64](tensors[name])
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, x...)
	}
	return numbers, nil
}
