package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Barker is the Metropolis-adjusted Barker proposal (Livingstone and Zanella 2022). With z ~ N(0, ε²) and g the
// gradient of the log density, each element of θ moves by
//
//	δ = z with probability σ(g(θ)z), else −z
//
// and the move to θ' = θ + δ is accepted with probability
//
//	min(1, p(θ')/p(θ) · Π (1 + exp(−g(θ)δ))/(1 + exp(g(θ')δ)))
//
// A gradient that is far too large only decides the sign of a move, never its length.
type Barker struct {
	LR          infer.Schedule // ε, about one standard deviation of the posterior; required
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
}

// BarkerState is the state of [Barker]: the point, the number of updates and the random streams.
type BarkerState struct{ method.State }

// Defaults are those of the options of a run.
func (c Barker) Defaults() infer.Options { return infer.Options{Warmup: 1000, Thin: 5} }

// Build checks the configuration and binds it to a target.
func (c Barker) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "Barker"}
	check.LR(c.LR, "about one standard deviation of the posterior")
	check.Schedule("Temperature", &c.Temperature, 1, true)
	return method.Build(check, target, method.Algorithm[BarkerState]{LR: c.LR, Temperature: c.Temperature, Step: step})
}

// step is one update of K chains, of shape [K, d], or of one, [d].
func step(s, next *BarkerState, m *method.Move) {
	x, g := s.Params.Flat, m.Grad.Div(m.Tau)
	z := m.Normal(x).Mul(m.LR)
	up := m.Uniform(x).Lt(g.Mul(z).Sigmoid())
	move := torch.Where(up, z, z.Neg())
	there := m.Evaluate(infer.Params{Layout: s.Params.Layout, Flat: x.Add(move)})

	value := there.Value.Unsqueeze(-1) // one number for each chain
	old := torch.New(m.Info.LogPosterior).Reshape(value.Shape()...)
	back := there.Grad.Div(m.Tau)
	correction := g.Mul(move).Neg().Softplus().Sub(back.Mul(move).Softplus()).Sum(-1).Unsqueeze(-1)
	ratio := value.Sub(old).Div(m.Tau).Add(correction)

	accepted := m.Uniform(ratio).Log().Lt(ratio) // never where the ratio is not a number
	next.Params.Flat = torch.Where(accepted, x.Add(move), x)
	m.Info.Stats = map[string][]float64{"accept": ratio.Exp().Min(1).Values()}
}
