package statespace_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// weights are the coefficients ψ_k of x_t = Σ_k ψ_k e_{t−k}, the moving average without an end (Brockwell and Davis
// 1991, equation 3.3.3).
func weights(ar, ma []float64, n int) []float64 {
	psi := make([]float64, n)
	psi[0] = 1
	for k := 1; k < n; k++ {
		if k <= len(ma) {
			psi[k] = ma[k-1]
		}
		for i, a := range ar {
			if k > i {
				psi[k] += a * psi[k-1-i]
			}
		}
	}
	return psi
}

// The likelihood of an ARMA series is exact: that of the dense normal distribution with the autocovariances
// scale² Σ_k ψ_k ψ_{k+h}, with and without noise, and with numbers missing.
func TestARMA(t *testing.T) {
	for name, c := range map[string]struct{ ar, ma []float64 }{
		"white":             {},
		"AR(1)":             {ar: []float64{0.8}},
		"nearly a walk":     {ar: []float64{0.999}},
		"AR(2) with cycles": {ar: []float64{1.2, -0.7}},
		"MA(1)":             {ma: []float64{0.6}},
		"MA(2) on the edge": {ma: []float64{-1.5, 1}},
		"ARMA(1, 1)":        {ar: []float64{0.7}, ma: []float64{-0.4}},
		"ARMA(1, 3)":        {ar: []float64{-0.5}, ma: []float64{0.3, 0.2, -0.6}},
		"ARMA(3, 1)":        {ar: []float64{0.5, -0.3, 0.2}, ma: []float64{0.9}},
		"a common root":     {ar: []float64{0.5}, ma: []float64{-0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			const scale, steps = 0.8, 15
			psi := weights(c.ar, c.ma, 40000)
			gamma := make([]float64, steps)
			for h := range gamma {
				for k := 0; k+h < len(psi); k++ {
					gamma[h] += scale * scale * psi[k] * psi[k+h]
				}
			}
			do(t, func() {
				part := statespace.ARMA{Scale: scale}
				if c.ar != nil {
					part.AR = tensor(c.ar)
				}
				if c.ma != nil {
					part.MA = tensor(c.ma)
				}
				for _, h := range []float64{0, 0.4} {
					y := wave(steps, true)
					j := joint{steps: steps, p: 1, mean: mat.NewVecDense(steps, nil), cov: mat.NewSymDense(steps, nil)}
					for a := range steps {
						for b := range a + 1 {
							v := gamma[a-b]
							if a == b {
								v += h * h
							}
							j.cov.SetSym(a, b, v)
						}
					}
					got := statespace.New(steps, h, part).LogProb(tensor(y)).Item()
					assert.InDelta(t, j.logp(y), got, 1e-9)
				}
			})
		})
	}
}

// Coefficients of partial autocorrelations are stationary, and have them: the Durbin-Levinson recursion of their
// autocovariances gives them back.
func TestStationary(t *testing.T) {
	do(t, func() {
		r := []float64{0.9, -0.6, 0.3, -0.95}
		phi := statespace.Stationary(tensor(r)).Values()
		psi := weights(phi, nil, 5000)
		gamma := make([]float64, len(r)+1)
		for h := range gamma {
			for k := 0; k+h < len(psi); k++ {
				gamma[h] += psi[k] * psi[k+h]
			}
		}
		// The partial autocorrelation at lag k is the last coefficient of the regression on k numbers before.
		for k := 1; k <= len(r); k++ {
			a, b := mat.NewDense(k, k, nil), mat.NewVecDense(k, nil)
			for i := range k {
				b.SetVec(i, gamma[i+1])
				for j := range k {
					a.Set(i, j, gamma[int(math.Abs(float64(i-j)))])
				}
			}
			var x mat.VecDense
			if err := x.SolveVec(a, b); err != nil {
				t.Fatal(err)
			}
			assert.InDelta(t, r[k-1], x.AtVec(k-1), 1e-9)
		}
		assert.Equal(t, []float64{0.5}, statespace.Stationary(tensor([]float64{0.5})).Values())
	})
}

