package sgmcmc_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// noted are the notes of a method about a run of a number of updates, with a share of held ones.
func noted(t *testing.T, m infer.Method, target infer.Target, start infer.Params, b infer.Batch, updates int,
	held float64) []draws.Note {
	t.Helper()
	transform := must(m.Build(target))
	s := begin[infer.State](t, transform, start, 3)
	var info infer.Info
	for range updates {
		next, i := update(t, transform, s, b)
		infer.Free(s)
		s, info = next, i
	}
	return transform.(infer.Noter).Notes(s, infer.RunSummary{Updates: updates,
		Held: int(held * float64(updates*start.Chains())), Info: info, Layout: start.Layout, Batch: b})
}

func noteOf(notes []draws.Note, kind string) *draws.Note {
	for i := range notes {
		if notes[i].Kind == kind {
			return &notes[i]
		}
	}
	return nil
}

// Where the law of a step is known, the note about it says by how much it inflates standard deviations: seriously from
// 20 % on, not at all below 5 %. The target has precisions 1 and 0.1 of N = 40 data, so that R-hat would see nothing.
func TestNotesTellWhatTheStepDoesToTheLaw(t *testing.T) {
	const n, chains = 40, 16
	target := infer.Mean(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("a").Square().Sum().Add(p.Get("b").Square().Sum().Mul(0.1)).Mul(-0.5), nil
	}, n)
	l := layout(infer.Shapes{"a": {2}, "b": {3}})
	start := must(must(infer.Zeros(l)).Repeat(chains))
	c := infer.Constant
	xi := 1.0
	for _, e := range []struct {
		what    string
		method  infer.Method
		factor  float64 // on the variance in the direction of largest curvature; 0 where there is to be no note
		serious bool
	}{
		{"SGLD", sgmcmc.SGLD{LR: c(1.2)}, 1 / (1 - 1.2/2), true},
		{"SGLD", sgmcmc.SGLD{LR: c(0.3)}, 1 / (1 - 0.3/2), false},
		{"SGLD", sgmcmc.SGLD{LR: c(0.05)}, 0, false},
		{"SGLD, cold", sgmcmc.SGLD{LR: c(1.2), Temperature: zero}, 0, false},
		// The exact moments at α = σ = λ = 1, as docs/sgmcmc.md has them.
		{"SGHMC", sgmcmc.SGHMC{LR: c(0.5)}, 2.15385, true},
		{"SGHMC", sgmcmc.SGHMC{LR: c(0.1)}, 1.11403, false},
		{"SGHMC", sgmcmc.SGHMC{LR: c(0.01)}, 0, false},
		{"SGHMC at T = 3", sgmcmc.SGHMC{LR: c(0.5), Temperature: c(3)}, 2.15385, true},
		{"SGNHT", sgmcmc.SGNHT{LR: c(0.01), Xi: &xi}, 0, false},
		{"symplectic", sgmcmc.SymplecticSGHMC{LR: c(0.1)}, 0, false},
		{"symplectic", sgmcmc.SymplecticSGHMC{LR: c(0.9), Gamma: c(0.3)}, symplecticVariance(0.9, 0.3), false},
		{"symplectic, SGD", sgmcmc.SymplecticSGHMC{LR: c(0.81), Momentum: c(1 - 0.27)}, symplecticVariance(0.9, 0.3),
			false},
		// BAOA has no inflation at any stable step, nor has the lattice walk where no move is clipped.
		{"BAOA", sgmcmc.BAOA{LR: c(1)}, 0, false},
		{"BAOA", sgmcmc.BAOA{LR: c(1.9)}, 0, false},
		{"ATMC", sgmcmc.ATMC{LR: c(1.2)}, 0.6 / math.Tanh(0.6), false},
		{"ATMC", sgmcmc.ATMC{LR: c(1.2), Friction: c(3)}, 1.8 / math.Tanh(1.8), true},
		{"ATMC", sgmcmc.ATMC{LR: c(0.4)}, 0, false},
		{"ATMC, relativistic", sgmcmc.ATMC{LR: c(1.2), Speed: 1}, 0, false},
		{"SGLRW", sgmcmc.SGLRW{LR: c(0.2)}, 0, false},
		{"SGLRW", sgmcmc.SGLRW{LR: c(1.5)}, latticeVariance(1.5), false},
		{"SGLRW", sgmcmc.SGLRW{LR: c(3)}, latticeVariance(3), true},
	} {
		note := noteOf(noted(t, e.method, target, start, nil, 3, 0), "step_size")
		if e.factor == 0 {
			assert.Nil(t, note, e.what)
			continue
		}
		if assert.NotNil(t, note, e.what) {
			assert.Contains(t, note.Text, name("inflates standard deviations by %.0f %%", 100*(math.Sqrt(e.factor)-1)),
				e.what)
			assert.Equal(t, e.serious, note.Serious, e.what)
			assert.Contains(t, note.Advice, "LR smaller")
		}
	}
	note := noteOf(noted(t, sgmcmc.SGHMC{LR: c(0.5), Alpha: c(0.4)}, target, start, nil, 3, 0), "step_size")
	require.NotNil(t, note)
	assert.Contains(t, note.Text, "unstable at curvature 1 ")
	assert.True(t, note.Serious)
	// The first half of the step that inflates by less than 20 %.
	assert.Equal(t, "sgmcmc.SGHMC: make LR smaller: 0.062 is stable there.", note.Advice)
	hot := 0.4
	note = noteOf(noted(t, sgmcmc.SGNHT{LR: c(0.5), Xi: &hot}, target, start, nil, 3, 0), "step_size")
	require.NotNil(t, note)
	assert.NotContains(t, note.Advice, "Stable", "SGNHT has no such method")
	note = noteOf(noted(t, sgmcmc.BAOA{LR: c(2.1)}, target, start, nil, 3, 0), "step_size")
	require.NotNil(t, note)
	assert.Contains(t, note.Text, "unstable at curvature 1 ")
	assert.True(t, note.Serious)
}

