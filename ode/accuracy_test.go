package ode_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// spiral is dy/dt = A y with A = [−a, −w; w, −a].
func spiral(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
	a, w, u, v := p[0], p[1], y.At(0), y.At(1)
	return torch.Stack(0, a.Mul(u).Add(w.Mul(v)).Neg(), w.Mul(u).Sub(a.Mul(v)))
}

// spiralAt is its solution e^{−as} R(ws) y0, with the derivatives of each number in (start, y0, a, w).
func spiralAt(t, start float64, y0 [2]float64, a, w float64) (y [2]float64, grads [2][5]float64) {
	s := t - start
	e, c, d := math.Exp(-a*s), math.Cos(w*s), math.Sin(w*s)
	y = [2]float64{e * (c*y0[0] - d*y0[1]), e * (d*y0[0] + c*y0[1])}
	grads[0] = [5]float64{a*y[0] + w*y[1], e * c, -e * d, -s * y[0], -s * y[1]}
	grads[1] = [5]float64{a*y[1] - w*y[0], e * d, e * c, -s * y[1], s * y[0]}
	return y, grads
}

func TestLinearGradients(t *testing.T) {
	y0, times := []float64{1, -0.5}, []float64{0.7, 1.9, 5}
	for name, method := range methods {
		s := ode.New(spiral, ode.Options{Method: method, RTol: 1e-11, ATol: 1e-13})
		y, grads := solved(t, s, 0.2, y0, times, []float64{0.3, 2})
		for i, at := range times {
			want, by := spiralAt(at, 0.2, [2]float64(y0), 0.3, 2)
			for k := range 2 {
				require.InDelta(t, want[k], y[2*i+k], 1e-8, "%s at %v", name, at)
				require.InDeltaSlice(t, by[k][:], grads[2*i+k], 1e-7, "%s at %v", name, at)
			}
		}
	}
}

// Steps of a quarter of the length have errors that are smaller by 4^order, for the solution and for its derivatives.
// An output between two steps has the error of one step more, of an interpolation of order 4, which shrinks by 4^5; it
// is a third into a step of both lengths. Tolerances so wide leave the longest step as the only bound.
func TestOrder(t *testing.T) {
	y0 := []float64{1, -0.5}
	for _, c := range []struct {
		method ode.Method
		times  []float64
		order  float64
	}{{ode.DormandPrince, []float64{2}, 5}, {ode.DormandPrince, []float64{0.5 + 0.1/3, 2}, 5},
		{ode.SDIRK, []float64{2}, 4}} {
		var before []float64
		for _, h := range []float64{0.1, 0.025} {
			s := ode.New(spiral, ode.Options{Method: c.method, RTol: 1e100, ATol: 1e100, FirstStep: h, MaxStep: h})
			y, grads := solved(t, s, 0, y0, c.times, []float64{0.3, 2})
			want, by := spiralAt(c.times[0], 0, [2]float64(y0), 0.3, 2)
			errs := []float64{0, 0}
			for k := range 2 {
				errs[0] = max(errs[0], math.Abs(y[k]-want[k]))
				for i, g := range grads[k] {
					errs[1] = max(errs[1], math.Abs(g-by[k][i]))
				}
			}
			for k, b := range before {
				order := math.Log2(b/errs[k]) / 2
				require.InDelta(t, c.order, order, 0.5, "method %v at %v: %v after %v", c.method, c.times, errs, before)
			}
			before = errs
		}
	}
}

// The errors of the steps of dy/dt = −a y + cos t shrink as time goes on, so that the error at the end is at most their
// sum: the number of steps times what a step may have. It follows the tolerance over five decades.
func TestTolerance(t *testing.T) {
	const a = 1.3
	f := func(at, y torch.Tensor, p []torch.Tensor) torch.Tensor { return at.Cos().Sub(p[0].Mul(y)) }
	// y = (a cos t + sin t)/(1 + a²) + (y0 − a/(1 + a²)) e^{−at}
	exact := func(at float64) float64 {
		return (a*math.Cos(at)+math.Sin(at))/(1+a*a) + (2-a/(1+a*a))*math.Exp(-a*at)
	}
	times := []float64{0.5, 3, 7, 10}
	for name, method := range methods {
		var first, last float64
		for decade := 4; decade <= 9; decade++ {
			tolerance := math.Pow(10, -float64(decade))
			s := ode.New(f, ode.Options{Method: method, RTol: tolerance, ATol: tolerance})
			worst := 0.0
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				y := ode.Solve(s, []float64{2}, 0, times, a).Values()
				for i, at := range times {
					worst = max(worst, math.Abs(y[i]-exact(at)))
				}
				return nil
			}))
			steps := float64(s.Report().Steps)
			t.Logf("%s: %.0e, error %.1e in %v steps", name, tolerance, worst, steps)
			require.Less(t, worst, 3*steps*tolerance, name) // |y| < 2, so that a step may have 3 tolerances
			if decade == 4 {
				first = worst
			}
			last = worst
		}
		require.Less(t, last, first*1e-4, "%s: five decades of tolerance", name)
	}
}

