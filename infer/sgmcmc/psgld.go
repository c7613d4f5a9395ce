package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// PSGLD is stochastic gradient Langevin dynamics with the diagonal preconditioner of RMSprop (Li et al. 2016): each
// element has a step size of its own, larger where gradients are small.
//
//	v' = av + (1 − a)g(θ)²
//	G  = 1/(λ + √v')
//	θ' = θ + εGg(θ) + √(2τεG) z,  τ = T/N
//
// all for each element, with v = 0 at the start. The gradient in v is that of the mean log posterior, as in the paper;
// the paper's step size is 2ε/N.
//
// A preconditioner that depends on θ needs the drift term τεΓ, Γ_i = ∂G_i/∂θ_i, to leave the target alone. It is
// omitted here, as it is in practice: it needs second derivatives. With constant G the law approaches
// exp(logPosterior/τ) as ε goes to 0, and is that of SGLD with the step size εG of each element. With changing G there
// is a bias that no small step removes; it is small when λ is large, and when v averages over many more updates, 1/(1 −
// a), than θ needs to move: on a normal target of variance 1 with λ = 0.3 and ε = 0.02 the variance is 1.69 with a =
// 0.5, 1.19 with 0.99 and 1.03 with 0.999. Scales of hierarchical models suffer most: with the defaults the sigma of
// models.Salmonella is 1.1 posterior standard deviations too low. At T = 0 it is gradient ascent with RMSprop.
type PSGLD struct {
	LR          infer.Schedule // step size ε; required
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	Decay       float64        // a in (0, 1), of the average of squared gradients; 0 means 0.99
	Eps         float64        // λ, a limit 1/λ on G; 0 means 1e-5
}

// PSGLDState is the state of [PSGLD].
type PSGLDState struct {
	method.State
	Square torch.Tensor // v, of the shape of θ
}

// Defaults are those of the options of a run.
func (c PSGLD) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c PSGLD) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.PSGLD"}
	check.LR(c.LR, "the move of an element with a constant gradient")
	check.Schedule("Temperature", &c.Temperature, 1, false)
	check.Value("Eps", &c.Eps, 1e-5, true)
	check.Fraction("Decay", &c.Decay, 0.99)
	return method.Build(check, target, method.Algorithm[PSGLDState]{
		LR: c.LR, Temperature: c.Temperature, Program: c.program,
		Parts: func(s *PSGLDState) []method.Part { return []method.Part{{Name: "square", Tensor: &s.Square}} },
		Start: func(s *PSGLDState, m *method.Move) { s.Square = torch.Of(s.Params.Flat.T().MustZerosLike(false)) },
	})
}

func (c PSGLD) program(_ *PSGLDState, p *fuse.Program, m *method.Move) {
	square := fuse.Part(0)
	p.Combine(square, square.Times(c.Decay), fuse.Product(1-c.Decay, fuse.Grad, fuse.Grad))
	p.Root(fuse.A, 1, square, c.Eps)
	p.InverseRoot(fuse.A, 1, fuse.A, 0)
	p.Multiply(fuse.B, 1, fuse.A, fuse.A) // G
	p.Multiply(fuse.B, 1, fuse.B, fuse.Grad)
	p.Add(fuse.Theta, fuse.B.Times(m.LR), fuse.Product(math.Sqrt(2*m.Tau*m.LR), fuse.A, fuse.Noise))
}
