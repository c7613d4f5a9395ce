package optim_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestContract(t *testing.T) {
	w := newWells()
	infertest.Contract(t, methods(), infertest.Ground{Posterior: infertest.Walled(w.logPosterior), Layout: w.layout,
		Batch: w.batch(), Updates: 30, Run: infer.Options{Warmup: 20, Draws: 4, Thin: 3}, Stops: []int{1, 20, 27}})
}

// A checkpoint of Adam is not one of AdamW, though both have states of one type.
func TestCheckpointsTellAdamFromAdamW(t *testing.T) {
	dir := t.TempDir()
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Flat.Dot(p.Flat).Neg(), nil
	}
	run := func(m infer.Method, resume bool) error {
		transform, err := m.Build(infer.Sum(f, 1))
		require.NoError(t, err)
		layout, err := infer.NewLayout(infer.Shapes{"x": {2}})
		require.NoError(t, err)
		p, err := infer.NewParams(layout, []float64{1, 2})
		require.NoError(t, err)
		_, err = infertest.Run(context.Background(), transform, p, infer.Full(nil),
			infer.Options{Warmup: infer.None, Draws: 3, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: resume}})
		return err
	}
	require.NoError(t, run(optim.Adam{LR: infer.Constant(0.1)}, false))
	require.NoError(t, run(optim.Adam{LR: infer.Constant(0.1)}, true))
	require.ErrorContains(t, run(optim.AdamW{LR: infer.Constant(0.1)}, true),
		"its method is optim.Adam, this run's optim.AdamW")
}
