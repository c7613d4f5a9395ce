package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/parts"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// KFAC is the Laplace approximation with Kronecker-factored curvature (Martens and Grosse 2015; Ritter et al. 2018).
// Layers are independent, and the Gauss-Newton matrix of a layer s = W a, with the bias as one more column of W and a 1
// at the end of a, is taken to be
//
//	P_layer = (Scale/N) (Σ_i S_iᵀ H_i S_i) ⊗ (Σ_i a_i a_iᵀ) + (prior precision + Damping) I,
//	S_i = ∂z_i/∂s_i,   H_i = −∂² log p(y_i|z_i)/∂z²
//
// for W in row-major order and N data. Each layer's block is exact for one datum, and where S_iᵀ H_i S_i is the same
// for all data, as in a linear network with Gaussian noise; what couples the layers is dropped. A layer costs out² +
// (in + 1)² numbers in place of their product squared.
type KFAC struct {
	Network Network         // the forward function; required
	Layers  []Layer         // its linear layers, which hold all sites; required
	Outer   curvature.Outer // log p(y_i|z_i), of shape [n]; required
	// Empirical takes the gradients g_i of log p(y_i|z_i) in s_i for the second factor, Σ g_i g_iᵀ, in place of
	// Σ S_iᵀ H_i S_i: one backward pass for a batch in place of one for each output.
	Empirical bool
	// PriorPrecision is added once: Isotropic, or PerSite with one number for weights and bias. The zero value means
	// the curvature of the target's prior, which must be one number for each layer, or a flat prior.
	PriorPrecision Precision
	// Scale multiplies each batch's part: N over the data seen where a pass leaves some out; 0 means 1.
	Scale       float64
	Temperature infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Damping     float64        // added once to the diagonal of P; default 0
	Memory      int64          // bytes for the factors; 0 is the default of curvature.Options
	Optimizer   infer.Method   // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where the target has none the log
// likelihood of the batch.
func (c KFAC) Build(target infer.Target) (infer.Transform, error) {
	const name = "laplace.KFAC"
	o := options{name: name, prior: c.PriorPrecision, scale: c.Scale, temperature: c.Temperature, damping: c.Damping,
		memory: c.Memory, optimizer: c.Optimizer}
	if c.Network == nil {
		return nil, o.missing("Network", "the forward function, with its linear layers")
	}
	if c.Outer == nil {
		return nil, o.missing("Outer", "the log likelihoods log p(y_i|z_i), of shape [n]")
	}
	if len(c.Layers) == 0 {
		return nil, &infer.FieldError{Type: name, Field: "Layers", Value: "empty",
			Allowed: "at least one layer is needed"}
	}
	if c.PriorPrecision.given != nil {
		return nil, &infer.FieldError{Type: name, Field: "PriorPrecision", Value: "a tensor",
			Allowed: "Isotropic and PerSite keep the Kronecker form; the dense methods take any"}
	}
	if target.LogJacobian != nil {
		return nil, fmt.Errorf("%s: the target has variables that are not on the real line, whose Jacobian has no "+
			"Kronecker form: use laplace.DenseHessian or laplace.DiagFisher: %w", name, infer.ErrConfig)
	}
	o, err := o.checked(target, curvature.Likelihood(c.Network.Forward(c.Layers...), c.Outer))
	if err != nil {
		return nil, err
	}
	return &kfac{options: o, c: c}, nil
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (KFAC) Defaults() infer.Options { return defaults() }

var _ interface {
	infer.Transform
	infer.Restorer
	infer.Sampler
	infer.ModeFinder
	infer.Passer
	infer.Noter
} = (*kfac)(nil)

type kfac struct {
	options
	c KFAC
}

func (t *kfac) Init(p infer.Params) (infer.State, error) {
	start, err := copyOf(t.name, p)
	if err != nil {
		return nil, err
	}
	if err := checkLayers(t.name, t.c.Layers, p.Layout); err != nil {
		return nil, err
	}
	s := KFACState{Params: start, Layers: t.c.Layers, Damping: t.damping}
	if s.Temperature, err = t.at(0); err != nil {
		return nil, err
	}
	var a, g int64
	for _, l := range s.layers() {
		a, g = a+l.in*l.in, g+l.out*l.out
	}
	if err := checkMemory(t.name, fmt.Sprintf("Kronecker factors with %d numbers for each of %d chains", a+g,
		p.Chains()), p,
		float64(a+g)*float64(p.Chains()), t.memory, t.name+".Memory", "use laplace.DiagGGN, or the last layer alone "+
			"by infer.Subspace"); err != nil {
		return nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		lead := start.Flat.MustSize()
		lead = lead[:len(lead)-1]
		zeros := func(shape ...int64) *ts.Tensor {
			return ts.MustZeros(append(append([]int64{}, lead...), shape...), start.Flat.DType(),
				torch.Must(torch.DeviceOf(start.Flat)))
		}
		s.Inputs, s.Outputs, s.Data, s.Gradient = zeros(a), zeros(g), zeros(), start.Flat.MustZerosLike(false)
		if s.Prior, err = s.layerPrior(t.name, t.prior); err != nil {
			return err
		}
		method.Keep(scope, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckRows refuses data that the method cannot take one by one, before a run looks for the mode.
func (t *kfac) CheckRows(b infer.Batch) error { return t.checkRows(b) }

func (t *kfac) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[KFACState](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	if err := t.CheckRows(b); err != nil {
		return nil, infer.Info{}, err
	}
	next := s
	next.Step++
	if next.Temperature, err = t.at(next.Step); err != nil {
		return nil, infer.Info{}, err
	}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, 0, next.Temperature)
		next.Prior = same(s.Prior)
		if s.Step == 0 && t.inferred {
			prior, err := parts.Curvature(parts.Prior(t.target, 0), s.Params, b, false, t.memory, t.name)
			if err != nil {
				return fmt.Errorf("the curvature of the prior: %w", err)
			}
			if next.Prior, err = s.priorOfLayers(t.name, prior); err != nil {
				return err
			}
		}
		k := s.Params.Chains()
		inputs, outputs, data := make([]*ts.Tensor, k), make([]*ts.Tensor, k), make([]*ts.Tensor, k)
		for i := range k {
			if info.Diverged != nil && info.Diverged[i] {
				old := s.of(i)
				inputs[i], outputs[i], data[i] = old.Inputs.MustZerosLike(false), old.Outputs.MustZerosLike(false),
					old.Data.MustZerosLike(false)
				continue
			}
			err := gradients(func() error {
				inputs[i], outputs[i], data[i], err = t.factors(point(s.Params, i), b)
				return err
			})
			if err != nil {
				return err
			}
		}
		for _, q := range []struct {
			old, more *ts.Tensor
			to        **ts.Tensor
		}{
			{s.Inputs, stack(s.Params, inputs), &next.Inputs},
			{s.Outputs, stack(s.Params, outputs), &next.Outputs},
			{s.Data, stack(s.Params, data), &next.Data},
		} {
			if *q.to, err = torch.Combine(torch.Term{Coeff: 1, Tensor: q.old},
				torch.Term{Coeff: t.scale, Tensor: q.more}); err != nil {
				return err
			}
		}
		_, share, err := counted(s.Params, s.Data, numbers(data))
		if err != nil {
			return err
		}
		if next.Gradient, err = t.slopes(s.Gradient, e, share, info.Diverged); err != nil {
			return err
		}
		next.Params.Flat = same(s.Params.Flat)
		method.Keep(scope, next)
		method.KeepAux(scope, info.Aux)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// numbers are the values of tensors with one element.
func numbers(x []*ts.Tensor) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = item(x[i])
	}
	return out
}

// factors are the sums over a batch: Σ a aᵀ and Σ Sᵀ H S (or Σ g gᵀ) of all layers, flat, and the number of data.
func (t *kfac) factors(p infer.Params, b infer.Batch) (inputs, outputs, data *ts.Tensor, err error) {
	r, err := record(t.c.Network, t.c.Layers, p, b)
	if err != nil {
		return nil, nil, nil, err
	}
	var left, right []*ts.Tensor // [rows, out], with the second factor Σ leftᵀ right
	if t.c.Empirical {
		l, err := t.c.Outer.Densities(r.z.MustReshape(r.shape, false), b)
		if err != nil {
			return nil, nil, nil, err
		}
		if left, err = torch.Grad([]*ts.Tensor{l.MustSum(l.DType(), false)}, r.outputs,
			&torch.GradOptions{AllowUnused: true}); err != nil {
			return nil, nil, nil, err
		}
		right = left
	} else {
		root, signs, err := t.c.Outer.Root(r.z.MustReshape(r.shape, false), b)
		if err != nil {
			return nil, nil, nil, err
		}
		jacobians, err := r.jacobians()
		if err != nil {
			return nil, nil, nil, err
		}
		for _, j := range jacobians {
			flat := []int64{r.n * r.c, j.MustSize()[2]}
			rows := root.MustBmm(j, false) // so that Sᵀ H S is a sum of squares, also after rounding
			signed := rows
			if signs != nil {
				signed = rows.MustMul(signs.MustUnsqueeze(2, false), false)
			}
			left, right = append(left, rows.MustReshape(flat, false)), append(right, signed.MustReshape(flat, false))
		}
	}
	var a, g []*ts.Tensor
	for i, x := range r.inputs {
		a = append(a, x.MustTranspose(0, 1, false).MustMatmul(x, false).MustReshape([]int64{-1}, false))
		g = append(g, left[i].MustTranspose(0, 1, false).MustMatmul(right[i], false).MustReshape([]int64{-1}, false))
	}
	inputs, outputs = ts.MustCat(a, 0).MustDetach(false), ts.MustCat(g, 0).MustDetach(false)
	for what, x := range map[string]*ts.Tensor{
		"inputs of the layers": inputs, "derivatives in the outputs of the layers": outputs} {
		if item(x.MustIsfinite(false).MustAll(false)) == 0 {
			return nil, nil, nil, fmt.Errorf("the %s are %w", what, infer.ErrNonFinite)
		}
	}
	data, err = ts.Full([]int64{}, ts.FloatScalar(float64(r.n)), inputs.DType(), torch.Must(torch.DeviceOf(inputs)))
	return inputs, outputs, data, err
}

// Sample draws n points from N(θ̂, T P⁻¹), a tensor of shape [n, d]. With K chains draw i is of chain i mod K.
func (t *kfac) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := method.StateAs[KFACState](state, t.name)
	if err != nil {
		return infer.Params{}, err
	}
	if err := t.seen(s.Step, n, streams); err != nil {
		return infer.Params{}, err
	}
	return draw(s, n, streams)
}

func (t *kfac) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	s := KFACState{Params: infer.Params{Layout: layout}, Layers: t.c.Layers, Damping: t.damping, Step: saved.Steps}
	var err error
	if s.Temperature, err = t.at(s.Step); err != nil {
		return nil, err
	}
	for name, to := range map[string]**ts.Tensor{
		"params": &s.Params.Flat, "inputs": &s.Inputs, "outputs": &s.Outputs, "data": &s.Data, "prior": &s.Prior,
		"gradient": &s.Gradient} {
		if *to, err = saved.Tensor(name); err != nil {
			return nil, err
		}
	}
	return s, nil
}
