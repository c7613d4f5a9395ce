package vi_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// line is a regression of y on x with weights of shape [2, 2], which act as a vector, and a scalar noise: sites of
// several shapes.
func line(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w, logSD := p.Get("w").Reshape(4).T(), p.Get("log_sd").T()
	r := b.Get("y").Sub(b.Get("x").T().MustMv(w, false)).Div(logSD.MustExp(false)).T()
	likelihood := r.MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5), false).MustSub(logSD,
		false).MustMean(r.DType(), false)
	prior := p.Flat.Dot(p.Flat).T().MustMulScalar(ts.FloatScalar(-0.5/30), false)
	return torch.Of(prior.MustAdd(likelihood, false)), infer.Aux{"residuals": torch.Of(r), "prior": torch.Of(prior)}
}

func lineLayout() *infer.Layout { return layout(infer.Shapes{"w": {2, 2}, "log_sd": {}}) }

func lineData() infer.Batch {
	const n = 30
	x, y := spread(4*n), spread(7 * n)[6*n:]
	for i := range y {
		y[i] = 0.3*y[i] + x[4*i] - 0.5*x[4*i+2]
	}
	return infer.Batch{"x": torch.Of(vector(x, n, 4)), "y": torch.Of(vector(y))}
}

var adam = optim.Adam{LR: infer.Polynomial(0.05, 1, 0.33)}

func TestContract(t *testing.T) {
	all := methods(adam, 2, 0.1, nil)
	for what, m := range methods(adam, 3, 0.1, &no) {
		all[what+" of the whole gradient"] = m
	}
	infertest.Contract(t, all, infertest.Ground{Posterior: infertest.Walled(line), Layout: lineLayout(),
		Batch: lineData(), Updates: 30, Run: infer.Options{Warmup: 40, Draws: infer.None}, Minibatch: 7,
		Stops: []int{1, 23}})
}

// What an update tells of K chains is what it tells of each alone, with the aux of each sample.
func TestChainsTellWhatTheyTellAlone(t *testing.T) {
	const chains, d = 3, 5
	b, flat := lineData(), spread(chains*d)
	for _, samples := range []int{1, 3} {
		for what, method := range methods(adam, samples, 0.1, &no) {
			transform := build(t, method, line)
			_, info := update(t, transform, begin(t, transform, params(lineLayout(), flat, chains), 9), b)
			assert.Equal(t, []int{chains, samples, 30}, info.Aux["residuals"].Shape(), what)
			for k := range chains {
				s, err := transform.(infer.Seeded).InitStreams(params(lineLayout(), flat[k*d:(k+1)*d], 0),
					torch.Streams{Seed: 9, Chains: []uint64{uint64(k)}})
				require.NoError(t, err)
				_, own := update(t, transform, s.(vi.State), b)
				assert.InDelta(t, own.Stats["nelbo"][0], info.Stats["nelbo"][k], 1e-10, what)
				assert.Equal(t, []int{samples, 30}, own.Aux["residuals"].Shape(), what)
				assert.Equal(t, []int{samples}, own.Aux["prior"].Shape(), what)
			}
		}
	}
}

// In float32 what moves is near what it is in float64. Noise is not the same in both: with
// 20,000 samples it changes an element by up to a hundredth. LowRank begins with factors that are noise.
func TestSinglePrecision(t *testing.T) {
	b := lineData()
	single := infer.Batch{}
	for name, x := range b {
		single[name] = must(torch.To(x, gotch.CPU, gotch.Float))
	}
	steady := optim.SGD{LR: infer.Constant(0.05)}
	all := methods(steady, 20000, 0.1, &no)
	delete(all, "vi.LowRank")
	for what, method := range all {
		transform := build(t, method, line)
		wide := begin(t, transform, params(lineLayout(), spread(10), 2), 1)
		narrow := begin(t, transform, must(params(lineLayout(), spread(10), 2).To(gotch.CPU, gotch.Float)), 1)
		for range 5 {
			wide, _ = update(t, transform, wide, b)
			narrow, _ = update(t, transform, narrow, single)
			within(t, values(wide.Variational().Flat.T()), values(narrow.Variational().Flat.T()), 0.03, what)
			within(t, values(must(wide.Covariance()).T()), values(must(narrow.Covariance()).T()), 0.03, what)
		}
	}
}

