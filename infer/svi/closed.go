package svi

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// expectation is E_q[a log p − b log q], a and b the weights of prior and guide, of the batch shape of p. ok is false
// where it has no closed form here.
func expectation(q, p dist.Distribution, w weights) (value torch.Tensor, ok bool) {
	q, n := base(q), len(p.EventShape())
	p = base(p)
	a, b := paramsOf(q), paramsOf(p)
	f, ok := closedForms[family(p)]
	if !ok || family(q) != family(p) || len(q.EventShape()) != len(p.EventShape()) || a == nil || b == nil {
		return torch.Tensor{}, false
	}
	cross, entropy := f(a, b)
	all := cross.Mul(w.prior)
	if w.guide != 0 {
		all = all.Add(entropy.Mul(w.guide))
	}
	n -= len(p.EventShape())
	// Where guide or prior has one parameter for all elements, each still has its term.
	shape := broadcast(q.BatchShape(), p.BatchShape())
	value = all.Expand(shape...)
	if n == 0 {
		return value, true
	}
	var over []int
	for d := range n {
		over = append(over, -1-d)
	}
	return torch.Of(value.T().MustSumDimIntlist(torch.Int64s(over), false, value.T().DType(), false)), true
}

// broadcast is the common shape of two that fit, as the values of guide and model do.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]int{}, a...)
	for i, n := range b {
		if at := len(a) - len(b) + i; out[at] == 1 {
			out[at] = n
		}
	}
	return out
}

// closedForms give E_q[log p] and the entropy −E_q[log q] of two distributions of a family, from their parameters.
var closedForms = map[string]func(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor){
	"Normal": normals,
	"LogNormal": func(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
		cross, entropy = normals(q, p) // of the logarithm x, and log|de^x/dx| = x
		return cross.Sub(q["loc"]), entropy.Add(q["loc"])
	},
	"Gamma":       gammas,
	"Exponential": gammas,
	"Beta": func(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
		return betas(q, p), betas(q, q).Neg()
	},
	"Dirichlet": func(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
		return dirichlets(q, p), dirichlets(q, q).Neg()
	},
	"Bernoulli": func(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
		return bernoullis(q, p), bernoullis(q, q).Neg()
	},
	"Categorical": func(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
		return categoricals(q, p), categoricals(q, q).Neg()
	},
}

// normals: −log σ_p − ½ log 2π − (σ_q² + (μ_q − μ_p)²)/(2σ_p²), and log σ_q + ½ log 2πe.
func normals(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
	const halfLog2Pi = 0.91893853320467274178
	squares := q["scale"].Square().Add(q["loc"].Sub(p["loc"]).Square())
	cross = squares.Div(p["scale"].Square()).Mul(-0.5).Sub(p["scale"].Log()).Sub(halfLog2Pi)
	return cross, q["scale"].Log().Add(halfLog2Pi + 0.5)
}

// gammas, of concentration α and rate β: α_p log β_p − log Γ(α_p) + (α_p − 1) E_q[log x] − β_p E_q[x], with
// E_q[log x] = ψ(α_q) − log β_q. An exponential distribution has α = 1.
func gammas(q, p map[string]torch.Tensor) (cross, entropy torch.Tensor) {
	cross = gammaCross(q, p)
	return cross, gammaCross(q, q).Neg()
}

func gammaCross(q, p map[string]torch.Tensor) torch.Tensor {
	a, b := concentration(q), concentration(p)
	logs := a.Digamma().Sub(q["rate"].Log())
	return b.Mul(p["rate"].Log()).Sub(b.Lgamma()).Add(b.Sub(1).Mul(logs)).Sub(p["rate"].Mul(a).Div(q["rate"]))
}

func concentration(of map[string]torch.Tensor) torch.Tensor {
	if a, ok := of["concentration"]; ok {
		return a
	}
	return torch.Of(of["rate"].T().MustOnesLike(false))
}

// betas: (a_p − 1) E_q[log x] + (b_p − 1) E_q[log(1 − x)] − log B(a_p, b_p).
func betas(q, p map[string]torch.Tensor) torch.Tensor {
	a, b, both := q["concentration1"], q["concentration0"], q["concentration1"].Add(q["concentration0"])
	c, d := p["concentration1"], p["concentration0"]
	one, zero := a.Digamma().Sub(both.Digamma()), b.Digamma().Sub(both.Digamma())
	return c.Sub(1).Mul(one).Add(d.Sub(1).Mul(zero)).Add(c.Add(d).Lgamma()).Sub(c.Lgamma()).Sub(d.Lgamma())
}

// dirichlets: Σ (p_i − 1)(ψ(q_i) − ψ(Σ q)) + log Γ(Σ p) − Σ log Γ(p_i).
func dirichlets(q, p map[string]torch.Tensor) torch.Tensor {
	a, b := q["concentration"], p["concentration"]
	logs := a.Digamma().Sub(a.Sum(-1).Unsqueeze(-1).Digamma())
	return b.Sub(1).Mul(logs).Sum(-1).Add(b.Sum(-1).Lgamma()).Sub(b.Lgamma().Sum(-1))
}

// bernoullis: π_q log π_p + (1 − π_q) log(1 − π_p), with 0 log 0 = 0.
func bernoullis(q, p map[string]torch.Tensor) torch.Tensor {
	share, isLogits := q["logits"]
	if isLogits {
		share = share.Sigmoid()
	} else {
		share = q["probs"]
	}
	not := share.Neg().Add(1)
	if logits, ok := p["logits"]; ok {
		return share.Mul(logits.LogSigmoid()).Add(not.Mul(logits.Neg().LogSigmoid()))
	}
	return xlogy(share, p["probs"]).Add(xlogy(not, p["probs"].Neg().Add(1)))
}

// xlogy is x log y, 0 where x is 0.
func xlogy(x, y torch.Tensor) torch.Tensor { return torch.Of(x.T().MustXlogy(y.T(), false)) }

// categoricals: Σ π_q log π_p.
func categoricals(q, p map[string]torch.Tensor) torch.Tensor {
	var share torch.Tensor
	if logits, ok := q["logits"]; ok {
		share = logits.Softmax(-1)
	} else {
		share = q["probs"].Div(q["probs"].Sum(-1).Unsqueeze(-1))
	}
	if logits, ok := p["logits"]; ok {
		return share.Mul(logits.LogSoftmax(-1)).Sum(-1)
	}
	return xlogy(share, p["probs"].Div(p["probs"].Sum(-1).Unsqueeze(-1))).Sum(-1)
}

// family is the name of a family, whatever its parameters.
func family(d dist.Distribution) string {
	switch n := d.Name(); n {
	case "BernoulliLogits", "CategoricalLogits":
		return n[:len(n)-len("Logits")]
	default:
		return n
	}
}

// paramsOf are the parameters of a distribution; nil where it does not tell.
func paramsOf(d dist.Distribution) map[string]torch.Tensor {
	p, ok := d.(dist.Parameterised)
	if !ok {
		return nil
	}
	out := map[string]torch.Tensor{}
	for name, v := range p.Params() {
		t, ok := v.(torch.Tensor)
		if !ok {
			return nil
		}
		if x, number := t.Number(); number && math.IsNaN(x) {
			return nil
		}
		out[name] = t
	}
	return out
}
