package statespace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/torch"
)

type parts = []statespace.Part

// example is a series with its system, all of whose matrices can be read.
type example struct {
	name   string
	series func() statespace.Series
	system func() statespace.System // of the single part, or what the parts make together
	noise  [][]float64
	y      []float64
}

func constantNoise(steps int, h ...float64) [][]float64 {
	out := make([][]float64, steps)
	for t := range out {
		out[t] = h
	}
	return out
}

// wave are numbers of about 1, of which every third after the first is missing where gaps is true.
func wave(n int, gaps bool) []float64 {
	y := make([]float64, n)
	for t := range y {
		y[t] = math.Sin(float64(t*t)) + 0.3*float64(t%4)
		if gaps && t%3 == 1 {
			y[t] = math.NaN()
		}
	}
	return y
}

// general is a system of two observations of three states, all of whose matrices change with time.
func general(steps int) statespace.System {
	fill := func(rows, columns int, f float64) torch.Tensor {
		x := make([]float64, steps*rows*columns)
		for i := range x {
			x[i] = math.Sin(f * float64(i+1))
		}
		return tensor(x, steps, rows, columns)
	}
	return statespace.System{
		Design: fill(2, 3, 0.7), Transition: fill(3, 3, 1.3).Mul(0.6), Noise: fill(3, 2, 2.1),
		Mean: tensor([]float64{1, -2, 0.5}), Spread: tensor([]float64{1, 0.2, 0.3, -0.5, 1, 2}, 3, 2),
	}
}

func examples() []example {
	one := func(name string, steps int, h float64, gaps bool, part func() statespace.Part) example {
		return example{
			name: name, noise: constantNoise(steps, h), y: wave(steps, gaps),
			series: func() statespace.Series { return statespace.New(steps, h, part()) },
			system: func() statespace.System { return part().System() },
		}
	}
	level := func() statespace.Part { return statespace.LocalLevel{Scale: 0.7, Mean: 0.4, Spread: 2} }
	trend := func() statespace.Part {
		return statespace.LocalTrend{
			LevelScale: 0.3, SlopeScale: 0.1, Mean: 1, Spread: 3, SlopeMean: -0.2, SlopeSpread: 0.5,
		}
	}
	smooth := func() statespace.Part { return statespace.LocalTrend{SlopeScale: 0.1, Spread: 3} }
	seasonal := func() statespace.Part { return statespace.Seasonal{Period: 4, Scale: 0.2, Spread: 1.5} }
	fixed := func() statespace.Part { return statespace.Seasonal{Period: 5} }
	waves := func() statespace.Part { return statespace.Trigonometric{Period: 6, Scale: 0.1} }
	odd := func() statespace.Part {
		return statespace.Trigonometric{Period: 7.5, Harmonics: 2, Scale: 0.2, Spread: 2}
	}
	whole := func() statespace.Part { return general(9) }
	noises := make([][]float64, 9)
	var flat []float64
	for t := range noises {
		noises[t] = []float64{0.3 + 0.1*float64(t), 0.5}
		flat = append(flat, noises[t]...)
	}
	y := wave(18, true)
	y[4], y[5] = math.NaN(), math.NaN() // a time of which nothing is seen
	return []example{
		one("level", 12, 0.5, false, level), one("level with gaps", 12, 0.5, true, level),
		one("level without noise", 10, 0, true, level), one("trend", 15, 0.4, true, trend),
		one("smooth trend", 15, 0.4, true, smooth), one("seasonal", 14, 0.3, true, seasonal),
		one("fixed seasonal", 14, 0.3, true, fixed), one("waves", 13, 0.3, true, waves),
		one("odd waves", 13, 0.3, true, odd),
		{
			name: "several parts", noise: constantNoise(16, 0.3), y: wave(16, true),
			series: func() statespace.Series { return statespace.New(16, 0.3, trend(), seasonal(), odd()) },
			system: func() statespace.System { return together(trend().System(), seasonal().System(), odd().System()) },
		},
		{
			name: "general", noise: noises, y: y,
			series: func() statespace.Series { return statespace.New(9, tensor(flat, 9, 2), whole()) },
			system: func() statespace.System { return whole().System() },
		},
	}
}