// latticeVariance is Var θ/τ of SGLRW at λ = 1 and r = ε: the law of the walk is iterated to its fixed point on many
// lattices, of points δ(k + offset). A walk comes to the even and the odd points in turn, so two updates are averaged.
func latticeVariance(r float64) float64 {
	const lattices, half = 400, 8
	sum := 0.0
	for i := range lattices {
		at := func(k int) float64 { return float64(k-half) + float64(i)/lattices }
		law := make([]float64, 2*half+1)
		law[half] = 1
		moved := func() []float64 {
			next := make([]float64, len(law))
			for k, p := range law {
				up := 0.5 * (1 - min(max(r*at(k), -1), 1))
				if p > 0 {
					next[k+1] += p * up
					next[k-1] += p * (1 - up)
				}
			}
			return next
		}
		for range 1000 {
			law = moved()
		}
		for k, p := range moved() {
			sum += r * (p + law[k]) * at(k) * at(k) / lattices // Σ ½(p + p')·2r·x²
		}
	}
	return sum
}

// symplecticVariance is Var θ/T of the symplectic form at γ, M = λ = 1, from its recursion iterated to its fixed point.
func symplecticVariance(h, gamma float64) float64 {
	var p, q, r float64 // Var θ, Cov, Var m
	for range 10000 {
		m := (1-h*gamma)*(1-h*gamma)*r + h*h*p - 2*h*(1-h*gamma)*q + 2*h*gamma
		cov := (1-h*gamma)*q - h*p // of θ and m'
		p, q, r = p+2*h*cov+h*h*m, cov+h*m, m
	}
	return p
}

// Where all of the data at once would be far more than an update sees, notes take minibatches too: each of 32 data has
// the precisions of all of them. Data are many by their number, or by the numbers in each, as pixels that a few weights
// meet.
func TestNotesOfManyDataTakeMinibatches(t *testing.T) {
	for _, size := range []struct{ n, numbers, d int }{{600_000, 1, 200}, {2_000, 768, 200}} {
		manyData(t, size.n, size.numbers, size.d)
	}
}

// manyData looks at a run with n data of so many numbers each, and d parameters.
func manyData(t *testing.T, n, numbers, d int) {
	largest := 0
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		largest = max(largest, b.Get("x").Shape()[0])
		a := p.Get("a")
		return a.Square().Sum().Add(a.At(0).Square().Mul(3)).Mul(-0.5).Add(a.Sum().Mul(b.Get("x").Mean())), nil
	}, n)
	data := infer.Batch{"x": torch.New(make([]float64, n*numbers), n, numbers)}
	program := infer.Handwritten(target, must(infer.Zeros(layout(infer.Shapes{"a": {d}}))), data)
	batches := must(infer.Minibatches(data, infer.MinibatchOptions{Size: 32, Seed: 1}))
	r := must(infer.Run(t.Context(), program, sgmcmc.SGLD{LR: infer.Constant(0.2)},
		infer.Options{Chains: 1, Warmup: infer.None, Draws: 20, Thin: 1, Batches: batches}))
	note := noteOf(r.Draws.Notes(), "step_size")
	require.NotNil(t, note)
	// 1/√(1 − 0.2·4/2)
	assert.Contains(t, note.Text, "inflates standard deviations by 29 % where the curvature is largest, 4.")
	assert.EqualValues(t, 32, largest)
	assert.Equal(t, infer.Position{Index: 20}, batches.Position())
}

