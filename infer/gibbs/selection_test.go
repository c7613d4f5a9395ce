package gibbs_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// selection is variable selection: y = x(g·b) + noise, with g ~ Bernoulli(0.4) and b ~ N(0, 1).
func selection(p int) ppl.Model {
	return func(c *ppl.Ctx) {
		var w torch.Tensor
		c.Plate("columns", p, func(c *ppl.Ctx) {
			w = c.Sample("g", dist.Bernoulli(0.4)).Mul(c.Sample("b", dist.Normal(0, 1)))
		})
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").MatMul(w), 1), c.Data("y"))
		})
	}
}

func selectionData(n, p int) (x, y []float64, data infer.Batch) {
	x, y = noise(n*p, 1), noise(n, 2)
	for i := range n {
		for j := 1; j < p; j++ {
			x[i*p+j] = 0.6*x[i*p+j-1] + 0.8*x[i*p+j]
		}
		y[i] += 0.5*x[i*p] - 0.4*x[i*p+3]
	}
	return x, y, infer.Batch{"x": matrix(x, n, p), "y": vec(y)}
}

// inclusion are the posterior probabilities of g, from all 2^p states: given g, y is normal with the covariance
// 1 + X_g X_g'. The last number is the expectation of Σg.
func inclusion(x, y []float64, n, p int) []float64 {
	logs, top := make([]float64, 1<<p), math.Inf(-1)
	for s := range logs {
		cov := mat.NewSymDense(n, nil)
		for i := range n {
			for k := range i + 1 {
				v := 0.0
				for j := range p {
					if s>>j&1 == 1 {
						v += x[i*p+j] * x[k*p+j]
					}
				}
				if i == k {
					v++
				}
				cov.SetSym(i, k, v)
			}
		}
		var chol mat.Cholesky
		chol.Factorize(cov)
		var z mat.VecDense
		_ = chol.SolveVecTo(&z, mat.NewVecDense(n, y))
		logs[s] = -0.5*mat.Dot(&z, mat.NewVecDense(n, y)) - 0.5*chol.LogDet()
		for j := range p {
			logs[s] += []float64{math.Log(0.6), math.Log(0.4)}[s>>j&1]
		}
		top = max(top, logs[s])
	}
	out, sum := make([]float64, p+1), 0.0
	for s, l := range logs {
		w := math.Exp(l - top)
		sum += w
		for j := range p {
			out[j] += w * float64(s>>j&1)
			out[p] += w * float64(s>>j&1)
		}
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

// The probabilities of all columns are those of the 2^8 states, with 20 chains.
func TestSelectionAgainstEnumeration(t *testing.T) {
	const n, p = 25, 8
	x, y, data := selectionData(n, p)
	program := compiled(t, selection(p), data)
	d := sampled(t, program, gibbs.Blocks{
		{Sites: []string{"g"}, Method: gibbs.Discrete{}},
		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}},
	}, infer.Options{Chains: 20, Warmup: 150, Draws: 300, Seed: 7})
	g, want := at(t, d, "g"), inclusion(x, y, n, p)
	for j := range p {
		agrees(t, fmt.Sprintf("g[%d]", j), means(t, d, func(row []float64) float64 { return row[g.Offset+j] }), want[j])
	}
	agrees(t, "Σg", means(t, d, func(row []float64) (s float64) {
		for j := range p {
			s += row[g.Offset+j]
		}
		return s
	}), want[p])
}
