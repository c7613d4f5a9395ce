package statespace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// flat is a joint distribution whose mean moves with q numbers δ of a flat prior: the posterior of these is that of
// generalised least squares, and everything else is integrated over it.
type flat struct {
	joint
	loads *mat.Dense // the derivative of the whole vector in δ
}

// flatOf is the law of a system with a diffuse start.
func flatOf(s statespace.System, h [][]float64) flat {
	d := dense(s.Diffuse)
	m, q := d.Dims()
	f := flat{joint: jointOf(s, h)}
	f.loads = mat.NewDense(f.mean.Len(), q, nil)
	for k := range q {
		column := make([]float64, m)
		mat.Col(column, k, d)
		s.Mean = tensor(column)
		f.loads.SetCol(k, jointOf(s, h).mean.RawVector().Data)
	}
	return f
}

// regression is what is known of δ given y: its mean, its precision S, and Σ⁻¹X of the numbers that are there.
func (f flat) regression(y []float64) (mean mat.VecDense, precision, solved mat.Dense) {
	places, seen := f.split(y)
	_, q := f.loads.Dims()
	x, off := mat.NewDense(len(places), q, nil), mat.NewVecDense(len(places), nil)
	for i, p := range places {
		x.SetRow(i, f.loads.RawRowView(p))
		off.SetVec(i, seen[i]-f.mean.AtVec(p))
	}
	if err := solved.Solve(f.block(places, places), x); err != nil {
		panic(err)
	}
	precision.Mul(x.T(), &solved)
	var right mat.VecDense
	right.MulVec(solved.T(), off)
	if err := mean.SolveVec(&precision, &right); err != nil {
		panic(err)
	}
	return mean, precision, solved
}

// less is y without what δ adds to the observations.
func (f flat) less(y []float64, delta *mat.VecDense) []float64 {
	var move mat.VecDense
	move.MulVec(f.loads, delta)
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = v - move.AtVec(f.steps*f.m+i)
	}
	return out
}

// logp is log ∫ p(y | δ) dδ.
func (f flat) logp(y []float64) float64 {
	mean, precision, _ := f.regression(y)
	return f.joint.logp(f.less(y, &mean)) - (math.Log(mat.Det(&precision))-float64(mean.Len())*math.Log(2*math.Pi))/2
}

// given is the mean and the covariance of some of the vector.
func (f flat) given(y []float64, of []int) (mean []float64, cov *mat.Dense) {
	delta, precision, solved := f.regression(y)
	mean, cov = f.joint.given(f.less(y, &delta), of)
	places, _ := f.split(y)
	var along, across mat.Dense
	across.Mul(f.block(of, places), &solved)
	_, q := f.loads.Dims()
	along.CloneFrom(mat.NewDense(len(of), q, nil))
	for i, p := range of {
		row := f.loads.RawRowView(p)
		mean[i] += mat.Dot(mat.NewVecDense(q, row), &delta)
		for k := range q {
			along.Set(i, k, row[k]-across.At(i, k))
		}
	}
	var half, more mat.Dense
	if err := half.Solve(&precision, along.T()); err != nil {
		panic(err)
	}
	more.Mul(&along, &half)
	cov.Add(cov, &more)
	return mean, cov
}

