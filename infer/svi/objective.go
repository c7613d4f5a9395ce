package svi

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// objective is the bound over the number of data, as a function of the params φ, with an estimate of its gradient: what
// the optimiser climbs.
type objective struct {
	plan        *plan
	elbo        ELBO
	samples     int           // S
	temperature float64       // T
	weights     weights       // of prior and guide
	data        float64       // N
	streams     torch.Streams // of the K chains; moved on
	layout      *infer.Layout // of the draws
	average     *average      // of the costs in the updates before; nil at the start
	spread      *average      // of the variances of ℓ and log p(y, z)

	// Of the first evaluation, before the optimiser has moved: K numbers each.
	evaluation          infer.Evaluation
	logPosterior, nelbo []float64
	point               torch.Tensor // the first sample of each chain, [K, d] or [d]
	next, nextSpread    *average
}

// ValueAndGrad evaluates the bound with new draws of the guide.
func (o *objective) ValueAndGrad(phi infer.Params, b infer.Batch, _ float64) (infer.Evaluation, error) {
	defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
	leaf, err := torch.Leaf(phi.Flat)
	if err != nil {
		return infer.Evaluation{}, err
	}
	k, s := phi.Chains(), o.samples
	d := phi.Layout.Dim()
	rows := leaf.Reshape(k, 1, d).Expand(k, s, d).Reshape(k*s, d).T()
	landed := o.landed(k)
	var scores int
	out, err := mapped(torch.Of(rows), phi.Layout, &o.streams, o.samples, func(phi infer.Params,
		source *torch.Source) (out []torch.Tensor) {
		shot := o.plan.shoot(phi, b, source)
		terms := shot.terms(o.weights, o.elbo.closed())
		out = append(out, total(terms), torch.Of(shot.logDensity().T().MustDetach(false)))
		if landed != (torch.Tensor{}) {
			out = append(out, shot.guideScore(phi, b, o.weights))
		}
		all := shot.scores(terms)
		scores = len(all)
		for _, q := range all {
			out = append(out, q.logq, q.cost)
		}
		return append(out, shot.point(o.layout, phi)...)
	})
	if err != nil {
		return infer.Evaluation{}, err
	}
	l, logp := out[0].Reshape(k, s).T(), out[1]
	out = out[2:]
	o.spreads(torch.Of(l), logp.Reshape(k, s))
	bound := o.elbo.bound(torch.Of(l), o.temperature)
	surrogate := bound
	if landed != (torch.Tensor{}) {
		score := out[0].Reshape(k, s).Mul(landed.T().MustTotype(l.DType(), false)).T()
		surrogate = o.elbo.bound(torch.Of(l.MustAdd(score, false)), o.temperature)
		out = out[1:]
	}
	if scores > 0 {
		surrogate = surrogate.Add(o.scoreFunction(torch.Of(l), out[:2*scores], k, s))
	}
	total := surrogate.T().MustSum(surrogate.T().DType(), false).MustMulScalar(ts.FloatScalar(1/o.data), false)
	grads, err := torch.Grad([]torch.Tensor{torch.Of(total)}, []torch.Tensor{leaf}, nil)
	if err != nil {
		return infer.Evaluation{}, err
	}
	value := bound.T().MustDetach(false).MustMulScalar(ts.FloatScalar(1/o.data), false)
	e := infer.Evaluation{Value: torch.Of(value), Grad: grads[0]}
	if e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, k); err != nil {
		return e, err
	}
	if !phi.Batched() {
		e.Value = e.Value.At(0)
	}
	return e, o.report(e, logp, out[2*scores:], phi)
}

// report keeps what Info and the state tell of the first evaluation.
func (o *objective) report(e infer.Evaluation, logp torch.Tensor, pieces []torch.Tensor, phi infer.Params) error {
	if o.nelbo != nil {
		return nil
	}
	k, s := phi.Chains(), o.samples
	o.evaluation, o.nelbo, o.logPosterior = e, make([]float64, k), make([]float64, k)
	all, err := torch.ToSlice[float64](logp)
	if err != nil {
		return err
	}
	for i, v := range e.Values {
		o.nelbo[i] = -v * o.data
		for _, x := range all[i*s : (i+1)*s] {
			o.logPosterior[i] += x / float64(s) / o.data
		}
	}
	for i, x := range pieces { // the first sample of each chain
		pieces[i] = torch.Of(x.Reshape(k, s, -1).T().MustSelect(1, 0, false))
	}
	o.point = torch.Cat(1, pieces)
	if !phi.Batched() {
		o.point = o.point.At(0)
	}
	torch.Detach(o.point) // it outlives the scope of the optimiser
	return nil
}

// mapped evaluates f at the rows of φ, each with random numbers of its own: row r is sample r mod samples of the chain
// of stream r/samples. A single row is not mapped.
func mapped(rows torch.Tensor, layout *infer.Layout, streams *torch.Streams, samples int,
	f func(phi infer.Params, source *torch.Source) []torch.Tensor) (out []torch.Tensor, err error) {
	own := torch.Streams{Seed: streams.Seed, Offset: streams.Offset}
	for _, chain := range streams.Chains {
		for s := range samples {
			own.Chains = append(own.Chains, chain+uint64(s)<<sampleBits)
		}
	}
	defer func() { streams.Offset = own.Offset }()
	if len(own.Chains) == 1 {
		source, err := own.Source()
		if err != nil {
			return nil, err
		}
		for _, x := range f(infer.Params{Layout: layout, Flat: rows.At(0)}, source) {
			out = append(out, x.Unsqueeze(0))
		}
		return out, nil
	}
	return torch.VmapSources(func(in []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
		return f(infer.Params{Layout: layout, Flat: in[0]}, source), nil
	}, []torch.Tensor{rows}, &own, nil)
}

// Sample s of chain k reads the stream k + s·2^sampleBits, which no other chain has.
const (
	sampleBits = 42
	maxSamples = 1 << 20
)
