package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// KFACState is the state of [KFAC]. The tensors have a leading K for K chains.
type KFACState struct {
	Params infer.Params // θ̂, of shape [d] or [K, d]; no update moves it
	// Σ a aᵀ of the layers, each [in + 1, in + 1] (or [in, in] without bias), flat, one after the other
	Inputs      *ts.Tensor
	Outputs     *ts.Tensor // Σ Sᵀ H S of the layers, each [out, out], flat, one after the other
	Data        *ts.Tensor // N, the number of data so far, of shape []
	Prior       *ts.Tensor // prior precision of each layer, of shape [layers]
	Gradient    *ts.Tensor // of the log posterior at θ̂, on the scale of the sum over data: 0 at a mode
	Layers      []Layer
	Damping     float64 // δ, added to the diagonal of the precision
	Temperature float64 // T
	Step        int64   // updates so far
}

// Position is θ̂.
func (s KFACState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s KFACState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s KFACState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{
		"params": s.Params.Flat, "inputs": s.Inputs, "outputs": s.Outputs, "data": s.Data, "prior": s.Prior,
		"gradient": s.Gradient}}
}

// Precision is P as a matrix, of shape [d, d] or [K, d, d], with zeros between layers: for small networks, and refused
// beyond 1 GiB.
func (s KFACState) Precision() (p *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		if p, err = s.matrix(1); err != nil {
			return err
		}
		scope.Keep(p)
		return nil
	})
	return p, err
}

func (s KFACState) method() string { return "laplace.KFACState" }

func (s KFACState) tempering() float64 { return s.Temperature }

func (s KFACState) slope() *ts.Tensor { return s.Gradient }

func (s KFACState) newton(g *ts.Tensor) (*ts.Tensor, error) {
	spectra, err := s.spectra(true)
	if err != nil {
		return nil, err
	}
	return apply(s.Params.Layout, spectra, -1, g), nil
}

// priorOfLayers is a diagonal prior precision, of the shape of the point, as one number for each layer.
func (s KFACState) priorOfLayers(name string, diagonal *ts.Tensor) (*ts.Tensor, error) {
	columns := make([]*ts.Tensor, len(s.Layers))
	for i, l := range s.layers() {
		part := diagonal.MustNarrow(-1, int64(l.weight.Offset), int64(l.weight.Size), false)
		if l.biased {
			bias := diagonal.MustNarrow(-1, int64(l.bias.Offset), int64(l.bias.Size), false)
			part = ts.MustCat([]*ts.Tensor{part, bias}, -1)
		}
		columns[i] = part.MustSelect(-1, 0, false)
		apart := item(part.MustSub(columns[i].MustUnsqueeze(-1, false), false).MustAbs(false).MustMax(false))
		if apart > 1e-6*item(part.MustAbs(false).MustMax(false)) {
			return nil, &infer.FieldError{Type: name, Field: "PriorPrecision", Value: "missing",
				Allowed: fmt.Sprintf("the target's prior has more than one precision in the layer %q, "+
					"and Kronecker factors allow one: set PriorPrecision, or use laplace.DiagGGN", s.Layers[i].Weight)}
		}
	}
	return ts.MustStack(columns, -1), nil
}

func (s KFACState) chain(k int) Posterior { return s.of(k) }

func (s KFACState) of(k int) KFACState {
	p := s.Params
	s.Params, s.Inputs, s.Outputs = point(p, k), chain(p, s.Inputs, k), chain(p, s.Outputs, k)
	s.Data, s.Prior, s.Gradient = chain(p, s.Data, k), chain(p, s.Prior, k), chain(p, s.Gradient, k)
	return s
}

// size is a layer's place in the flat vector and the sizes of its factors; in counts the bias.
type size struct {
	weight, bias infer.Site
	biased       bool
	in, out      int64
}

func (s KFACState) layers() []size {
	out := make([]size, len(s.Layers))
	for i, l := range s.Layers {
		out[i].weight, _ = s.Params.Layout.Site(l.Weight)
		out[i].out, out[i].in = out[i].weight.Shape[0], out[i].weight.Shape[1]
		if l.Bias != "" {
			out[i].bias, out[i].biased = s.Params.Layout.Site(l.Bias)
			out[i].in++
		}
	}
	return out
}

// layerPrior is a prior precision as one number for each layer.
func (s KFACState) layerPrior(method string, prior Precision) (*ts.Tensor, error) {
	if _, err := prior.perSite(method, s.Params.Layout); err != nil {
		return nil, err
	}
	v := make([]float64, len(s.Layers))
	for i, l := range s.Layers {
		v[i], _ = prior.Site(l.Weight)
		if l.Bias == "" {
			continue
		}
		if b, _ := prior.Site(l.Bias); b != v[i] {
			return nil, &infer.FieldError{Type: method, Field: "PriorPrecision",
				Value:   fmt.Sprintf("%g for %q and %g for %q", v[i], l.Weight, b, l.Bias),
				Allowed: "the weights and the bias of a layer share their Kronecker factors, and must share their precision"}
		}
	}
	t, err := torch.FromSliceOn(torch.Must(torch.DeviceOf(s.Params.Flat)), s.Params.Flat.DType(), v)
	if err != nil || !s.Params.Batched() {
		return t, err
	}
	return t.MustUnsqueeze(0, false).Repeat([]int64{int64(s.Params.Chains()), 1}, false)
}