// together is the block-diagonal system of constant ones, element by element.
func together(systems ...statespace.System) statespace.System {
	block := func(of func(statespace.System) torch.Tensor) torch.Tensor {
		var rows, columns int
		for _, s := range systems {
			r, c := dense(of(s)).Dims()
			rows, columns = rows+r, columns+c
		}
		out := mat.NewDense(rows, columns, nil)
		i, j := 0, 0
		for _, s := range systems {
			d := dense(of(s))
			r, c := d.Dims()
			out.Slice(i, i+r, j, j+c).(*mat.Dense).Copy(d)
			i, j = i+r, j+c
		}
		return tensor(out.RawMatrix().Data, rows, columns)
	}
	var design, mean []float64
	for _, s := range systems {
		design = append(design, s.Design.Values()...)
		if s.Mean == nil {
			s.Mean = 0.0
		}
		mean = append(mean, torch.Of(s.Mean).Expand(s.Design.Shape()...).Values()...)
	}
	return statespace.System{
		Design: tensor(design), Mean: tensor(mean),
		Transition: block(func(s statespace.System) torch.Tensor { return s.Transition }),
		Noise:      block(func(s statespace.System) torch.Tensor { return s.Noise }),
		Spread:     block(func(s statespace.System) torch.Tensor { return s.Spread }),
	}
}

func (e example) value(s statespace.Series) torch.Tensor { return tensor(e.y, s.EventShape()...) }

// The log density is that of the dense multivariate normal distribution of the numbers that are there.
func TestLogProb(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				s := e.series()
				require.NoError(t, s.Validate())
				want := jointOf(e.system(), e.noise).logp(e.y)
				assert.InDelta(t, want, s.LogProb(e.value(s)).Item(), 1e-9)
			})
		})
	}
}

// Mean and variance of each number are those of the joint distribution.
func TestMoments(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				s := e.series()
				j := jointOf(e.system(), e.noise)
				mean, variance := s.Mean().Values(), s.Variance().Values()
				for i := range e.y {
					at := j.steps*j.m + i
					assert.InDelta(t, j.mean.AtVec(at), mean[i], 1e-10*(1+math.Abs(mean[i])))
					assert.InDelta(t, j.cov.At(at, at), variance[i], 1e-10*(1+variance[i]))
				}
			})
		})
	}
}

// Many series at once have the log densities of each alone, with other numbers missing in each.
func TestLogProbOfMany(t *testing.T) {
	do(t, func() {
		s := examples()[9].series()
		a, b := wave(16, true), wave(16, false)
		b[0], b[15] = math.NaN(), math.NaN()
		both := s.LogProb(tensor(append(append([]float64{}, a...), b...), 2, 16)).Values()
		assert.InDelta(t, s.LogProb(tensor(a)).Item(), both[0], 1e-12)
		assert.InDelta(t, s.LogProb(tensor(b)).Item(), both[1], 1e-12)
		plate := s.Expand(3)
		assert.Equal(t, []int{3}, plate.BatchShape())
		assert.Equal(t, []int{3}, plate.LogProb(tensor(a)).Shape())
		assert.Equal(t, []int{2, 3, 16}, plate.Sample(torch.NewSource(1, 0), 2).Shape())
		assert.Equal(t, []int{3, 16}, plate.Variance().Shape())
	})
}

// Draws have the means and covariances of the joint distribution: of 20,000 draws each mean is within 4.5 standard
// errors, and so is each product of two numbers, whose variance is known for normal numbers.
func TestSample(t *testing.T) {
	const n = 20000
	for _, e := range []example{examples()[5], examples()[10]} {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				s := e.series()
				j := jointOf(e.system(), e.noise)
				x := s.Sample(torch.NewSource(3, 0), n).Values()
				k := len(e.y)
				from := j.steps * j.m
				for a := range k {
					for b := range a + 1 {
						sum, product := 0.0, 0.0
						for i := range n {
							u, v := x[i*k+a]-j.mean.AtVec(from+a), x[i*k+b]-j.mean.AtVec(from+b)
							sum, product = sum+u, product+u*v
						}
						va, vb, c := j.cov.At(from+a, from+a), j.cov.At(from+b, from+b), j.cov.At(from+a, from+b)
						assert.InDelta(t, c, product/n, 4.5*math.Sqrt((va*vb+c*c)/n), "%d %d", a, b)
						if a == b {
							assert.InDelta(t, 0, sum/n, 4.5*math.Sqrt(va/n), "%d", a)
						}
					}
				}
			})
		})
	}
}

// Noise that is nearly or exactly 0 costs no digits, with a vague start: a series without noise shows its states, and
// its density is that of its first number and of its steps.
func TestNearlySingular(t *testing.T) {
	normal := func(x, sd float64) float64 { return -x*x/(2*sd*sd) - math.Log(sd) - math.Log(2*math.Pi)/2 }
	y := wave(40, false)
	const wide = 1e6
	levels, slopes := normal(y[0], wide), normal(y[0], wide)+normal(y[1]-y[0], wide)
	for i := 1; i < len(y); i++ {
		levels += normal(y[i]-y[i-1], 0.3)
		if i > 1 {
			slopes += normal(y[i]-2*y[i-1]+y[i-2], 0.3)
		}
	}
	do(t, func() {
		// Noise of 1e-9 changes a density of steps of 0.3 by terms of (1e-9/0.3)².
		for _, h := range []float64{0, 1e-9} {
			got := statespace.New(40, h, statespace.LocalLevel{Scale: 0.3, Spread: wide}).LogProb(tensor(y)).Item()
			assert.InDelta(t, levels, got, 1e-9*math.Abs(levels))
			got = statespace.New(40, h, statespace.LocalTrend{SlopeScale: 0.3, Spread: wide, SlopeSpread: wide}).
				LogProb(tensor(y)).Item()
			assert.InDelta(t, slopes, got, 1e-9*math.Abs(slopes))
		}
	})
}