// predator is dx/dt = (a − b y) x, dy/dt = (d x − c) y, with its parameters in one tensor.
func predator(_, z torch.Tensor, p []torch.Tensor) torch.Tensor {
	x, y := z.At(0), z.At(1)
	return torch.Stack(0, p[0].Sub(p[1].Mul(y)).Mul(x), p[3].Mul(x).Sub(p[2]).Mul(y))
}

// Derivatives agree with differences of order 4 of solutions. With steps of 1e-3 the differences have an error of some
// 1e-11 times the fifth derivative, and of the solutions' error times 1e3.
func TestDifferences(t *testing.T) {
	x := []float64{0.1, 1.1, 0.8, 1, 0.4, 1.2, 0.5} // start, y0, parameters
	times := []float64{1, 4}
	for name, method := range methods {
		o := ode.Options{Method: method, RTol: 1e-12, ATol: 1e-12}
		if method == ode.SDIRK {
			o.RTol, o.ATol = 1e-11, 1e-11 // a method of order 4 takes more than 10000 steps below
		}
		s := ode.New(predator, o)
		at := func(i int, move float64) []float64 {
			z := append([]float64{}, x...)
			z[i] += move
			y, _ := solved(t, s, z[0], z[1:3], times, z[3:])
			return y
		}
		_, grads := solved(t, s, x[0], x[1:3], times, x[3:])
		for i := range x {
			const h = 1e-3
			up, down, up2, down2 := at(i, h), at(i, -h), at(i, 2*h), at(i, -2*h)
			for k := range up {
				want := (8*(up[k]-down[k]) - (up2[k] - down2[k])) / (12 * h)
				require.InDelta(t, want, grads[k][i], 1e-7, fmt.Sprintf("%s: number %d in %d", name, k, i))
			}
		}
	}
}

// The unit of the states does not matter: the values and derivatives of an oscillator have errors of at most 1e-5 of
// their size after ten turns, some 200 steps of 1e-7, whatever that size is. Of states that grow from
// 0 as powers of t up to 11, beside one of 100, each is known to 1 %, down to the rounding of 1e-15 of the largest.
func TestUnits(t *testing.T) {
	oscillator := func(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
		return torch.Stack(0, y.At(1), p[0].Square().Neg().Mul(y.At(0)))
	}
	times, w := []float64{1, 10, 30}, 2.0
	for name, method := range methods {
		s := ode.New(oscillator, ode.Options{Method: method})
		for _, unit := range []float64{1, 1e-12, 1e-200, 1e20} {
			y, by := solved(t, s, 0, []float64{unit, 0}, times, []float64{w})
			for i, at := range times {
				require.InDelta(t, math.Cos(w*at), y[2*i]/unit, 1e-5, "%s in units of %v", name, unit)
				require.InDelta(t, -at*math.Sin(w*at), by[2*i][3]/unit, 1e-5*at, "%s in units of %v", name, unit)
			}
		}

		const links = 12
		chain := ode.New(func(_, y torch.Tensor, _ []torch.Tensor) torch.Tensor {
			out := []any{y.At(0).Neg()}
			for i := 1; i < links; i++ {
				out = append(out, y.At(i-1).Sub(y.At(i)))
			}
			return torch.Stack(0, out...)
		}, ode.Options{Method: method})
		y := solution(t, chain, append([]float64{100}, make([]float64, links-1)...), 0, []float64{0.01, 5})
		for i, at := range []float64{0.01, 5} { // a Poisson number of steps along the chain
			want := 100 * math.Exp(-at)
			for k := range links {
				require.InDelta(t, want, y[links*i+k], 0.01*want+1e-13, "%s: link %d at %v", name, k, at)
				want *= at / float64(k+1)
			}
		}
	}
}

// Between its jumps a van der Pol oscillator has derivatives of 1e-4, and in them of 1e4: each is known to 0.5 % of its
// own size. The steps' errors of 1e-6 move the time of the jumps, which moves a derivative by a thousand times as much.
func TestStepsOverJumps(t *testing.T) {
	for name, method := range methods {
		var grads [2][][]float64
		for i, tolerance := range []float64{1e-6, 1e-11} {
			s := ode.New(func(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
				x, v := y.At(0), y.At(1)
				return torch.Stack(0, v, p[0].Mul(torch.Of(1).Sub(x.Square())).Mul(v).Sub(x))
			}, ode.Options{Method: method, RTol: tolerance, MaxSteps: 1e6})
			_, grads[i] = solved(t, s, 0, []float64{2, 0}, []float64{40, 100, 200}, []float64{100})
		}
		for k, g := range grads[1] {
			require.InEpsilon(t, g[3], grads[0][k][3], 0.005, "%s: number %d", name, k)
		}
	}
}
