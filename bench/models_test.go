package bench

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
)

// logistic is the density of Logistic in plain Go, from the Bernoulli probabilities instead of the signed logits.
func logistic(m *Logistic, w []float64) float64 {
	lp := 0.0
	for i := range m.N {
		eta := 0.0
		for j, wj := range w {
			eta += m.X[i*m.D+j] * wj
		}
		p := 1 / (1 + math.Exp(-eta))
		if m.Sign[i] > 0 {
			lp += math.Log(p)
		} else {
			lp += math.Log(1 - p)
		}
	}
	for _, wj := range w {
		lp -= wj * wj / 2
	}
	return lp
}

// schools is the density of Schools in plain Go, as normal and Cauchy log densities whose constants are then taken off.
func schools(x []float64) float64 {
	normal := func(v, mean, sd float64) float64 {
		u := (v - mean) / sd
		return -u*u/2 - math.Log(sd) - math.Log(2*math.Pi)/2
	}
	mu, tau := x[0], math.Exp(x[1])
	lp := normal(mu, 0, 5) + math.Log(2/(math.Pi*5*(1+tau*tau/25))) + math.Log(tau)
	constant := normal(0, 0, 5) + math.Log(2/(math.Pi*5))
	for j, z := range x[2:] {
		lp += normal(z, 0, 1) + normal(SchoolsY[j], mu+tau*z, SchoolsSigma[j])
		constant += normal(0, 0, 1) + normal(0, 0, SchoolsSigma[j])
	}
	return lp - constant
}

// central is the gradient of f at x by central differences of fourth order.
func central(f func([]float64) float64, x []float64) []float64 {
	const h = 1e-3
	at := func(i int, d float64) float64 {
		y := append([]float64(nil), x...)
		y[i] += d
		return f(y)
	}
	g := make([]float64, len(x))
	for i := range x {
		g[i] = (8*(at(i, h)-at(i, -h)) - (at(i, 2*h) - at(i, -2*h))) / (12 * h)
	}
	return g
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))) {
		t.Errorf("%s = %.15g, want %.15g within %g", what, got, want, tol)
	}
}

// The densities equal an independent implementation to rounding, and their gradients its finite differences to the
// differences' own error.
func TestDensitiesEqualPlainGo(t *testing.T) {
	lr, err := NewLogistic(1000, 25, torch.CPU)
	if err != nil {
		t.Fatal(err)
	}
	es, err := NewSchools(torch.CPU)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		f     func(torch.Tensor) torch.Tensor
		plain func([]float64) float64
		x     []float64
	}{
		{"logistic", lr.LogDensity, func(w []float64) float64 { return logistic(lr, w) }, lr.Start()},
		{"schools", es.LogDensity, schools, SchoolsStart(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			value, grad := evaluate(t, func(x torch.Tensor) (torch.Tensor, torch.Tensor, error) {
				return torch.ValueAndGrad(c.f, x)
			}, c.x)
			near(t, "log density", value[0], c.plain(c.x), 1e-12)
			for i, want := range central(c.plain, c.x) {
				near(t, fmt.Sprintf("gradient %d", i), grad[i], want, 1e-8)
			}
		})
	}
}

// The chains of the mapped density equal the density of each row.
func TestChainsEqualRows(t *testing.T) {
	es, err := NewSchools(torch.CPU)
	if err != nil {
		t.Fatal(err)
	}
	const k = 4
	x := SchoolsStart(k)
	vmapped := func(x torch.Tensor) (torch.Tensor, torch.Tensor, error) {
		return torch.VmapValueAndGrad(es.LogDensity, x)
	}
	values, grads := evaluate(t, vmapped, x, k, SchoolsDim)
	for c := range k {
		row := x[c*SchoolsDim : (c+1)*SchoolsDim]
		near(t, fmt.Sprintf("log density of chain %d", c), values[c], schools(row), 1e-12)
		for i, want := range central(schools, row) {
			near(t, fmt.Sprintf("gradient %d of chain %d", i, c), grads[c*SchoolsDim+i], want, 1e-8)
		}
	}
}

func evaluate(t *testing.T, f func(torch.Tensor) (torch.Tensor, torch.Tensor, error), x []float64,
	shape ...int) (values,
	grads []float64) {
	t.Helper()
	err := torch.Do(func(*torch.Scope) error {
		v, g, err := f(torch.New(x, shape...))
		if err != nil {
			return err
		}
		values, grads = torch.Must(torch.ToSlice[float64](v)), torch.Must(torch.ToSlice[float64](g))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values, grads
}