// A factor that overflows is held too, not an error of libtorch's. At T = 0, where the scale goes that way, it does not
// count.
func TestScaleThatOverflowsIsHeld(t *testing.T) {
	for _, temperature := range []float64{1, 0} {
		transform := build(t, vi.LowRank{Optimizer: adam, Rank: 2, Temperature: infer.Constant(temperature)},
			correlated(3).logPosterior())
		s := begin(t, transform, params(correlated(3).layout(), make([]float64, 3), 0), 1)
		phi := values(s.Variational().Flat.T())
		for i := 6; i < 9; i++ {
			phi[i] = -700 // so that (W/e^s)² is not finite
		}
		place(t, s, phi)
		next, info := update(t, transform, s, nil)
		if temperature == 0 {
			assert.Nil(t, info.Diverged)
			assert.NotEqual(t, phi, values(next.Variational().Flat.T()))
			continue
		}
		assert.Equal(t, []bool{true}, info.Diverged)
		identical(t, phi, values(next.Variational().Flat.T()), "the parameters")
	}
}

// A state that another method saved is refused with an error.
func TestRestoreRefusesOthers(t *testing.T) {
	start := params(lineLayout(), spread(5), 0)
	of := methods(adam, 1, 1, nil)
	for what, method := range of {
		saved := begin(t, build(t, method, line), start, 1).Save()
		for other, m := range of {
			s, err := build(t, m, line).(infer.Restorer).Restore(lineLayout(), saved)
			if other == what {
				require.NoError(t, err)
				same(t, begin(t, build(t, method, line), start, 1), s, "restored")
				continue
			}
			assert.ErrorIs(t, err, infer.ErrCheckpoint, "%s from %s", other, what)
		}
		_, err := build(t, methods(climb, 1, 1, nil)[what], line).(infer.Restorer).Restore(lineLayout(), saved)
		assert.ErrorContains(t, err, `"buffer"`, "another optimiser")
		_, _, err = build(t, adam, line).Update(begin(t, build(t, method, line), start, 1), lineData())
		assert.ErrorContains(t, err, "vi.State")
		for _, other := range []infer.State{vi.State{}, begin(t, build(t, of["vi.Diag"], line), start, 1),
			begin(t, build(t, of["vi.Dense"], line), start, 1)} {
			_, _, err = build(t, of["vi.LowRank"], line).Update(other, lineData())
			assert.ErrorContains(t, err, "vi.LowRank: the state is of another family")
		}
	}
	empty := vi.State{}
	_, err := empty.Covariance()
	assert.ErrorContains(t, err, "the state is empty")
	_, err = empty.ScaleFactor()
	assert.ErrorContains(t, err, "the state is empty")
	_, err = empty.SD()
	assert.ErrorContains(t, err, "the state is empty")
	assert.Zero(t, empty.Steps())
	assert.Zero(t, empty.Position())
	assert.Zero(t, empty.Variational())
	infer.Free(empty)
	for what, method := range of {
		_, err = build(t, method, line).(infer.Restorer).Restore(lineLayout(), empty.Save())
		assert.ErrorIs(t, err, infer.ErrCheckpoint, what)
	}
	saved := begin(t, build(t, vi.LowRank{Optimizer: adam, Rank: 2}, line), start, 1).Save()
	_, err = build(t, vi.LowRank{Optimizer: adam, Rank: 3}, line).(infer.Restorer).Restore(lineLayout(), saved)
	assert.ErrorIs(t, err, infer.ErrCheckpoint, "another rank")
	_, err = build(t, vi.Diag{Optimizer: adam}, line).(infer.Restorer).Restore(lineLayout(), infer.Saved{})
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
}

// Minibatches of equal size have the full gradient on average over an epoch: the sum of steps from one state, with one
// noise.
func TestMinibatchesAverageToTheWhole(t *testing.T) {
	for what, method := range methods(climb, 2, 0.1, nil) {
		transform := build(t, method, line)
		s := begin(t, transform, params(lineLayout(), spread(5), 0), 1)
		whole, _ := update(t, transform, s, lineData())
		batches := must(infer.Minibatches(lineData(), infer.MinibatchOptions{Size: 6, Seed: 1}))
		mean := make([]float64, len(values(whole.Variational().Flat.T())))
		for range 5 {
			b, err := batches.Next()
			require.NoError(t, err)
			next, _ := update(t, transform, s, b)
			for i, v := range values(next.Variational().Flat.T()) {
				mean[i] += v / 5
			}
		}
		within(t, values(whole.Variational().Flat.T()), mean, 1e-12, what)
	}
}

// A mistake inside the log posterior is an error that says where it was.
func TestModelErrors(t *testing.T) {
	for what, method := range methods(adam, 2, 1, nil) {
		transform := build(t, method, line)
		s := begin(t, transform, params(lineLayout(), spread(5), 0), 1)
		_, _, err := transform.Update(s, infer.Batch{"x": lineData()["x"]})
		var model *infer.ModelError
		require.True(t, errors.As(err, &model), "%v", err)
		assert.ErrorContains(t, err, what)
		assert.ErrorContains(t, err, `"y"`)
	}
}
