package svi

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// findLanding finds whether log q needs no gradient in φ but through the draws: at given draws its expected gradient is
// E_q[∇ log q(z)] = 0, and without it the noise vanishes where guide and posterior are equal (Roeder, Wu and Duvenaud
// 2017). That holds of guides whose draws have a gradient, in supports that do not move, and are the variables without
// φ: a flow makes those of a draw and of φ.
func (p *plan) findLanding(batch infer.Batch, drawn *trace, values ppl.Values) {
	own := ppl.Values{}
	for name := range p.params {
		own[name] = values[name]
	}
	for _, s := range drawn.sites {
		if s.Kind != ppl.KindSample {
			continue
		}
		if _, _, known := s.Dist.Support().Bounds(); !known || p.scored[s.Name] {
			return
		}
		own[s.Name] = torch.Of(s.Value.T().MustDetach(false))
	}
	again := newTrace(nil)
	p.guide.Run(batch, nil, own, again)
	for _, s := range again.sites {
		moves := s.Kind == ppl.KindDeterministic && p.latents[s.Name] != nil && s.Value.T().MustRequiresGrad() ||
			s.Kind == ppl.KindFactor && s.LogProbs().T().MustRequiresGrad()
		if moves {
			return
		}
	}
	p.landing = true
}

// guideScore is a number whose gradient in φ is that of log q at the draws of a shot, times the weight of the guide.
func (s shot) guideScore(phi infer.Params, batch infer.Batch, w weights) torch.Tensor {
	values := s.plan.values(phi)
	for _, site := range s.guide.sites {
		if site.Kind == ppl.KindSample {
			values[site.Name] = torch.Of(site.Value.T().MustDetach(false))
		}
	}
	again := shot{plan: s.plan, guide: newTrace(nil), model: newTrace(nil)}
	s.plan.guide.Run(batch, nil, values, again.guide)
	s.plan.resize(again.guide)
	return total(again.terms(weights{guide: -w.guide}, false))
}

// landed are the chains whose gradient is to be without the score of the guide, 1, and the others, 0; nil where there
// are none. It is noisier far from the posterior, where it may throw a guide of many dimensions off: what it
// differentiates, ℓ, then varies more than the log p(y, z) that is differentiated with the score.
func (o *objective) landed(k int) torch.Tensor {
	if !o.plan.landing || o.elbo.closed() || !o.elbo.linear() || o.weights.guide == 0 {
		return torch.Tensor{}
	}
	lands := make([]float64, k)
	l, p := o.spread.of(0, k), o.spread.of(1, k)
	for i := range lands {
		if l[i] < landFrom*p[i] {
			lands[i] = 1
		}
	}
	if !slices.Contains(lands, 1) {
		return torch.Tensor{}
	}
	return torch.New(lands, k, 1)
}

// landFrom is how small the variance of ℓ must be, as a part of that of log p(y, z).
const landFrom = 0.5

// spreads keeps the variances of ℓ and log p(y, z) over the samples, [K, S], of the first evaluation.
func (o *objective) spreads(l, logp torch.Tensor) {
	if o.nextSpread != nil || l.T().MustSize()[1] < 2 {
		return
	}
	variances := func(x torch.Tensor) []float64 {
		x = torch.Of(x.T().MustDetach(false))
		return torch.Must(torch.ToSlice[float64](torch.Of(x.T().MustVarDim([]int64{1}, true, false, false))))
	}
	o.nextSpread = o.spread.with([][]float64{variances(l), variances(logp)})
}
