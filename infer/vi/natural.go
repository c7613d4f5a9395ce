package vi

import (
	"math"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// natural is a step of [Dense] along the natural gradient. Steps of single elements of L, as Adam's, add d² numbers of
// noise, which a large L never loses again.
type natural struct {
	rate        float64 // ρ
	temperature float64 // τ, what the entropy counts
	stick       bool
	matches     bool // the step is that of match
}

// The updates of a fit.
const (
	naturalUpdates = 900 // all of them; ρ falls over the second half
	matchUpdates   = 350 // the first ones, which match scores
)

// rate is ρ at an update of S samples in d dimensions. A sample tells of one direction: steps above 2S/(S+d) add more
// noise than they take away. Over the second half of the updates they fall as 1/t, which averages the noise.
func rate(step int, samples, d int) float64 {
	s := float64(samples)
	most := min(1.5*s/(s+float64(d)), 0.5)
	return most / (1 + most*float64(max(0, step-naturalUpdates/2)))
}

// naturalSamples is S where the configuration has none.
func naturalSamples(d int) int { return max(2*defaultSamples, 2*((d+63)/64)) }

// step is by how much the variational parameters change, [K, P], for gradients a of the samples, [K, S, d], with the
// entropy in them, and noise ε. In the coordinates of ε the precision is I, and its natural gradient is (Khan and Rue
// 2023, The Bayesian learning rule, JMLR)
//
//	G = −sym(cov(Lᵀa, ε))/τ
//
// The step takes the precision to P = ρG + (I + ρ²G²)^½, which is I + ρG + ½ρ²G² for small steps, positive definite
// whatever the noise in G, and P⁻¹ for −G. LLᵀ becomes LP⁻¹Lᵀ, and μ moves by ρLP⁻¹ times the mean of Lᵀa/τ. G is VᵀMV
// of the 2S rows V = [ρLᵀa/τ, ε], so that its eigenvectors are those of a matrix of 2S rows.
func (n natural) step(q denseGaussian, a, eps torch.Tensor) torch.Tensor {
	if n.matches {
		return n.match(q, a, eps)
	}
	shape := a.T().MustSize()
	s, d := shape[1], shape[2]
	w := scaled(n.rate/n.temperature, a.MatMul(q.l))
	turn, shift := w, 0.0
	if s > 1 {
		// The mean of w says how far off μ is, and would be noise here.
		turn = w.Sub(average(w).Unsqueeze(1).T())
	}
	if !n.stick {
		w, shift = sum(1, w, -n.rate, eps), n.rate
	}
	v := ts.MustCat([]*ts.Tensor{turn.T(), eps.T()}, 1)
	basis, rest := ts.MustLinalgQr(v.MustTranspose(1, 2, false), "reduced")
	inner := rest.MustMatmul(n.middle(torch.Of(v)).T(), false).MustMatmul(rest.MustTranspose(1, 2, false), false)
	inner = inner.MustMul(shorter(torch.Of(inner.MustSquare(false)), mostTurn*math.Sqrt(float64(s))).T(), false)
	// A chain that is not finite is held, but would be an error for all here.
	x, turned := inner.MustNanToNum([]float64{0}, []float64{0}, []float64{0}, false).MustLinalgEigh("L", false)
	x = x.MustSubScalar(ts.FloatScalar(shift), false)
	others := math.Sqrt(1+shift*shift) - shift
	x = x.MustAdd(x.MustSquare(false).MustAddScalar(ts.FloatScalar(1), false).MustSqrt(false), false)
	x = x.MustSubScalar(ts.FloatScalar(others), false).MustUnsqueeze(1, false)
	basis = basis.MustMatmul(turned, false)
	p := basis.MustMul(x, false).MustMatmul(basis.MustTranspose(1, 2, false), false)
	p = p.MustAdd(scaled(others, torch.Of(ts.MustEye(d, a.T().DType(), torch.Must(torch.DeviceOf(a))))).T(), false)
	// With P = UUᵀ, U upper triangular, LU⁻ᵀ is the new L: it is triangular as L is.
	flipped, _ := p.MustFlip([]int64{1, 2}, false).MustLinalgCholeskyEx(false, false, false)
	upper := flipped.MustFlip([]int64{1, 2}, false)
	l := upper.MustTranspose(1, 2, false).MustLinalgSolveTriangular(q.l.T(), false, false, false, false)
	// The length of U⁻¹w is that of the step in standard deviations of the new distribution.
	move := upper.MustLinalgSolveTriangular(average(w).Unsqueeze(2).T(), true, true, false, false)
	move = move.MustMul(shorter(torch.Of(move.MustSquare(false)), math.Sqrt(float64(d))).T(), false)
	return q.moved(torch.Of(l), torch.Of(l.MustMatmul(move, false)))
}

// match is the step of the first updates, in closed form, after Cai and others (2024, Batch and match:
// black-box variational inference with a score-based divergence, ICML): the covariance that is closest to the one
// before, in Kullback-Leibler divergence, and λ = S² times to what the scores g of the samples say of it. In the
// coordinates of ε, with the covariances C of ε and Γ of g,
//
//	V = I + λC,  QQᵀ = λΓ,  Σ = V − VQ (½I + (QᵀVQ + ¼I)^½)⁻² QᵀV,  μ ← Σḡ + ε̄
//
// On a normal distribution the samples have no noise there, and the mean takes a Newton step, so that no start is too
// far. The updates that follow find the optimum of the ELBO.
func (n natural) match(q denseGaussian, a, eps torch.Tensor) torch.Tensor {
	s, d := a.T().MustSize()[1], a.T().MustSize()[2]
	// g is the score of the target: what sticks has that of q, −ε, taken off.
	g := scaled(1/n.temperature, a.MatMul(q.l))
	if n.stick {
		g = g.Sub(eps)
	}
	rows := func(x torch.Tensor) torch.Tensor {
		return scaled(math.Sqrt(float64(s)), x.Sub(average(x).Unsqueeze(1).T()))
	}
	u, e := rows(g), rows(eps)
	times := func(x torch.Tensor) torch.Tensor { // x V for rows x
		return x.Add(x.MatMul(e.T().MustTranspose(1, 2, false)).MatMul(e).T())
	}
	v := times(u)
	inner := v.MatMul(u.T().MustTranspose(1, 2, false)).T()
	x, turned := inner.MustNanToNum([]float64{0}, []float64{0}, []float64{0}, false).MustLinalgEigh("L", false)
	x = x.MustClampMin(ts.FloatScalar(0), false).MustAddScalar(ts.FloatScalar(0.25), false).MustSqrt(false)
	x = x.MustAddScalar(ts.FloatScalar(0.5), false).MustReciprocal(false).MustUnsqueeze(2, false)
	less := turned.MustTranspose(1, 2, false).MustMatmul(v.T(), false).MustMul(x, false)
	identity := ts.MustEye(d, a.T().DType(), torch.Must(torch.DeviceOf(a)))
	sigma := e.T().MustTranspose(1, 2, false).MustMatmul(e.T(), false).MustAdd(identity, false)
	sigma = sigma.MustSub(less.MustTranspose(1, 2, false).MustMatmul(less, false), false)
	factor, _ := sigma.MustLinalgCholeskyEx(false, false, false)
	// Where the scores overflow, or rounding makes Σ indefinite, the distribution stays.
	whole := factor.MustDiagonal(0, 1, 2, false).MustLog(false).MustSumDimIntlist([]int64{1}, false, a.T().DType(), false)
	whole = whole.MustAdd(average(g).T().MustSumDimIntlist([]int64{1}, false, a.T().DType(), false),
		false).MustIsfinite(false)
	whole = whole.MustUnsqueeze(1, false).MustUnsqueeze(2, false)
	factor = factor.MustWhereSelf(whole, identity.MustUnsqueeze(0, false), false)
	move := sigma.MustMatmul(average(g).Unsqueeze(2).T(), false)
	move = move.MustAdd(average(eps).Unsqueeze(2).T(), false)
	// In standard deviations of the new distribution.
	length := factor.MustLinalgSolveTriangular(move, false, true, false, false)
	move = move.MustMul(shorter(torch.Of(length.MustSquare(false)), mostMove*math.Sqrt(float64(d))).T(), false)
	move = move.MustWhereSelf(whole, move.MustZerosLike(false), false)
	return q.moved(q.l.MatMul(factor), q.l.MatMul(move))
}

// moved are the changes of the variational parameters to a factor l, and by move of the mean.
func (q denseGaussian) moved(l, move torch.Tensor) torch.Tensor {
	k, d := l.T().MustSize()[0], l.T().MustSize()[1]
	parts := []torch.Tensor{torch.Of(l.T().MustDiagonal(0, 1, 2, false).MustLog(false).MustSub(q.logDiag.T(), false))}
	if d > 1 {
		change := l.Sub(q.l).Reshape(int(k), int(d*d)).T()
		parts = append(parts, torch.Of(change.MustIndexSelect(1, q.below.T(), false)))
	}
	return torch.Cat(1, append(parts, move.Squeeze(2)))
}

// mostMove times the root of d bounds the move of a match, in standard deviations.
const mostMove = 100

// mostTurn times the root of S bounds the length of ρG: a start that is far too wide has gradients of any size.
const mostTurn = 4

// shorter, [K, 1, 1], shortens what has squares [K, m, n], so that their sum is at most most².
func shorter(squares torch.Tensor, most float64) torch.Tensor {
	length := squares.T().MustSumDimIntlist([]int64{1, 2}, true, squares.T().DType(), false).MustSqrt(false)
	return scaled(most, torch.Of(length.MustClampMin(ts.FloatScalar(most), false).MustReciprocal(false)))
}

// middle is M, [2S, 2S], of the type of V: −½/(S−1) joins Lᵀa with ε. Without sticking the landing the score adds ρ/S
// of εεᵀ, and takes ρ from the identity.
func (n natural) middle(v torch.Tensor) torch.Tensor {
	s := int(v.T().MustSize()[1] / 2)
	m := make([]float64, 4*s*s)
	for i := range s {
		joined := -0.5 / float64(max(s-1, 1))
		m[i*2*s+s+i], m[(s+i)*2*s+i] = joined, joined
		if !n.stick {
			m[(s+i)*(2*s+1)] = n.rate / float64(s)
		}
	}
	return torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(v)), v.T().DType(), m, 2*s, 2*s))
}

