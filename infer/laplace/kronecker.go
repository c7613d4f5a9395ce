package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// kronecker has the factors Inputs and Outputs for each layer, and a Prior of shape [layers] or [K, layers].
type kronecker struct{ layers []Layer }

func (kronecker) state(g Gaussian) Posterior { return KFACState{g} }

func (kronecker) sums() []string { return []string{"inputs", "outputs"} }

func (q kronecker) size(name string, p infer.Params) (what string, numbers float64, instead string) {
	checkLayers(name, q.layers, p.Layout)
	a, g := q.numbers(p.Layout)
	return fmt.Sprintf("Kronecker factors with %d numbers for each of %d chains", a+g, p.Chains()),
		float64(a+g) * float64(p.Chains()), "use laplace.DiagGGN, or the last layer alone by infer.Subspace"
}

// numbers are how many numbers Inputs and Outputs have for a chain.
func (q kronecker) numbers(l *infer.Layout) (a, g int) {
	for _, l := range q.sizes(l) {
		a, g = a+l.in*l.in, g+l.out*l.out
	}
	return a, g
}

// priorOfLayers is a diagonal prior precision, of the shape of the point, as one number for each layer.
func (q kronecker) priorOfLayers(name string, l *infer.Layout, diagonal torch.Tensor) torch.Tensor {
	columns := make([]torch.Tensor, len(q.layers))
	for i, l := range q.sizes(l) {
		part := diagonal.T().MustNarrow(-1, int64(l.weight.Offset), int64(l.weight.Size), false)
		if l.biased {
			bias := diagonal.T().MustNarrow(-1, int64(l.bias.Offset), int64(l.bias.Size), false)
			part = ts.MustCat([]*ts.Tensor{part, bias}, -1)
		}
		columns[i] = torch.Of(part.MustSelect(-1, 0, false))
		apart := approx.Item(torch.Of(part.MustSub(columns[i].Unsqueeze(-1).T(), false).MustAbs(false).MustMax(false)))
		if apart > 1e-6*approx.Item(torch.Of(part.MustAbs(false).MustMax(false))) {
			approx.Try(&infer.FieldError{Type: name, Field: "PriorPrecision", Value: "missing",
				Allowed: fmt.Sprintf("the target's prior has more than one precision in the layer %q, "+
					"and Kronecker factors allow one: set PriorPrecision, or use laplace.DiagGGN", q.layers[i].Weight)})
		}
	}
	return torch.Stack(-1, columns)
}

// size is a layer's place in the flat vector and the sizes of its factors; in counts the bias.
type size struct {
	weight, bias infer.Site
	biased       bool
	in, out      int
}

func (q kronecker) sizes(layout *infer.Layout) []size {
	out := make([]size, len(q.layers))
	for i, l := range q.layers {
		out[i].weight, _ = layout.Site(l.Weight)
		out[i].out, out[i].in = out[i].weight.Shape[0], out[i].weight.Shape[1]
		if l.Bias != "" {
			out[i].bias, out[i].biased = layout.Site(l.Bias)
			out[i].in++
		}
	}
	return out
}

// prior is a prior precision as one number for each layer.
func (q kronecker) prior(name string, at infer.Params, prior Precision) torch.Tensor {
	prior.perSite(name, at.Layout)
	v := make([]float64, len(q.layers))
	for i, l := range q.layers {
		v[i], _ = prior.Site(l.Weight)
		if l.Bias == "" {
			continue
		}
		if b, _ := prior.Site(l.Bias); b != v[i] {
			approx.Try(&infer.FieldError{Type: name, Field: "PriorPrecision",
				Value:   fmt.Sprintf("%g for %q and %g for %q", v[i], l.Weight, b, l.Bias),
				Allowed: "the weights and the bias of a layer share their Kronecker factors, and must share their precision"})
		}
	}
	t := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(at.Flat)), at.Flat.T().DType(), v))
	if !at.Batched() {
		return t
	}
	return torch.Of(t.Unsqueeze(0).T().MustRepeat([]int64{int64(at.Chains()), 1}, false))
}

// spectrum is the eigendecomposition of a layer's precision: (U_G ⊗ U_A) diag(values) (U_G ⊗ U_A)ᵀ, for K chains.
type spectrum struct {
	size
	a, g   torch.Tensor // U_A [K, in, in], U_G [K, out, out]
	data   torch.Tensor // eigenvalues of the data's part, [K, out, in]
	values torch.Tensor // with the prior and the damping, [K, out, in]
}