// Held updates, and momenta that are too hot for the temperature set, are told with the field to change.
func TestNotesTellOfHeldUpdatesAndHotMomenta(t *testing.T) {
	const chains = 64
	target := infer.Mean(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("a").Square().Sum().Mul(-0.5), nil
	}, 10)
	start := must(must(infer.Zeros(layout(infer.Shapes{"a": {25}}))).Repeat(chains))
	c := infer.Constant
	for share, serious := range map[float64]bool{0.001: false, 0.1: true, 0.999: true} {
		notes := noted(t, sgmcmc.BAOA{LR: c(0.1)}, target, start, nil, 100, share)
		note := noteOf(notes, "held")
		require.NotNil(t, note)
		assert.Equal(t, serious, note.Serious, "%g", share)
		assert.Contains(t, note.Text, name("%d of 6400 updates were held", int(share*6400)))
		assert.Contains(t, note.Advice, "sgmcmc.BAOA: make LR smaller")
	}
	assert.Empty(t, noted(t, sgmcmc.BAOA{LR: c(0.1)}, target, start, nil, 100, 0), "a run that is well")

	// 1600 momenta have their temperature to 3.5 % (one standard error); at α = σ = λ = 1 and ε = 0.5 it is 2.46.
	note := noteOf(noted(t, sgmcmc.SGHMC{LR: c(0.5)}, target, start, nil, 200, 0), "kinetic_temperature")
	require.NotNil(t, note)
	assert.True(t, note.Serious)
	assert.Contains(t, note.Advice, "LR smaller")
	// While the temperature changes momenta lag behind it, and there is no note.
	ramp := infer.Ramp(1, 201, 200)
	assert.Nil(t, noteOf(noted(t, sgmcmc.SGHMC{LR: c(0.5), Temperature: ramp}, target, start, nil, 200, 0),
		"kinetic_temperature"))
}

// At T = 0 the methods are optimisers, and their draws say so: chains that end at one mode of a model are one point, up
// to what rounding leaves of the last steps, where R-hat is infinite. Those that end at two modes are not. Draws of
// which some had another temperature say nothing.
func TestDrawsAtZeroTemperature(t *testing.T) {
	l, err := infer.NewLayout(infer.Shapes{"x": {2}})
	require.NoError(t, err)
	one := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { // at 2.1
		return p.Get("x").Sub(2.1).Square().Sum().Mul(-0.5), nil
	}
	two := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { // at −1 and 1
		return p.Get("x").Square().Sub(1).Square().Sum().Mul(-0.5), nil
	}
	run := func(f infer.LogPosterior, m infer.Method) (attr string, r *diag.Report) {
		start, err := torch.FromSlice([]float64{-2, 3, 2, 1.5, 0.5, -0.7, 1, 0.2}, 4, 2)
		require.NoError(t, err)
		d, err := infer.Sample(context.Background(), infer.Handwritten(infer.Sum(f, 1), infer.Params{Layout: l}, nil), m,
			infer.Options{Chains: 4, Warmup: 1000, Draws: 50, Start: infer.Params{Layout: l, Flat: start}, Seed: 1,
				Observer: infer.Silent})
		require.NoError(t, err)
		r, err = diag.Diagnose(d, diag.DiagnoseOptions{})
		require.NoError(t, err)
		return d.Attrs()[draws.AttrTemperature], r
	}
	zero, lr := infer.Constant(0), infer.Constant(0.1)
	for name, m := range map[string]infer.Method{
		"SGLD": sgmcmc.SGLD{LR: lr, Temperature: zero}, "BAOA": sgmcmc.BAOA{LR: lr, Temperature: zero},
		"SGHMC":           sgmcmc.SGHMC{LR: lr, Temperature: zero},
		"SymplecticSGHMC": sgmcmc.SymplecticSGHMC{LR: lr, Temperature: zero},
	} {
		attr, r := run(one, m)
		require.Equal(t, "0", attr, name)
		require.True(t, r.OK(), "%s: %v", name, r)
		require.Len(t, r.Of(diag.CodeConstant), 2, name)
		_, r = run(two, m)
		require.NotEmpty(t, r.Of(diag.CodeRHat), "%s: %v", name, r)
		require.Equal(t, diag.Serious, r.Of(diag.CodeRHat)[0].Severity)
	}
	for first, want := range map[int]string{1000: "0", 1001: "", 1 << 40: ""} { // updates at T = 1, then 0
		attr, _ := run(one, sgmcmc.BAOA{LR: lr, Temperature: func(step int) float64 {
			if step < first {
				return 1
			}
			return 0
		}})
		require.Equal(t, want, attr, "%d updates", first)
	}
}