// diffuse are series with a diffuse start. The first numbers of two of them are missing.
func diffuse() []example {
	one := func(name string, steps int, h float64, part func() statespace.Part) example {
		return example{
			name: name, noise: constantNoise(steps, h), y: wave(steps, true),
			series: func() statespace.Series { return statespace.New(steps, h, part()) },
			system: func() statespace.System { return part().System() },
		}
	}
	out := []example{
		one("level", 14, 0.5, func() statespace.Part {
			return statespace.LocalLevel{Scale: 0.7, Mean: 0.4, Spread: 2, Diffuse: true}
		}),
		one("level without noise", 14, 0, func() statespace.Part {
			return statespace.LocalLevel{Scale: 0.7, Diffuse: true}
		}),
		one("trend", 15, 0.4, func() statespace.Part {
			return statespace.LocalTrend{LevelScale: 0.3, SlopeScale: 0.1, SlopeSpread: 0.2, Diffuse: true}
		}),
		one("seasonal", 14, 0.3, func() statespace.Part {
			return statespace.Seasonal{Period: 4, Scale: 0.2, Diffuse: true}
		}),
		one("waves", 16, 0.3, func() statespace.Part {
			return statespace.Trigonometric{Period: 7.5, Harmonics: 2, Scale: 0.1, Diffuse: true}
		}),
	}
	whole := func() statespace.System {
		s := general(9)
		s.Diffuse = tensor([]float64{1, 0.5, 0, 1, -0.3, 0.4}, 3, 2)
		return s
	}
	flatten, noises := make([]float64, 18), make([][]float64, 9)
	for i := range flatten {
		flatten[i] = 0.5 + 0.1*float64(i%5)
		noises[i/2] = append(noises[i/2], flatten[i])
	}
	y := wave(18, true)
	y[0], y[2] = math.NaN(), math.NaN()
	out = append(out, example{
		name: "general", noise: noises, y: y,
		series: func() statespace.Series { return statespace.New(9, tensor(flatten, 9, 2), whole()) },
		system: func() statespace.System { return whole().System() },
	})
	trend := func() statespace.System {
		return statespace.LocalTrend{SlopeScale: 0.1, Diffuse: true}.System()
	}
	ar := statespace.LocalLevel{Scale: 0.3, Spread: 0.8}
	parts := example{
		name: "a diffuse part and a proper one", noise: constantNoise(16, 0.3), y: wave(16, true),
		series: func() statespace.Series { return statespace.New(16, 0.3, ar, trend()) },
		system: func() statespace.System {
			s := together(ar.System(), trend())
			s.Diffuse = tensor([]float64{0, 0, 1, 0, 0, 1}, 3, 2)
			return s
		},
	}
	parts.y[0], parts.y[2] = math.NaN(), math.NaN()
	return append(out, parts)
}

// The log density is the dense normal one, integrated over a flat prior of the first states.
func TestDiffuse(t *testing.T) {
	for _, e := range diffuse() {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				s := e.series()
				assert.NoError(t, s.Validate())
				f := flatOf(e.system(), e.noise)
				assert.InDelta(t, f.logp(e.y), s.LogProb(e.value(s)).Item(), 1e-9)
				assert.True(t, math.IsNaN(s.Mean().Values()[0]) && math.IsNaN(s.Variance().Values()[0]))
				// States and forecasts.
				y, last := e.value(s), f.steps-3
				first := append([]float64{}, e.y...)
				for i := last * f.p; i < len(first); i++ {
					first[i] = math.NaN()
				}
				mean, cov := s.Smoothed(y)
				filtered, filteredCov := s.Filtered(y)
				for at := range f.steps {
					places := span(at*f.m, (at+1)*f.m)
					near(t, f, e.y, places, mean.At(at), cov.At(at))
					if at == last-1 {
						near(t, f, first, places, filtered.At(at), filteredCov.At(at))
					}
				}
				ahead := s.Forecast(y.Slice(0, 0, last), 3)
				wantMean, wantCov := f.given(first, span(f.steps*f.m+last*f.p, f.steps*(f.m+f.p)))
				means, variances := ahead.Mean().Values(), ahead.Variance().Values()
				for i := range wantMean {
					assert.InDelta(t, wantMean[i], means[i], 1e-9)
					assert.InDelta(t, wantCov.At(i, i), variances[i], 1e-9)
				}
				future := y.Slice(0, last, f.steps)
				assert.InDelta(t, f.logp(e.y)-f.logp(first), ahead.LogProb(future).Item(), 1e-9)
			})
		})
	}
}