// spectra are those of all layers.
func (q kronecker) spectra(s Gaussian) []spectrum {
	k := s.Params.Chains()
	count := s.Data.Reshape(k, 1, 1).T().MustClampMin(ts.FloatScalar(1e-30), false) // no data: 0/0 is 0
	inputs, outputs := s.Inputs.Reshape(k, -1).T(), s.Outputs.Reshape(k, -1).T()
	prior := s.Prior.Reshape(k, -1).T()
	var out []spectrum
	var atA, atG int
	for i, l := range q.sizes(s.Params.Layout) {
		a := inputs.MustNarrow(1, int64(atA), int64(l.in*l.in), false).MustReshape([]int64{int64(k),
			int64(l.in), int64(l.in)}, false)
		g := outputs.MustNarrow(1, int64(atG), int64(l.out*l.out), false).MustReshape([]int64{int64(k),
			int64(l.out), int64(l.out)}, false)
		atA, atG = atA+l.in*l.in, atG+l.out*l.out
		sp := spectrum{size: l}
		la, va := a.MustLinalgEigh("L", false)
		lg, vg := g.MustAdd(approx.T(torch.Of(g)).T(), false).MustLinalgEigh("L", false)
		sp.a, sp.g = torch.Of(va), torch.Of(vg)
		ea, eg := resolved(torch.Of(la)), resolved(torch.Of(lg))
		sp.data = scaled(0.5, eg.Unsqueeze(2).Mul(ea.Unsqueeze(1))).Div(count)
		lambda := prior.MustSelect(1, int64(i), false).MustReshape([]int64{int64(k), 1, 1}, false)
		sp.values = torch.Of(sp.data.Add(lambda).T().MustAddScalar(ts.FloatScalar(s.Damping), false))
		out = append(out, sp)
	}
	return out
}

// positive are the spectra after a check that each value is positive.
func (q kronecker) positive(s Gaussian) []spectrum {
	all := q.spectra(s)
	for i, sp := range all {
		if least := approx.Item(torch.Of(sp.values.T().MustMin(false))); !(least > 0) {
			approx.Fail("%s: the precision of layer %q is %w, its smallest eigenvalue is %g: give a PriorPrecision above 0, "+
				"or Damping", nameOf(q), q.layers[i].Weight, curvature.ErrIndefinite, least)
		}
	}
	return all
}

// resolved are eigenvalues of factors, [K, n], with 0 for those that are rounding errors: within n·ε of the largest, of
// either sign.
func resolved(e torch.Tensor) torch.Tensor {
	size := e.Abs().T()
	limit := size.MustAmax([]int64{-1}, true,
		false).MustMulScalar(ts.FloatScalar(float64(e.T().MustSize()[1])*method.Epsilon(e)), false)
	return e.Mul(size.MustGtTensor(limit, false).MustTotype(e.T().DType(), false))
}

// gather is a layer's part of vectors [K, d, m] as matrices [K, m, out, in], the bias as the last column.
func (l size) gather(x torch.Tensor) torch.Tensor {
	shape := x.T().MustSize()
	k, m := shape[0], shape[2]
	w := x.T().MustNarrow(1, int64(l.weight.Offset), int64(l.weight.Size), false).MustReshape([]int64{int64(k),
		int64(l.out), -1, int64(m)},
		false)
	if l.biased {
		b := x.T().MustNarrow(1, int64(l.bias.Offset), int64(l.bias.Size), false).MustReshape([]int64{int64(k),
			int64(l.out), 1, int64(m)},
			false)
		w = ts.MustCat([]*ts.Tensor{w, b}, 2)
	}
	return torch.Of(w.MustPermute([]int64{0, 3, 1, 2}, false))
}

