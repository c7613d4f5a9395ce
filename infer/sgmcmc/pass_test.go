package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// passMethods are those whose updates are made in one pass over memory.
var passMethods = map[string]infer.Method{
	"SGLD":            sgmcmc.SGLD{LR: infer.Constant(0.3), Beta: 0.1},
	"SGLD, cold":      sgmcmc.SGLD{LR: infer.Constant(0.3), Temperature: infer.Constant(0)},
	"SGLD, estimated": sgmcmc.SGLD{LR: infer.Constant(0.3), EstimateBeta: &sgmcmc.Estimate{Batches: 4}},
	"SGLD, estimated, cold": sgmcmc.SGLD{LR: infer.Constant(0.3), EstimateBeta: &sgmcmc.Estimate{},
		Temperature: infer.Constant(0)},
	"SGHMC":            sgmcmc.SGHMC{LR: infer.Constant(0.2), Sigma: 1.5},
	"SGHMC, estimated": sgmcmc.SGHMC{LR: infer.Constant(0.2), EstimateBeta: &sgmcmc.Estimate{Batches: 4}},
	"BAOA":             sgmcmc.BAOA{LR: infer.Constant(0.3), Sigma: 0.7},
	"symplectic":       sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.1), Momentum: infer.Constant(0.9)},
	"symplectic, masses": sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.2), Beta: 0.2,
		Mass: map[string]float64{"a": 3}},
	"symplectic, masses and T = 0": sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.2), Temperature: infer.Constant(0),
		Mass: map[string]float64{"a": 3}},
	"symplectic, estimated masses": sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.2),
		EstimateMass: &sgmcmc.Estimate{Batches: 3}},
	"symplectic, all estimated": sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.2),
		EstimateMass: &sgmcmc.Estimate{Batches: 3}, EstimateBeta: &sgmcmc.Estimate{Batches: 4}},
	"PSGLD":                sgmcmc.PSGLD{LR: infer.Constant(0.01), Eps: 0.1},
	"PSGLD, cold":          sgmcmc.PSGLD{LR: infer.Constant(0.01), Eps: 0.1, Temperature: infer.Constant(0)},
	"SGNHT":                sgmcmc.SGNHT{LR: infer.Constant(0.1), Sigma: 1.2},
	"SGNHT, per parameter": sgmcmc.SGNHT{LR: infer.Constant(0.1), PerParameter: true},
	"ATMC":                 sgmcmc.ATMC{LR: infer.Constant(0.2), Mass: 2, Xi: 0.9},
	"ATMC, cold":           sgmcmc.ATMC{LR: infer.Constant(0.2), Temperature: infer.Constant(0)},
	"ATMC, relativistic":   sgmcmc.ATMC{LR: infer.Constant(0.2), Speed: 1.5, Xi: 0.9},
	"ATMC, long steps":     sgmcmc.ATMC{LR: infer.Constant(1.5), Xi: 2, Friction: infer.Constant(3)},
	"SGD":                  optim.SGD{LR: infer.Constant(0.1), Momentum: 0.8, Nesterov: true, WeightDecay: 0.01},
	"Adam":                 optim.Adam{LR: infer.Constant(0.01), WeightDecay: 0.01},
	"AdamW":                optim.AdamW{LR: infer.Constant(0.01)},
}

// passed makes updates from the start, in passes or with tensors, and gives the states' tensors and what was told.
func passed(t *testing.T, m infer.Method, target infer.Target, start infer.Params, tensors bool,
	steps int) (state infer.State, infos []infer.Info) {
	t.Helper()
	fuse.Off.Store(tensors)
	defer fuse.Off.Store(false)
	transform, err := m.Build(target)
	require.NoError(t, err)
	state, err = infer.Init(transform, start, 4)
	require.NoError(t, err)
	n := 0.0
	next := func() (infer.Batch, error) {
		n++
		return infer.Batch{"s": torch.Of(vector([]float64{math.Sin(n)}))}, nil
	}
	if p, ok := transform.(infer.Preparer); ok && p.Due(state, true) {
		state, err = p.Prepare(state, true, next)
		require.NoError(t, err)
	}
	made := fuse.Made.Load()
	defer func() { require.Equal(t, !tensors, fuse.Made.Load() > made) }()
	for range steps {
		before := values(state.Position().Flat.T())
		after, info, err := transform.Update(state, must(next()))
		require.NoError(t, err)
		identical(t, before, values(state.Position().Flat.T()), "the old state")
		state, infos = after, append(infos, info)
	}
	return state, infos
}