// spectrum is the eigendecomposition of a layer's precision: (U_G ⊗ U_A) diag(values) (U_G ⊗ U_A)ᵀ, for K chains.
type spectrum struct {
	size
	a, g   *ts.Tensor // U_A [K, in, in], U_G [K, out, out]
	data   *ts.Tensor // eigenvalues of the data's part, [K, out, in]
	values *ts.Tensor // with the prior and the damping, [K, out, in]
}

// spectra are those of all layers. check makes one that is not positive an error.
func (s KFACState) spectra(check bool) ([]spectrum, error) {
	k := int64(s.Params.Chains())
	count := s.Data.MustReshape([]int64{k, 1, 1}, false).MustClampMin(ts.FloatScalar(1e-30), false) // no data: 0/0 is 0
	inputs, outputs := s.Inputs.MustReshape([]int64{k, -1}, false), s.Outputs.MustReshape([]int64{k, -1}, false)
	prior := s.Prior.MustReshape([]int64{k, -1}, false)
	var out []spectrum
	var atA, atG int64
	for i, l := range s.layers() {
		a := inputs.MustNarrow(1, atA, l.in*l.in, false).MustReshape([]int64{k, l.in, l.in}, false)
		g := outputs.MustNarrow(1, atG, l.out*l.out, false).MustReshape([]int64{k, l.out, l.out}, false)
		atA, atG = atA+l.in*l.in, atG+l.out*l.out
		sp := spectrum{size: l}
		var ea, eg *ts.Tensor
		ea, sp.a = a.MustLinalgEigh("L", false)
		eg, sp.g = g.MustAdd(transposed(g), false).MustLinalgEigh("L", false)
		ea, eg = resolved(ea), resolved(eg)
		sp.data = scaled(0.5, eg.MustUnsqueeze(2, false).MustMul(ea.MustUnsqueeze(1, false), false)).MustDiv(count,
			false)
		lambda := prior.MustSelect(1, int64(i), false).MustReshape([]int64{k, 1, 1}, false)
		sp.values = sp.data.MustAdd(lambda, false).MustAddScalar(ts.FloatScalar(s.Damping), false)
		if least := item(sp.values.MustMin(false)); check && !(least > 0) {
			return nil, fmt.Errorf("%s: the precision of layer %q is %w, its smallest eigenvalue is %g: give a "+
				"PriorPrecision above 0, or Damping",
				s.method(), s.Layers[i].Weight, curvature.ErrIndefinite, least)
		}
		out = append(out, sp)
	}
	return out, nil
}

// resolved are eigenvalues of factors, [K, n], with 0 for those that are rounding errors: within n·ε of the largest, of
// either sign.
func resolved(e *ts.Tensor) *ts.Tensor {
	size := e.MustAbs(false)
	limit := size.MustAmax([]int64{-1}, true,
		false).MustMulScalar(ts.FloatScalar(float64(e.MustSize()[1])*method.Epsilon(e)), false)
	return e.MustMul(size.MustGtTensor(limit, false).MustTotype(e.DType(), false), false)
}

// gather is a layer's part of vectors [K, d, m] as matrices [K, m, out, in], the bias as the last column.
func (l size) gather(x *ts.Tensor) *ts.Tensor {
	shape := x.MustSize()
	k, m := shape[0], shape[2]
	w := x.MustNarrow(1, int64(l.weight.Offset), int64(l.weight.Size), false).MustReshape([]int64{k, l.out, -1, m},
		false)
	if l.biased {
		b := x.MustNarrow(1, int64(l.bias.Offset), int64(l.bias.Size), false).MustReshape([]int64{k, l.out, 1, m},
			false)
		w = ts.MustCat([]*ts.Tensor{w, b}, 2)
	}
	return w.MustPermute([]int64{0, 3, 1, 2}, false)
}

// apply is P^power z for z of shape [K, d, m].
func apply(layout *infer.Layout, spectra []spectrum, power float64, z *ts.Tensor) *ts.Tensor {
	k, m := z.MustSize()[0], z.MustSize()[2]
	parts := map[string]*ts.Tensor{}
	for _, sp := range spectra {
		ug, ua := sp.g.MustUnsqueeze(1, false), sp.a.MustUnsqueeze(1, false) // the same for all m
		y := transposed(ug).MustMatmul(sp.gather(z), false).MustMatmul(ua, false)
		y = y.MustMul(sp.values.MustPowTensorScalar(ts.FloatScalar(power), false).MustUnsqueeze(1, false), false)
		// [K, out, in, m]
		y = ug.MustMatmul(y, false).MustMatmul(transposed(ua), false).MustPermute([]int64{0, 2, 3, 1}, false)
		columns := sp.weight.Shape[1]
		parts[sp.weight.Name] = y.MustNarrow(2, 0, columns, false).MustReshape([]int64{k, -1, m}, false)
		if sp.biased {
			parts[sp.bias.Name] = y.MustNarrow(2, columns, 1, false).MustReshape([]int64{k, -1, m}, false)
		}
	}
	all := make([]*ts.Tensor, len(layout.Sites))
	for i, site := range layout.Sites {
		all[i] = parts[site.Name]
	}
	return ts.MustCat(all, 1)
}