// A level of which nothing is known before has the density of the differences of its numbers: a normal one, each of
// variance Scale² k + 2 noise² over k steps, and of covariance −noise² with its neighbours. What Mean and Spread are
// changes nothing, nor that the numbers are far from them.
func TestDiffuseLevelIsDifferences(t *testing.T) {
	const scale, noise = 0.7, 0.5
	y := wave(20, true)
	y[0] = math.NaN()
	var differences []float64
	var steps []int
	last := -1
	for i, v := range y {
		if math.IsNaN(v) {
			continue
		}
		if last >= 0 {
			differences, steps = append(differences, v-y[last]), append(steps, i-last)
		}
		last = i
	}
	n := len(differences)
	j := joint{steps: n, p: 1, mean: mat.NewVecDense(n, nil), cov: mat.NewSymDense(n, nil)}
	for i, k := range steps {
		j.cov.SetSym(i, i, scale*scale*float64(k)+2*noise*noise)
		if i > 0 {
			j.cov.SetSym(i, i-1, -noise*noise)
		}
	}
	want := j.logp(differences)
	do(t, func() {
		for _, c := range []struct{ mean, spread, shift, off float64 }{
			{0, 1, 0, 1e-10}, {0, 0, 0, 1e-10}, {0, 1e-3, 0, 1e-10}, {5, 100, 0, 1e-8},
			{0, 1, 1e6, 1e-7}, // the numbers themselves round to 1e-10 of their differences
		} {
			part := statespace.LocalLevel{Scale: scale, Mean: c.mean, Spread: c.spread, Diffuse: true}
			got := statespace.New(20, noise, part).LogProb(tensor(y).Add(c.shift)).Item()
			assert.InDelta(t, want, got, c.off, "%+v", c)
		}
	})
}

// Draws of states given a series with a diffuse start have the moments of the joint distribution, within 4.5 standard
// errors.
func TestDiffuseSampleStates(t *testing.T) {
	const n = 20000
	e := diffuse()[2]
	do(t, func() {
		s := e.series()
		f := flatOf(e.system(), e.noise)
		x := s.SampleStates(torch.NewSource(7, 0), e.value(s), n).Values()
		k := f.steps * f.m
		mean, cov := f.given(e.y, span(0, k))
		for a := range k {
			for _, b := range []int{a, max(a-1, 0), 0} {
				sum, product := 0.0, 0.0
				for i := range n {
					u, v := x[i*k+a]-mean[a], x[i*k+b]-mean[b]
					sum, product = sum+u, product+u*v
				}
				va, vb, c := cov.At(a, a), cov.At(b, b), cov.At(a, b)
				assert.InDelta(t, c, product/n, 4.5*math.Sqrt((va*vb+c*c)/n), "%d %d", a, b)
				assert.InDelta(t, 0, sum/n, 4.5*math.Sqrt(va/n), "%d", a)
			}
		}
	})
}

// Where the numbers do not determine the start there is no density, whatever rounding makes of the pivots that are 0.
func TestDiffuseUndetermined(t *testing.T) {
	do(t, func() {
		y := tensor([]float64{math.NaN(), 1, math.NaN()})
		for i := range 20 {
			noise := 0.5 + 0.013*float64(i)
			trend := statespace.New(3, noise, statespace.LocalTrend{SlopeScale: 0.1, Diffuse: true})
			assert.True(t, math.IsNaN(trend.LogProb(y).Item()), "noise %g", noise)
			assert.True(t, math.IsNaN(trend.Forecast(y, 1).Mean().Values()[0]), "noise %g", noise)
		}
	})
}

// A season with a phase that is never observed does not determine its flat start: the run says so, and not that data
// are missing, which they may. With one number of that phase it starts.
func TestUndeterminedStart(t *testing.T) {
	y := wave(16, false)
	for i := 2; i < len(y); i += 4 {
		y[i] = math.NaN()
	}
	model := func(c *ppl.Ctx) {
		level := statespace.LocalLevel{Scale: c.Sample("scale", dist.HalfNormal(1)), Diffuse: true}
		season := statespace.Seasonal{Period: 4, Scale: 0.1, Diffuse: true}
		c.Observe("y", statespace.New(16, 0.5, level, season), c.Data("y"))
	}
	start := func() error {
		batch := infer.Batch{"y": tensor(y)}
		p, err := ppl.Compile(model, batch)
		if err == nil {
			_, err = p.Start(batch, 1, 1)
		}
		return err
	}
	err := start()
	require.ErrorContains(t, err, "the flat start of 4 states (Diffuse) is not determined by the 12 numbers")
	require.NotContains(t, err.Error(), "mask")
	y[6] = 0.3
	require.NoError(t, start())
}