// walled is a Gaussian of d different precisions and a log that is finite above −20. Its batches have a number "s".
func walled(dtype gotch.DType, d int) infer.Target {
	lambda, pull := make([]float64, d), make([]float64, d)
	for i := range lambda {
		lambda[i], pull[i] = 1+0.5*math.Sin(float64(i)), 4*math.Sin(float64(3*i))
	}
	cast := func(x []float64) torch.Tensor {
		return must(torch.FromSliceOn(torch.CPU, dtype, x, d))
	}
	l, r := cast(lambda), cast(pull)
	return infer.Sum(func(p infer.Params, batch infer.Batch) (torch.Tensor, infer.Aux) {
		theta := p.Flat
		wall := theta.Add(20).Log().Sum()
		s := torch.Of(batch.Get("s").T().MustTotype(dtype, false))
		return theta.Square().Mul(l).Sum().Mul(-0.5).Add(theta.Mul(r).Mul(s).Sum()).Add(wall), nil
	}, 1)
}

// An update in one pass is that with tensors, up to roundings of the precision: five updates of a target that
// contracts, of numbers of size one, some of them in the remainders of blocks and of vectors. The noise is the same.
// Chain 1 begins where the density is not finite, and stays there.
func TestPassesMakeTheUpdatesOfTensors(t *testing.T) {
	const a, b = 1029, 1036 // elements of the sites: more than two blocks, and an odd number
	layout := must(infer.NewLayout(infer.Shapes{"a": {a}, "b": {b}}))
	for _, precision := range []struct {
		dtype     gotch.DType
		tolerance float64
	}{{gotch.Double, 1e-13}, {gotch.Float, 2e-5}} {
		target := walled(precision.dtype, a+b)
		for _, chains := range []int{0, 1, 3} {
			x, shape := spread(max(chains, 1)*(a+b)), []int{a + b}
			if chains > 0 {
				shape = []int{chains, a + b}
			}
			if chains == 3 {
				x[a+b] = -21
			}
			start := infer.Params{Layout: layout, Flat: must(torch.FromSliceOn(torch.CPU, precision.dtype, x, shape...))}
			for method, m := range passMethods {
				t.Run(name("%s, %v, %d chains", method, precision.dtype, chains), func(t *testing.T) {
					want, told := passed(t, m, target, start, true, 5)
					have, also := passed(t, m, target, start, false, 5)
					tensors := have.Save().Tensors
					for part, tensor := range want.Save().Tensors {
						assert.Equal(t, tensor.Shape(), tensors[part].Shape(), part)
						want, have := values(tensor.T()), values(tensors[part].T())
						for i, x := range want { // roundings of larger numbers are larger
							size := max(1, math.Abs(x))
							want[i], have[i] = x/size, have[i]/size
						}
						within(t, want, have, precision.tolerance, part)
					}
					assert.Equal(t, want.Save().Streams, have.Save().Streams)
					for i := range told {
						assert.Equal(t, told[i].Diverged, also[i].Diverged)
						assert.Equal(t, told[i].TimeStep, also[i].TimeStep)
						require.Len(t, also[i].Stats, len(told[i].Stats))
						for stat, v := range told[i].Stats {
							within(t, v, also[i].Stats[stat], precision.tolerance, stat)
						}
					}
					if chains == 3 {
						d := a + b
						assert.Equal(t, []bool{false, true, false}, also[4].Diverged)
						identical(t, values(start.Flat.T())[d:2*d], values(have.Position().Flat.T())[d:2*d], "a held chain")
					}
				})
			}
		}
	}
}

// Of a precision that passes do not know libtorch's operations make the updates: chains move, in their precision.
func TestUpdatesInHalfPrecision(t *testing.T) {
	l := must(infer.NewLayout(infer.Shapes{"a": {3}, "b": {4}}))
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Flat.Sub(1).Square().Sum().Mul(-0.5), nil
	}, 1)
	start := infer.Params{Layout: l, Flat: must(torch.FromSliceOn(torch.CPU, gotch.BFloat16, spread(14), 2, 7))}
	made := fuse.Made.Load()
	for method, m := range passMethods {
		transform, err := m.Build(target)
		require.NoError(t, err)
		s := begin[infer.State](t, transform, start, 4)
		if p := transform.(infer.Preparer); p.Due(s, true) {
			s = must(p.Prepare(s, true, func() (infer.Batch, error) { return nil, nil }))
		}
		for range 3 {
			var info infer.Info
			s, info = update(t, transform, s, nil)
			assert.Nil(t, info.Diverged, method)
		}
		for part, x := range s.Save().Tensors {
			assert.Equal(t, gotch.BFloat16, must(torch.DTypeOfTensor(x)), "%s: %s", method, part)
			for _, v := range values(x.T()) {
				assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s: %s", method, part)
			}
		}
		assert.NotEqual(t, values(start.Flat.T()), values(s.Position().Flat.T()), method)
	}
	assert.Equal(t, made, fuse.Made.Load())
}
