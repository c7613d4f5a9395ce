package infer_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// typing is a program that calculates with y as float64, and counts what it converts.
type typing struct {
	infer.Program
	converted int
}

func (p *typing) ConvertBatch(b infer.Batch) (infer.Batch, error) {
	p.converted++
	out := maps.Clone(b)
	var err error
	out["y"], err = torch.To(b["y"], torch.CPU, gotch.Double)
	return out, err
}

// counting gives the same data again and again, and counts how often.
type counting struct {
	infer.Batches
	given int
}

func (c *counting) Next() (infer.Batch, error) {
	c.given++
	return c.Batches.Next()
}

// Data that a run makes minibatches of are converted once, and a batch of the user's once, however often it is
// evaluated; what is changed in place between runs and updates is seen. A checkpoint that was made without conversions
// goes on with them: it is of the same data.
func TestBatchesAreConvertedOnce(t *testing.T) {
	var types []gotch.DType // of y, in each evaluation
	evaluated := 0          // of them, in updates
	mean := 0.0
	target := infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		types = append(types, b["y"].T().DType())
		y := b.Get("y").Mean()
		mean = torch.Of(y.T().MustDetach(false).MustTotype(gotch.Double, false)).Item()
		return p.Get("theta").Sub(y).Square().Sum().Mul(-0.5), nil
	}, 6)
	l := torch.Must(infer.NewLayout(infer.Shapes{"theta": {}}))
	start := torch.Must(infer.NewParams(l, []float64{0.5}))
	y := torch.New([]float32{1, 2, 3, 4, 5, 6})
	data := infer.Batch{"y": y}
	handwritten := infer.Handwritten(target, start, data)
	minibatches := func() infer.Batches {
		return torch.Must(infer.Minibatches(data, infer.MinibatchOptions{Size: 2}))
	}
	sgld := sgmcmc.SGLD{LR: infer.Constant(0.01)}
	run := func(p infer.Program, b infer.Batches, draws int, c *infer.Checkpoint) {
		t.Helper()
		types = nil
		_, err := infer.Run(context.Background(), p, sgld, infer.Options{Batches: b, Chains: 1, Warmup: 2, Draws: draws,
			Native: "eager", Checkpoint: c, DependentRows: true,
			Observer: infer.ObserverFunc(func(infer.Progress) { evaluated = len(types) })})
		require.NoError(t, err)
	}
	for _, b := range []infer.Batches{minibatches(), infer.Full(data)} {
		p := &typing{Program: handwritten}
		run(p, b, 40, nil)
		require.Equal(t, 1, p.converted)
		require.Greater(t, evaluated, 40)
		require.NotContains(t, types[:evaluated], gotch.Float)
	}
	p, b := &typing{Program: handwritten}, &counting{Batches: minibatches()}
	run(p, b, 40, nil)
	require.Equal(t, b.given+1, p.converted, "and the data of the program")
	require.NotContains(t, types[:evaluated], gotch.Float)

	full := infer.Full(data)
	_, err := infer.Run(context.Background(), &typing{Program: handwritten}, sgld, infer.Options{Batches: full, Chains: 1,
		Warmup: 2, Draws: 4, Observer: infer.ObserverFunc(func(p infer.Progress) {
			if p.Step == 3 {
				y.T().MustFill_(ts.FloatScalar(8))
			}
		})})
	require.NoError(t, err)
	require.Equal(t, 8.0, mean)

	dir := t.TempDir()
	run(handwritten, minibatches(), 4, &infer.Checkpoint{Dir: dir})
	run(&typing{Program: handwritten}, minibatches(), 8, &infer.Checkpoint{Dir: dir, Resume: true})
}
