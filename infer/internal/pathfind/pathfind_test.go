package pathfind

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// quadratic is the log density of N(mean, P⁻¹), up to a constant.
func quadratic(mean []float64, p *mat.SymDense) Density {
	d := len(mean)
	return func(x, logp, grad []float64) error {
		for k := range logp {
			delta := mat.NewVecDense(d, floats.SubTo(make([]float64, d), x[k*d:(k+1)*d], mean))
			var g mat.VecDense
			g.MulVec(p, delta)
			logp[k] = -0.5 * mat.Dot(delta, &g)
			for i := range d {
				grad[k*d+i] = -g.AtVec(i)
			}
		}
		return nil
	}
}

func gaussians(seed uint64) func([]float64) error {
	rng := rand.New(rand.NewPCG(seed, 17))
	return func(z []float64) error {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		return nil
	}
}

// precision is a random symmetric positive definite matrix with eigenvalues from 1 to 100.
func precision(d int, rng *rand.Rand) *mat.SymDense {
	raw := mat.NewDense(d, d, nil)
	for i := range d {
		for j := range d {
			raw.Set(i, j, rng.NormFloat64())
		}
	}
	var qr mat.QR
	qr.Factorize(raw)
	var q mat.Dense
	qr.QTo(&q)
	p := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			s := 0.0
			for k := range d {
				s += q.At(i, k) * q.At(j, k) * math.Pow(100, float64(k)/float64(d))
			}
			p.SetSym(i, j, s)
		}
	}
	return p
}

// The compact form of the inverse Hessian is the product of the BFGS updates, H ← (I − ρszᵀ) H (I − ρzsᵀ) + ρssᵀ from
// diag(α), for fewer and for more pairs than dimensions, and both give the same direction.
func TestCompactFormIsTheUpdates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ d, pairs int }{{8, 1}, {8, 3}, {3, 5}, {1, 2}, {20, 6}} {
		p := precision(c.d, rng)
		m := newMemory(c.d, 6)
		for range c.pairs {
			s := make([]float64, c.d)
			for i := range s {
				s[i] = rng.NormFloat64()
			}
			var z mat.VecDense
			z.MulVec(p, mat.NewVecDense(c.d, s))
			m.add(s, z.RawVector().Data)
		}
		require.Len(t, m.s, c.pairs)
		h := mat.NewDense(c.d, c.d, nil)
		for i, a := range m.alpha {
			h.Set(i, i, a)
		}
		for k := range m.s {
			s, z := mat.NewVecDense(c.d, m.s[k]), mat.NewVecDense(c.d, m.z[k])
			rho := 1 / mat.Dot(s, z)
			left := mat.NewDense(c.d, c.d, nil)
			left.Outer(-rho, s, z)
			for i := range c.d {
				left.Set(i, i, left.At(i, i)+1)
			}
			var next mat.Dense
			next.Mul(left, h)
			h.Mul(&next, left.T())
			var add mat.Dense
			add.Outer(rho, s, s)
			h.Add(h, &add)
		}
		x, g := make([]float64, c.d), make([]float64, c.d)
		for i := range g {
			g[i] = rng.NormFloat64()
		}
		q, ok := m.normal(x, g)
		require.True(t, ok)
		direction := make([]float64, c.d)
		m.ascend(direction, g)
		var want mat.VecDense
		want.MulVec(h, mat.NewVecDense(c.d, g))
		scale := mat.Norm(&want, 2)
		for i := range c.d {
			require.InDelta(t, want.AtVec(i), direction[i], 1e-9*scale)
			require.InDelta(t, want.AtVec(i), q.Mean[i], 1e-9*scale) // x = 0, so that the mean is Hg
		}
		require.InEpsilon(t, mat.Det(h), math.Exp(q.logDet), 1e-8)
		for i, v := range q.Variances() {
			require.InEpsilon(t, h.At(i, i), v, 1e-9)
		}
		z, y := make([]float64, c.d), make([]float64, c.d)
		require.NoError(t, gaussians(3)(z))
		logq := q.Draw(y, z)
		require.InDelta(t, logq, q.LogDensity(y), 1e-9*(1+math.Abs(logq)))
		var inverse mat.Dense // the density of a normal distribution, with the matrix of the updates
		require.NoError(t, inverse.Inverse(h))
		delta := mat.NewVecDense(c.d, floats.SubTo(make([]float64, c.d), y, q.Mean))
		exact := -0.5*mat.Inner(delta, &inverse, delta) - 0.5*math.Log(mat.Det(h)) - float64(c.d)/2*math.Log(2*math.Pi)
		require.InDelta(t, exact, logq, 1e-7*(1+math.Abs(exact)))
	}
}