// apply is P^power z for z of shape [K, d, m].
func apply(layout *infer.Layout, spectra []spectrum, power float64, z torch.Tensor) torch.Tensor {
	k, m := z.T().MustSize()[0], z.T().MustSize()[2]
	parts := map[string]torch.Tensor{}
	for _, sp := range spectra {
		ug, ua := sp.g.Unsqueeze(1).T(), sp.a.Unsqueeze(1).T() // the same for all m
		y := approx.T(torch.Of(ug)).MatMul(sp.gather(z)).MatMul(ua).T()
		y = y.MustMul(sp.values.T().MustPowTensorScalar(ts.FloatScalar(power), false).MustUnsqueeze(1, false), false)
		// [K, out, in, m]
		y = ug.MustMatmul(y, false).MustMatmul(approx.T(torch.Of(ua)).T(), false).MustPermute([]int64{0, 2, 3, 1}, false)
		columns := sp.weight.Shape[1]
		parts[sp.weight.Name] = torch.Of(y.MustNarrow(2, 0, int64(columns), false).MustReshape([]int64{int64(k),
			-1, int64(m)}, false))
		if sp.biased {
			parts[sp.bias.Name] = torch.Of(y.MustNarrow(2, int64(columns), 1,
				false).MustReshape([]int64{int64(k), -1, int64(m)}, false))
		}
	}
	all := make([]torch.Tensor, len(layout.Sites))
	for i, site := range layout.Sites {
		all[i] = parts[site.Name]
	}
	return torch.Cat(1, all)
}

// matrix is P, or for power −½ its root, of shape [d, d] or [K, d, d].
func (q kronecker) matrix(s Gaussian, power float64, spectra func(Gaussian) []spectrum) torch.Tensor {
	p, d, k := s.Params, s.Params.Layout.Dim(), s.Params.Chains()
	checkMemory(nameOf(q), fmt.Sprintf("a matrix of shape [%d, %d]", d, d), p,
		float64(d)*float64(d)*float64(k), 0, "", "LinearizedNetwork and Sample do without")
	eye := approx.Eye(d, p.Flat).Expand(k, d, d).T()
	x := apply(p.Layout, spectra(s), power, torch.Of(eye))
	x = scaled(0.5, x.Add(approx.T(x)))
	if !p.Batched() {
		x = x.At(0)
	}
	return x
}

func (q kronecker) precision(s Gaussian) torch.Tensor { return q.matrix(s, 1, q.spectra) }

func (q kronecker) spread(s Gaussian) torch.Tensor { return q.matrix(s, -0.5, q.positive) }

func (q kronecker) root(s Gaussian, z torch.Tensor) torch.Tensor {
	return apply(s.Params.Layout, q.positive(s), -0.5, z)
}

func (q kronecker) solve(s Gaussian, g torch.Tensor) torch.Tensor {
	return apply(s.Params.Layout, q.positive(s), -1, g)
}

func (q kronecker) logDet(s Gaussian) (sum float64) {
	for _, sp := range q.positive(s) {
		sum += total(sp.values.Log())
	}
	return sum
}

func (q kronecker) quadratic(s Gaussian, scope *torch.Scope) func(x torch.Tensor) torch.Tensor {
	spectra := q.spectra(s)
	for _, sp := range spectra {
		scope.Keep(sp.a, sp.g, sp.values)
	}
	d := s.Params.Layout.Dim()
	return func(x torch.Tensor) (sum torch.Tensor) {
		for _, sp := range spectra {
			y := approx.T(sp.g).MatMul(sp.gather(x.Reshape(1, d, 1)).At(0).T()).MatMul(sp.a).T()
			part := y.MustSquare(false).MustMul(sp.values.T(), false).MustSum(y.DType(), false)
			if sum == (torch.Tensor{}) {
				sum = torch.Of(part)
			} else {
				sum = sum.Add(part)
			}
		}
		return sum
	}
}

func (q kronecker) search(s Gaussian, delta []float64, perSite bool) map[string]float64 {
	var blocks []block
	for _, sp := range q.spectra(s) {
		b := block{sites: []string{sp.weight.Name}, eps: method.Epsilon(s.Params.Flat)}
		b.eigen = torch.Must(torch.ToSlice[float64](sp.data))
		for i := range b.eigen {
			b.eigen[i] += s.Damping
		}
		sites := []infer.Site{sp.weight}
		if sp.biased {
			sites, b.sites = append(sites, sp.bias), append(b.sites, sp.bias.Name)
		}
		for _, site := range sites {
			for _, x := range delta[site.Offset : site.Offset+site.Size] {
				b.square += x * x
			}
		}
		blocks = append(blocks, b)
	}
	return separate(blocks, perSite)
}