// With partial autocorrelations between −1 and 1 a series always has a density.
func TestARMAOfPartialAutocorrelations(t *testing.T) {
	do(t, func() {
		s := statespace.New(5, 0.1, statespace.ARMA{AR: statespace.Stationary(tensor([]float64{-0.99, 0.99, 0.99}))})
		v := s.LogProb(tensor(wave(5, false))).Item()
		assert.False(t, math.IsNaN(v) || math.IsInf(v, 0))
		assert.Equal(t, []int{0}, statespace.Stationary(torch.Zeros(0)).Shape())
	})
}

// exactARMA is the log density of a series by dense algebra in 400 bits: the autocovariances g_k of the autoregression
// solve g_k − Σ φ_i g_|k−i| = scale² [k = 0] (Yule and Walker), those of the series follow, and the numbers y at times
// where they are not NaN have the density of L D Lᵀ.
func exactARMA(ar, ma []float64, scale float64, y []float64) float64 {
	const bits = 400
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(x) }
	zeros := func(rows, columns int) [][]*big.Float {
		out := make([][]*big.Float, rows)
		for i := range out {
			for range columns {
				out[i] = append(out[i], number(0))
			}
		}
		return out
	}
	less := func(x, a, b *big.Float) { x.Sub(x, number(0).Mul(a, b)) }
	p := len(ar)
	a := zeros(p+1, p+2)
	a[0][p+1] = number(0).Mul(number(scale), number(scale))
	for k := range p + 1 {
		a[k][k].Add(a[k][k], number(1))
		for i, phi := range ar {
			lag := k - i - 1
			lag = max(lag, -lag)
			a[k][lag].Sub(a[k][lag], number(phi))
		}
	}
	for k := range p + 1 { // Gauss and Jordan, with the largest pivot
		best := k
		for i := k; i <= p; i++ {
			if number(0).Abs(a[i][k]).Cmp(number(0).Abs(a[best][k])) > 0 {
				best = i
			}
		}
		a[k], a[best] = a[best], a[k]
		for i := range p + 1 {
			if f := number(0).Quo(a[i][k], a[k][k]); i != k {
				for j := k; j <= p+1; j++ {
					less(a[i][j], f, a[k][j])
				}
			}
		}
	}
	theta := append([]float64{1}, ma...)
	var g []*big.Float // of the autoregression
	for k := range len(y) + len(theta) + p {
		if k <= p {
			g = append(g, number(0).Quo(a[k][p+1], a[k][k]))
			continue
		}
		next := number(0)
		for i, phi := range ar {
			next.Add(next, number(0).Mul(number(phi), g[k-i-1]))
		}
		g = append(g, next)
	}
	var at []int
	for i, v := range y {
		if !math.IsNaN(v) {
			at = append(at, i)
		}
	}
	cov, v := zeros(len(at), len(at)), make([]*big.Float, len(at))
	out := 0.0
	for i := range at {
		v[i] = number(y[at[i]])
		for j := range at {
			for k, s := range theta {
				for l, u := range theta {
					lag := at[i] - at[j] + k - l
					cov[i][j].Add(cov[i][j], number(0).Mul(number(0).Mul(number(s), number(u)), g[max(lag, -lag)]))
				}
			}
		}
	}
	for i := range at { // eliminate: the pivots are the variances, v the errors of prediction
		d, _ := cov[i][i].Float64()
		e, _ := v[i].Float64()
		out -= (math.Log(2*math.Pi*d) + e*e/d) / 2
		for j := i + 1; j < len(at); j++ {
			f := number(0).Quo(cov[j][i], cov[i][i])
			less(v[j], f, v[i])
			for k := i; k < len(at); k++ {
				less(cov[j][k], f, cov[i][k])
			}
		}
	}
	return out
}

