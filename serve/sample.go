package serve

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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

// Sample draws from the posterior of a model by the kernel of the options, NUTS (the default) or HMC. Chains run at the
// same time. They start where [Model.Start] says, unless Init says otherwise. With a Record it sees each transition
// first. Where the context ends a run, the draws so far come with the error. A Ladder and a Resume are refused: call
// [kernel.Run] with the model for them.
func Sample(ctx context.Context, m *Model, o kernel.Options) (*Result, error) {
	if m == nil || m.density == nil {
		return nil, errors.New("serve.Sample: there is no model: Load makes one")
	}
	method := "hmc.NUTS"
	switch o.Kernel.(type) {
	case nil, kernel.NUTS:
	case kernel.HMC:
		method = "hmc.HMC"
	default:
		return nil, fmt.Errorf("serve.Sample: the kernel is a %T: NUTS and HMC are for Sample; call kernel.Run with "+
			"the model", o.Kernel)
	}
	if o.Ladder != nil || o.Resume != nil {
		return nil, errors.New("serve.Sample: a Ladder and a Resume are not for Sample: call kernel.Run with the model")
	}
	if o.Chains == 0 {
		o.Chains = 4
	}
	if err := o.Check(m.Dim()); err != nil {
		return nil, fmt.Errorf("serve.Sample: %w", err)
	}
	if o.Init == nil {
		for k := range o.Chains {
			x, err := m.Start(o.Seed, o.FirstChain+uint64(k))
			if err != nil {
				return nil, fmt.Errorf("serve.Sample: %w", err)
			}
			o.Init = append(o.Init, x)
		}
	}
	d, err := draws.New(m.file.Sites, stats, o.Chains)
	if err != nil {
		return nil, fmt.Errorf("serve.Sample: %w", err)
	}
	attributes(d, method, o)
	record := o.Record
	o.Record = func(chain, draw int, x []float64, i kernel.Info) error {
		if record != nil {
			if err := record(chain, draw, x, i); err != nil {
				return err
			}
		}
		if i.Warmup {
			return nil
		}
		return d.AppendChain(chain, x, []float64{i.LogP, i.Accept, i.StepSize, float64(i.Depth), float64(i.Leapfrogs),
			flag(i.Divergent), i.Energy, flag(i.MaxDepth)})
	}
	detail, err := kernel.Run(ctx, m, o)
	if err != nil {
		err = fmt.Errorf("serve.Sample: %w", err)
	}
	named, failed := m.Draws(d)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return &Result{Draws: named, Unconstrained: d, Detail: detail}, err
}

// attributes say what made the draws, as those of a run with libtorch do.
func attributes(d *draws.Draws, method string, o kernel.Options) {
	d.SetAttr(draws.AttrMethod, method)
	d.SetAttr("gradient", "exported, in Go")
	d.SetAttr("seed", strconv.FormatUint(o.Seed, 10))
	if o.Temperature != 0 {
		d.SetAttr(draws.AttrTemperature, strconv.FormatFloat(o.Temperature, 'g', -1, 64))
	}
	if o.TargetAccept != 0 {
		d.SetAttr("target_accept", strconv.FormatFloat(o.TargetAccept, 'g', -1, 64))
	}
	d.SetSpace(draws.Unconstrained)
}

// Draws maps draws on unconstrained space to draws of the named values. Statistics, attributes and notes are kept.
func (m *Model) Draws(unconstrained *draws.Draws) (*draws.Draws, error) {
	if unconstrained == nil || unconstrained.Dim() != m.Dim() || unconstrained.Space() == draws.Named {
		return nil, fmt.Errorf("serve.Draws: the draws are not of the model's %d parameters on unconstrained space: %w",
			m.Dim(), draws.ErrLayout)
	}
	names := unconstrained.Stats()
	out, err := draws.New(m.file.Values, names, unconstrained.Chains())
	if err != nil {
		return nil, fmt.Errorf("serve.Draws: %w", err)
	}
	for chain := range unconstrained.Chains() {
		columns := make([][]float64, len(names))
		for i, name := range names {
			if columns[i], err = unconstrained.Stat(name, chain); err != nil {
				return nil, fmt.Errorf("serve.Draws: %w", err)
			}
		}
		for k := range unconstrained.Len(chain) {
			values, x := m.Constrain(unconstrained.Row(chain, k)), make([]float64, 0, out.Dim())
			for _, s := range m.file.Values {
				x = append(x, values[s.Name]...)
			}
			row := make([]float64, len(names))
			for i := range row {
				row[i] = columns[i][k]
			}
			if err := out.AppendChain(chain, x, row); err != nil {
				return nil, fmt.Errorf("serve.Draws: %w", err)
			}
		}
	}
	unconstrained.NamedAs(out)
	return out, nil
}