// What is wrong is an error that names it.
func TestRefuses(t *testing.T) {
	level := statespace.LocalLevel{Scale: 1}
	for want, f := range map[string]func(){
		"parts is empty": func() { statespace.New(3, 1) },
		"nil at index 0": func() { statespace.New(3, 1, nil) },
		"Series is the zero value: New makes one": func() { statespace.Series{}.Mean() },
		"Seasonal.Period is 1000000":              func() { statespace.Seasonal{Period: 1e6}.System() },
		"steps is 0: there must be at least 1":    func() { statespace.New(0, 1, level) },
		"noise is -1: it is a standard deviation": func() { statespace.New(3, -1, level) },
		"noise is a tensor of shape [2]":          func() { statespace.New(3, torch.Zeros(2), level) },
		"Seasonal.Period is 1":                    func() { statespace.New(3, 1, statespace.Seasonal{Period: 1}) },
		"Trigonometric.Harmonics is 4: it must be from 1": func() {
			statespace.Trigonometric{Period: 6, Harmonics: 4}.System()
		},
		"Trigonometric.Period is NaN": func() {
			statespace.Trigonometric{Period: math.NaN()}.System()
		},
		"LocalLevel.Scale is -2":       func() { statespace.LocalLevel{Scale: -2}.System() },
		"LocalLevel.Scale is a string": func() { statespace.LocalLevel{Scale: "wide"}.System() },
		"LocalLevel.Mean is a tensor of shape [2]": func() {
			statespace.LocalLevel{Mean: torch.Zeros(2)}.System()
		},
		"ARMA.AR is a number":                func() { statespace.ARMA{AR: torch.Of(0.5)}.System() },
		"ARMA.MA is a tensor of shape [1 2]": func() { statespace.ARMA{MA: torch.Zeros(1, 2)}.System() },
		"value is a tensor of shape [4]: the series has 3": func() {
			statespace.New(3, 1, level).LogProb(torch.Zeros(4))
		},
		"Design is a tensor of shape []": func() { statespace.New(3, 1, statespace.System{}) },
		"Transition is a tensor of shape [3 3]: the Design has 2 states": func() {
			statespace.New(3, 1, statespace.System{
				Design: torch.Zeros(2), Transition: torch.Zeros(3, 3),
				Noise: torch.Zeros(2, 1), Spread: torch.Zeros(2, 2),
			})
		},
		"Design is a tensor of shape [9 2 3]: its first dimension is time": func() {
			statespace.New(10, 1, general(9))
		},
		"a part of 2 observations at index 1": func() {
			statespace.New(3, 1, level, general(9))
		},
		"n is 0: there must be at least 1": func() {
			statespace.New(3, 1, level).Forecast(torch.Zeros(3), 0)
		},
		"Diffuse is a tensor of shape [2 2]: it must be [1, q]": func() {
			s := level.System()
			s.Diffuse = torch.Zeros(2, 2)
			statespace.New(3, 1, s)
		},
		"Diffuse is 3 states: the series has 2 numbers": func() {
			statespace.New(2, 1, statespace.Seasonal{Period: 4, Diffuse: true})
		},
		"the flat prior of the first states cannot be drawn from": func() {
			statespace.New(2, 1, statespace.LocalLevel{Diffuse: true}).Sample(torch.NewSource(1, 0))
		},
		"the forecast goes to step 11": func() {
			statespace.New(9, 1, general(9)).Forecast(torch.Zeros(9, 2), 2)
		},
	} {
		t.Run(want, func(t *testing.T) {
			err := torch.Do(func(*torch.Scope) error { f(); return nil })
			require.ErrorContains(t, err, want)
			var mistake *dist.Error
			require.ErrorAs(t, err, &mistake)
		})
	}
	do(t, func() {
		bad := statespace.New(3, tensor([]float64{1, -1, 1}), level)
		require.ErrorContains(t, bad.Validate(), "noise is -1 at element 1 of shape [3 1]")
		bad = statespace.New(3, 1, statespace.LocalLevel{Scale: tensor([]float64{math.NaN()}).At(0)})
		require.ErrorContains(t, bad.Validate(), "Noise is NaN")
	})
}