// shortened are steps, [K, P], in the direction of step, after which the objective for the same noise is not much less
// than here, [K]. A step that suits a normal distribution is far too long on some densities. One that is too long at
// each of the lengths tried is not made.
func (o *objective) shortened(phi infer.Params, b infer.Batch, step, here torch.Tensor) torch.Tensor {
	// At the optimum the objective has noise of about this size, which says nothing of a step.
	noise := o.entropy * float64(o.layout.Dim())
	least := here.T().MustSubScalar(ts.FloatScalar(noise), false)
	taken, left := step.T().MustZerosLike(false), here.T().MustIsfinite(false)
	for _, length := range []float64{1, 0.3, 0.1, 0.01} {
		tried := scaled(length, step)
		there := o.sampled(infer.Params{Layout: phi.Layout, Flat: sum(1, phi.Flat, 1, tried)}, b, true)
		accepted := there.objective.T().MustGeTensor(least, false).MustLogicalAnd(left, false)
		taken = tried.T().MustWhereSelf(accepted.MustUnsqueeze(1, false), taken, false)
		left = left.MustLogicalAnd(accepted.MustLogicalNot(false), false)
		if waits := torch.Must(torch.ToSlice[bool](torch.Of(left.MustAny(false)))); !waits[0] {
			break
		}
	}
	return torch.Of(taken)
}

// takesNatural says that a method takes natural steps: Dense without an optimiser of its own. At T = 0, where the
// distribution becomes a point, there is no natural gradient.
func takesNatural(f family, optimizer infer.Method, temperature infer.Schedule) bool {
	_, isDense := f.(dense)
	first, _ := level(temperature)
	return isDense && optimizer == nil && first > 0
}

// step is what an update of a state needs. A temperature or weight that falls to 0 on its way leaves a rest, by which
// can be divided.
func (t *fit) step(s State, temperature, weight float64) *natural {
	directions := t.count(s.Mean)
	if t.antithetic {
		directions /= 2 // a pair tells of one direction
	}
	return &natural{matches: s.Steps() < matchUpdates, rate: rate(s.Steps(), directions, s.Mean.Layout.Dim()),
		temperature: max(temperature*max(weight, 0.01), 1e-6) / t.data, stick: t.stick()}
}

// count is S for a model of the dimension of p.
func (t *fit) count(p infer.Params) int {
	switch {
	case t.samples > 0:
		return t.samples
	case t.natural:
		return naturalSamples(p.Layout.Dim())
	}
	return defaultSamples
}