// Of a normal target in one dimension the secant is the curvature, so that the fit is the target but for rounding. In
// more dimensions the estimate of the curvature is never exact. Up to as many as there are pairs, the divergence
// KL(q‖p), in closed form, is at most 0.1: the total variation then is at most √(KL/2) = 0.22, by Pinsker's inequality.
// The ELBO is log Z − KL within four standard errors.
func TestNormalTarget(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, d := range []int{1, 2, 5, 10} {
		p := precision(d, rng)
		mean, start := make([]float64, d), make([]float64, d)
		for i := range mean {
			mean[i], start[i] = rng.NormFloat64(), 5*rng.NormFloat64()
		}
		const draws = 200
		fit, err := Find(quadratic(mean, p), start, Options{Tolerance: 1e-14, Draws: draws}, gaussians(7))
		require.NoError(t, err)
		logZ := float64(d)/2*math.Log(2*math.Pi) - 0.5*math.Log(mat.Det(p))
		covariance := mat.NewSymDense(d, fit.Covariance())
		var product mat.Dense
		product.Mul(p, covariance)
		delta := mat.NewVecDense(d, floats.SubTo(make([]float64, d), fit.Mean, mean))
		divergence := 0.5 * (mat.Trace(&product) - float64(d) - math.Log(mat.Det(&product)) + mat.Inner(delta, p, delta))
		limit := 0.1
		switch {
		case d == 1:
			limit = 1e-9
		case d > 6: // more than the pairs that are kept: a thirtieth of the divergence of N(mean, I)
			limit = (mat.Trace(p) - float64(d) - math.Log(mat.Det(p))) / 60
		}
		require.Less(t, divergence, limit)
		// log p − log q is ½ zᵀ(I − LᵀPL)z and linear terms in z: its variance is ½ tr((I − PΣ)²) + δᵀPΣPδ.
		for i := range d {
			product.Set(i, i, product.At(i, i)-1)
		}
		var square mat.Dense
		square.Mul(&product, &product)
		var pull mat.VecDense
		pull.MulVec(p, delta)
		variance := 0.5*mat.Trace(&square) + mat.Inner(&pull, covariance, &pull)
		// The largest of fit.Iterations estimates was chosen, which adds to its noise √(2 log n) standard errors at most.
		se := math.Sqrt(variance / draws)
		require.InDelta(t, logZ-divergence, fit.ELBO, (4+math.Sqrt(2*math.Log(float64(1+fit.Iterations))))*se+1e-9)
		require.Positive(t, fit.Evaluations)
		require.LessOrEqual(t, fit.Best, fit.Iterations)
	}
}

// The climb ends at the optimum of a curved valley (Rosenbrock 1960), where the value is 0, and in fewer evaluations
// than the 40 of each step.
func TestClimbCurvedValley(t *testing.T) {
	valley := func(x, logp, grad []float64) error {
		for k := range logp {
			a, b := x[2*k], x[2*k+1]
			logp[k] = -(1-a)*(1-a) - 100*(b-a*a)*(b-a*a)
			grad[2*k], grad[2*k+1] = 2*(1-a)+400*a*(b-a*a), -200*(b-a*a)
		}
		return nil
	}
	o := Options{Tolerance: 1e-16}
	o.fill()
	c, err := newClimb(valley, []float64{-1.2, 1}, o)
	require.NoError(t, err)
	for moved := true; moved && !c.ended; {
		moved, err = c.step()
		require.NoError(t, err)
	}
	require.InDelta(t, 1, c.x[0], 1e-6)
	require.InDelta(t, 1, c.x[1], 1e-6)
	require.Less(t, c.evaluations, 200)
}