// matrix is P^power, of shape [d, d] or [K, d, d].
func (s KFACState) matrix(power float64) (*ts.Tensor, error) {
	d, k := int64(s.Params.Layout.Dim()), int64(s.Params.Chains())
	if err := checkMemory(s.method(), fmt.Sprintf("a matrix of shape [%d, %d]", d, d), s.Params,
		float64(d)*float64(d)*float64(k), 0, "",
		"LinearizedNetwork and Sample do without"); err != nil {
		return nil, err
	}
	spectra, err := s.spectra(power < 0)
	if err != nil {
		return nil, err
	}
	eye := ts.MustEye(d, s.Params.Flat.DType(), torch.Must(torch.DeviceOf(s.Params.Flat))).MustExpand([]int64{k, d, d},
		true, false)
	p := apply(s.Params.Layout, spectra, power, eye)
	p = scaled(0.5, p.MustAdd(transposed(p), false))
	if !s.Params.Batched() {
		p = p.MustSelect(0, 0, false)
	}
	return p, nil
}

func (s KFACState) deviations(z *ts.Tensor) (*ts.Tensor, error) {
	spectra, err := s.spectra(true)
	if err != nil {
		return nil, err
	}
	return apply(s.Params.Layout, spectra, -0.5, z), nil
}

func (s KFACState) logDet(handed bool) (float64, error) {
	if handed {
		s.Damping = 0
	}
	spectra, err := s.spectra(true)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, sp := range spectra {
		sum += total(sp.values.MustLog(false))
	}
	return sum, nil
}

func (s KFACState) quadratic(scope *torch.Scope) (func(x *ts.Tensor) *ts.Tensor, error) {
	s.Damping = 0
	spectra, err := s.spectra(false)
	if err != nil {
		return nil, err
	}
	for _, sp := range spectra {
		scope.Keep(sp.a, sp.g, sp.values)
	}
	d := int64(s.Params.Layout.Dim())
	return func(x *ts.Tensor) *ts.Tensor {
		var sum *ts.Tensor
		for _, sp := range spectra {
			y := transposed(sp.g).MustMatmul(sp.gather(x.MustReshape([]int64{1, d, 1}, false)).MustSelect(0, 0, false),
				false).MustMatmul(sp.a, false)
			q := y.MustSquare(false).MustMul(sp.values, false).MustSum(y.DType(), false)
			if sum == nil {
				sum = q
			} else {
				sum = sum.MustAdd(q, false)
			}
		}
		return sum
	}, nil
}

// AsPrior is that of [Posterior].
func (s KFACState) AsPrior() (Precision, error) {
	s.Damping = 0
	p, err := s.Precision()
	return Matrix(p), err
}

func (s KFACState) linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	root, err := s.matrix(-0.5)
	if err != nil {
		return nil, nil, err
	}
	return curvature.LinearizedFactor(f, s.Params, b, root, o)
}

func (s KFACState) search(delta []float64, perSite bool) (priorSearch, error) {
	spectra, err := s.spectra(false)
	if err != nil {
		return nil, err
	}
	var blocks []block
	for _, sp := range spectra {
		b := block{sites: []string{sp.weight.Name}, eps: method.Epsilon(s.Params.Flat)}
		if b.eigen, err = torch.ToSlice[float64](sp.data); err != nil {
			return nil, err
		}
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
	return separate(blocks, perSite), nil
}

func (s KFACState) withPrior(lambda Precision) (infer.State, error) {
	err := torch.Do(func(scope *torch.Scope) (err error) {
		if s.Prior, err = s.layerPrior(s.method(), lambda); err != nil {
			return err
		}
		s.Params.Flat, s.Inputs, s.Outputs = same(s.Params.Flat), same(s.Inputs), same(s.Outputs)
		s.Data, s.Gradient = same(s.Data), same(s.Gradient)
		method.Keep(scope, s)
		return nil
	})
	return s, err
}

// Tensors are what the state owns, and what it shares with others.
func (s KFACState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}

// Chain is that of [Posterior].
func (s KFACState) Chain(k int) (Posterior, error) { return pick(s, k) }

// LogEvidence is that of [Posterior].
func (s KFACState) LogEvidence(logJoint float64) (float64, error) { return logEvidence(s, logJoint) }

// LogPrior is that of [Posterior].
func (s KFACState) LogPrior(weight float64) (func(p infer.Params) torch.Tensor, error) {
	return logPrior(s, weight)
}

// Linearized is that of [Posterior].
func (s KFACState) Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor,
	err error) {
	return linearized(s, f, b, o)
}
