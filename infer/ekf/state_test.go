package ekf_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// walled is linear with a wall.
func walled(p infer.Params, b infer.Batch) torch.Tensor { return linear(p, b).Add(infertest.Wall(p)) }

// methods are one configuration of each method, for two parameters at "w".
func methods() map[string]infer.Method {
	return map[string]infer.Method{
		"Diag":  ekf.Diag{LR: lrOf, TransitionSD: sdOf, InitSDs: torch.Of(vector([]float64{0.5, 2}))},
		"Dense": ekf.Dense{LR: lrOf, TransitionSD: sdOf, InitCov: torch.Of(vector([]float64{1, 0.3, 0.3, 2}, 2, 2))},
		"GaussNewton": ekf.GaussNewton{Forward: walled, Outer: gaussianOuter(0.5), TransitionSD: sdOf,
			InitSDs: torch.Of(vector([]float64{0.5, 2})), Iterations: 2},
	}
}

func TestContract(t *testing.T) {
	_, _, batch := logisticData(1, 12, 2)
	infertest.Contract(t, methods(), infertest.Ground{Posterior: infertest.Walled(logistic),
		Layout: layout(infer.Shapes{"w": {2}}), Batch: batch, Run: infer.Options{Warmup: infer.None, Draws: infer.None},
		Minibatch: 4, Stops: []int{1, 2}, Optional: "root"})
}

// saved are the numbers of a state.
func saved(s infer.State) map[string][]float64 {
	out := map[string][]float64{}
	for name, x := range s.Save().Tensors {
		out[name] = values(x.T())
	}
	return out
}

// float32 states follow the float64 filter to its precision.
func TestFloat32(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 4, 2)
	single := infer.Batch{}
	for name, x := range batch {
		single[name] = must(torch.To(x, torch.CPU, gotch.Float))
	}
	for name, m := range methods() {
		transform := build(t, m, logistic)
		p := params(l, []float64{0.5, -1}, 0)
		wide, _ := update(t, transform, begin(t, transform, p), batch)
		narrow, _ := update(t, transform, begin(t, transform, must(p.To(torch.CPU, gotch.Float))), single)
		for part, x := range narrow.Save().Tensors {
			within(t, saved(wide)[part], values(x.T()), 2e-6, name+" "+part)
		}
	}
}

// The filters run under infer.Run like every other method, for one pass over the data.
func TestRun(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	_, _, batch := logisticData(1, 12, 2)
	for name, m := range methods() {
		transform := build(t, m, logistic)
		result, err := infertest.Run(context.Background(), transform, params(l, []float64{0, 0}, 0), infer.Full(batch),
			infer.Options{Warmup: infer.None, Draws: infer.None, Chains: 2})
		require.NoError(t, err, name)
		assert.Equal(t, 1, result.State.Steps(), name)
	}
}
