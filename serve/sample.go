package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// Result is what [Sample] gives.
type Result struct {
	Draws         *draws.Draws   // of the named values
	Unconstrained *draws.Draws   // the same draws on unconstrained space
	Detail        *kernel.Result // metrics, step sizes, gradients, and a snapshot to go on from
}

// stats are the statistics of a draw, those of package infer/hmc.
var stats = []string{draws.StatLP, draws.StatAccept, draws.StatStepSize, draws.StatTreeDepth, draws.StatLeapfrog,
	draws.StatDivergent, draws.StatEnergy, draws.StatMaxDepth}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Sample draws from the posterior of a model by NUTS. Chains run at the same time. They start where [Model.Start]
// says, unless Init says otherwise. A Record sees each transition first. Where the context ends a run, the draws so far
// come with the error. Other kernels, a Ladder and a Resume are for [kernel.Run] with the model.
func Sample(ctx context.Context, m *Model, o kernel.Options) (out *Result, err error) {
	defer wrap("Sample", &err)
	if m == nil || m.density == nil {
		return nil, errors.New("there is no model: Load makes one")
	}
	if _, nuts := o.Kernel.(kernel.NUTS); o.Ladder != nil || o.Resume != nil || o.Kernel != nil && !nuts {
		return nil, errors.New("it is for NUTS without a Ladder or a Resume: call kernel.Run with the model")
	}
	o.Chains = cmp.Or(o.Chains, 4)
	if err := o.Check(m.Dim()); err != nil {
		return nil, err
	}
	if o.Init == nil {
		for k := range o.Chains {
			x, err := m.Start(o.Seed, o.FirstChain+uint64(k))
			if err != nil {
				return nil, err
			}
			o.Init = append(o.Init, x)
		}
	}
	d, err := draws.New(m.file.Sites, stats, o.Chains)
	if err != nil {
		return nil, err
	}
	attributes(d, o)
	record := o.Record
	o.Record = func(chain, draw int, x []float64, i kernel.Info) error {
		var err error
		if record != nil {
			err = record(chain, draw, x, i)
		}
		if err != nil || i.Warmup {
			return err
		}
		return d.AppendChain(chain, x, []float64{i.LogP, i.Accept, i.StepSize, float64(i.Depth), float64(i.Leapfrogs),
			flag(i.Divergent), i.Energy, flag(i.MaxDepth)})
	}
	detail, err := kernel.Run(ctx, m, o)
	named, failed := m.Draws(d)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return &Result{Draws: named, Unconstrained: d, Detail: detail}, err
}

// attributes say what made the draws, as those of a run with libtorch do.
func attributes(d *draws.Draws, o kernel.Options) {
	d.SetAttr(draws.AttrMethod, "hmc.NUTS")
	d.SetAttr("gradient", "exported, in Go")
	d.SetAttr("seed", fmt.Sprint(o.Seed))
	for name, v := range map[string]float64{draws.AttrTemperature: o.Temperature, "target_accept": o.TargetAccept} {
		if v != 0 {
			d.SetAttr(name, fmt.Sprint(v))
		}
	}
	d.SetSpace(draws.Unconstrained)
}

// Draws maps draws on unconstrained space to draws of the named values. Statistics, attributes and notes are kept.
func (m *Model) Draws(unconstrained *draws.Draws) (out *draws.Draws, err error) {
	defer wrap("Draws", &err)
	if unconstrained == nil || unconstrained.Dim() != m.Dim() || unconstrained.Space() == draws.Named {
		return nil, fmt.Errorf("the draws are not of the %d parameters on unconstrained space: %w", m.Dim(), draws.ErrLayout)
	}
	out, err = draws.New(m.values, unconstrained.Stats(), unconstrained.Chains())
	if err != nil {
		return nil, err
	}
	for chain := range unconstrained.Chains() {
		for k := range unconstrained.Len(chain) {
			values, x := m.Constrain(unconstrained.Row(chain, k)), make([]float64, 0, out.Dim())
			for _, s := range m.values {
				x = append(x, values[s.Name]...)
			}
			if err := out.AppendChain(chain, x, unconstrained.StatRow(chain, k)); err != nil {
				return nil, err
			}
		}
	}
	unconstrained.NamedAs(out)
	return out, nil
}