// Close to the edge of the stationary coefficients the log density is that of 400 bits to 1e-9, or NaN; from the edge
// on it is NaN, and Validate says so.
func TestARMANearTheEdge(t *testing.T) {
	y := []float64{0.1, -0.2, math.NaN(), 0.3, 0.25, 1}
	twice := func(r float64) []float64 { return []float64{2 * r, -r * r} }
	pair := func(r, angle float64) []float64 { return []float64{2 * r * math.Cos(angle), -r * r} }
	times := func(a, b []float64) []float64 { // the coefficients of the product of both polynomials
		out := make([]float64, len(a)+len(b))
		for i, x := range a {
			out[i] += x
			for j, z := range b {
				out[i+j+1] -= x * z
			}
		}
		for j, z := range b {
			out[j] += z
		}
		return out
	}
	seasonal := make([]float64, 12)
	seasonal[11] = 0.98
	for name, c := range map[string]struct {
		ar, ma    []float64
		mayRefuse bool
		notFinite bool
	}{
		"1 - 1e-6":           {ar: []float64{1 - 1e-6}},
		"1 - 1e-9":           {ar: []float64{1 - 1e-9}},
		"1 - 1e-10":          {ar: []float64{1 - 1e-10}},
		"1 - 1e-12":          {ar: []float64{1 - 1e-12}},
		"1 - 2^-53":          {ar: []float64{1 - 0x1p-53}},
		"2^-53 - 1":          {ar: []float64{0x1p-53 - 1}},
		"with a difference":  {ar: []float64{1 - 1e-10}, ma: []float64{-1}},
		"twice 0.99":         {ar: twice(0.99)},
		"twice 0.99999":      {ar: twice(0.99999)},
		"twice -0.99999":     {ar: twice(-0.99999)},
		"twice, with a mean": {ar: twice(0.99999), ma: []float64{0.5, -0.3}},
		"twice 1 - 1e-7":     {ar: twice(1 - 1e-7)},
		"both ends":          {ar: times([]float64{0.99999}, []float64{-0.99999})},
		"a cycle":            {ar: pair(0.99999, 1)},
		"a cycle of years":   {ar: seasonal},
		"years and a root":   {ar: times([]float64{0.999}, seasonal)},
		"three times 0.999":  {ar: times(twice(0.999), []float64{0.999}), mayRefuse: true},
		"three of 0.99999":   {ar: times(twice(0.99999), []float64{0.99999}), mayRefuse: true},
		"two equal cycles":   {ar: times(pair(0.9999, 1), pair(0.9999, 1)), mayRefuse: true},
		"1":                  {ar: []float64{1}, notFinite: true},
		"-1":                 {ar: []float64{-1}, notFinite: true},
		"1 + 2^-52":          {ar: []float64{1 + 0x1p-52}, notFinite: true},
		"1.001":              {ar: []float64{1.001}, notFinite: true},
		"twice 1":            {ar: twice(1), notFinite: true},
		"twice 1.5":          {ar: twice(1.5), notFinite: true},
		"a cycle outside":    {ar: pair(1.0001, 1), notFinite: true},
		"years outside":      {ar: times([]float64{1.01}, seasonal), notFinite: true},
	} {
		t.Run(name, func(t *testing.T) {
			do(t, func() {
				part := statespace.ARMA{AR: tensor(c.ar), Scale: 0.5}
				if c.ma != nil {
					part.MA = tensor(c.ma)
				}
				s := statespace.New(len(y), 0, part)
				got := s.LogProb(tensor(y)).Item()
				if c.notFinite || c.mayRefuse && math.IsNaN(got) {
					assert.True(t, math.IsNaN(got), "%v", got)
					assert.ErrorContains(t, s.Validate(), "ARMA.AR")
					return
				}
				assert.NoError(t, s.Validate())
				want := exactARMA(c.ar, c.ma, 0.5, y)
				assert.InDelta(t, want, got, 1e-9*math.Max(1, math.Abs(want)))
			})
		})
	}
}