// A density without a mode (the funnel of Neal 2003 seen from its mouth: log p rises without bound at the neck) still
// gives an approximation, from early in the path. A wall of points that are not finite is stepped back from.
func TestPathologies(t *testing.T) {
	funnel := func(x, logp, grad []float64) error {
		for k := range logp {
			v, y := x[2*k], x[2*k+1]
			logp[k] = -v*v/18 - v/2 - y*y*math.Exp(-v)/2
			grad[2*k], grad[2*k+1] = -v/9-0.5+y*y*math.Exp(-v)/2, -y*math.Exp(-v)
		}
		return nil
	}
	fit, err := Find(funnel, []float64{1, 1}, Options{}, gaussians(1))
	require.NoError(t, err)
	require.False(t, math.IsNaN(fit.ELBO))

	wall := func(x, logp, grad []float64) error { // the exponential of a gamma law of shape 3, not finite below 0
		for k := range logp {
			if logp[k], grad[k] = math.NaN(), math.NaN(); x[k] > 0 {
				logp[k], grad[k] = 2*math.Log(x[k])-x[k], 2/x[k]-1
			}
		}
		return nil
	}
	c, err := newClimb(wall, []float64{0.1}, Options{History: 6, Tolerance: 1e-12})
	require.NoError(t, err)
	for moved := true; moved && !c.ended; {
		moved, err = c.step()
		require.NoError(t, err)
	}
	require.InDelta(t, 2, c.x[0], 1e-4)
	_, err = newClimb(wall, []float64{-1}, Options{History: 6})
	require.ErrorIs(t, err, ErrStart)

	flat := func(_, logp, grad []float64) error {
		clear(logp)
		clear(grad)
		return nil
	}
	_, err = Find(flat, []float64{0}, Options{}, gaussians(1))
	require.ErrorIs(t, err, ErrNone)
	broken := errors.New("broken")
	_, err = Find(func(_, _, _ []float64) error { return broken }, []float64{0}, Options{}, gaussians(1))
	require.ErrorIs(t, err, broken)
}

// The squared spread of a normal distribution q of variances v, of n draws, is on average the variance of log p - log q
// at p = N(0, I): Σ (1-v_i)²/2 + m_i² v_i, with its mean m. Each may be off by four standard errors.
func TestSpread(t *testing.T) {
	q := &Normal{Mean: []float64{0.3, -0.2, 0}, Scale: []float64{0.5, 1, 1.5}}
	require.True(t, q.settle())
	want := 0.0
	for i, m := range q.Mean {
		v := q.Scale[i] * q.Scale[i]
		want += (1-v)*(1-v)/2 + m*m*v
	}
	one := mat.NewSymDense(3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1})
	normal := gaussians(2)
	s := newSearch(quadratic(make([]float64, 3), one), normal, 5, 3)
	squares := make([]float64, 4000)
	for i := range squares {
		require.NoError(t, normal(s.z))
		s.best.ELBO = math.Inf(-1)
		err := s.judge(q, 1)
		require.NoError(t, err)
		squares[i] = s.best.Spread * s.best.Spread
	}
	mean, sd := stat.MeanStdDev(squares, nil)
	require.InDelta(t, want, mean, 4*sd/math.Sqrt(float64(len(squares))))
}

// Approach ends about as high as draws are: less than 5 d nats below the mode, which its estimate of the curvature from
// a few steps leaves, on normal targets with precisions from f to 10 f. It does so from far below, however steep they
// are, within the evaluations that it allows itself and a step's.
func TestApproach(t *testing.T) {
	const d = 20
	for seed := range uint64(20) {
		f := []float64{1, 1e6, 1e13}[seed%3]
		p := mat.NewSymDense(d, nil)
		for i := range d {
			p.SetSym(i, i, f*math.Pow(10, float64(i)/(d-1)))
		}
		evaluations := 0
		target := quadratic(make([]float64, d), p)
		counted := func(x, logp, grad []float64) error { evaluations++; return target(x, logp, grad) }
		start := make([]float64, d)
		require.NoError(t, gaussians(seed)(start))
		x, err := Approach(counted, start)
		require.NoError(t, err)
		var value [1]float64
		require.NoError(t, target(x, value[:], make([]float64, d)))
		require.Greater(t, value[0], -5.0*d, "seed %d", seed)
		require.LessOrEqual(t, evaluations, MostApproach+mostTries)
	}
	nowhere := func(_, logp, _ []float64) error { logp[0] = math.NaN(); return nil }
	x, err := Approach(nowhere, []float64{1, 2})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2}, x)
	_, err = Approach(func(_, _, _ []float64) error { return errors.New("no") }, []float64{1})
	require.ErrorContains(t, err, "no")
}
