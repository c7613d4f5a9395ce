package models

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Horseshoe is the horseshoe prior of coefficients β (Carvalho, Polson and Scott 2010), or with a Slab the regularised
// one (Piironen and Vehtari 2017, "Sparsity information and regularization in the horseshoe and other shrinkage
// priors"):
//
//	βᵢ = zᵢ τ λᵢ / √(1 + τ² λᵢ²/c²),  zᵢ ~ Normal(0, 1)
//	τ ~ HalfCauchy(Global),  λᵢ ~ HalfCauchy(1),  c² ~ InverseGamma(SlabDF/2, SlabDF·Slab²/2)
//
// without a Slab c is infinite. The global scale τ draws all coefficients to 0, and the heavy tails of the local scales
// λ let single ones escape. The slab is what those have for a prior: Student's t with SlabDF degrees of freedom and the
// scale Slab. Features should have the same scale.
//
// The horseshoe has long narrow tails. NUTS finds its way through them with a target acceptance of 0.95 or more;
// without a slab it may still diverge.
type Horseshoe struct {
	// Global is the scale of τ, a number or a tensor of shape [] greater than 0; nil is 1. GlobalScale gives it from a
	// guess of how many coefficients are not 0.
	Global any
	Slab   float64 // scale of the largest coefficients; 0 is no slab
	SlabDF float64 // degrees of freedom of the slab; 0 is 4
}

// R2D2 is the prior of coefficients β of features of unit variance by the share of the variance that they explain
// (Zhang, Naughton, Bondell and Reich 2022, "Bayesian regression using a prior on the model fit: the R2-D2 shrinkage
// prior"; in the form of brms):
//
//	βᵢ = zᵢ σ √(φᵢ R²/(1 − R²)),  zᵢ ~ Normal(0, 1)
//	R² ~ Beta(Mean·Precision, (1 − Mean)·Precision),  φ ~ Dirichlet(Concentration)
//
// A small Concentration lets few coefficients have most of the share.
type R2D2 struct {
	Mean          float64 // of R², between 0 and 1; 0 is 1/2
	Precision     float64 // of R², greater than 0; 0 is 2, with which R² is uniform for a Mean of 1/2
	Concentration float64 // greater than 0; 0 is 1/2
	Noise         any     // σ, a number or a tensor of shape [] greater than 0; nil is 1
}

// GlobalScale is the Global at which the prior expects about relevant of the features to have coefficients that are not
// shrunk, of n observations with noise of standard deviation sigma, a number or a tensor, and features of unit variance
// (Piironen and Vehtari 2017, equation 3.12):
//
//	relevant/(features − relevant) · sigma/√n
//
// For a logistic regression sigma is about 2. relevant is greater than 0 and less than features.
func GlobalScale(relevant float64, features int, sigma any, n int) (scale torch.Tensor, err error) {
	defer func() { // a sigma that is no operand is a panic inside a model
		switch r := recover().(type) {
		case nil:
		case torch.Recoverable:
			scale, err = torch.Tensor{}, fmt.Errorf("models.GlobalScale: sigma: %w", r)
		default:
			panic(r)
		}
	}()
	switch {
	case !(relevant > 0 && relevant < float64(features)):
		return torch.Tensor{}, fmt.Errorf("models.GlobalScale: relevant is %v: it must be greater than 0 and less "+
			"than the number of features, which is %d", relevant, features)
	case n < 1:
		return torch.Tensor{}, fmt.Errorf("models.GlobalScale: n is %d: it must be at least 1", n)
	}
	return torch.Of(sigma).Mul(relevant / (float64(features) - relevant) / math.Sqrt(float64(n))), nil
}

// Sample declares n coefficients and returns them, of shape [n]; in plates the dimensions of the plates come before.
// Its sites are name_global (τ), name_local (λ), name_slab (c², with a slab) and name_raw (z); name is a Deterministic.
// A mistake in the fields is a [ppl.SiteError] of the function that runs the model.
func (h Horseshoe) Sample(c *ppl.Ctx, name string, n int) torch.Tensor {
	fail := func(format string, args ...any) {
		panic(&ppl.SiteError{Site: name, Distribution: "Horseshoe", Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case n < 1:
		fail("%d coefficients are asked for: there must be at least 1", n)
	case !(h.Slab >= 0) || math.IsInf(h.Slab, 1):
		fail("Slab is %v: it must be greater than 0, or 0 for no slab", h.Slab)
	case !(h.SlabDF >= 0) || math.IsInf(h.SlabDF, 1):
		fail("SlabDF is %v: it must be greater than 0, or 0 for 4", h.SlabDF)
	}
	if h.Global == nil {
		h.Global = 1
	}
	if h.SlabDF == 0 {
		h.SlabDF = 4
	}
	vector := func(d dist.Distribution) dist.Distribution { return dist.Independent(d.Expand(n), 1) }
	tau := c.Sample(name+"_global", dist.HalfCauchy(h.Global)).Unsqueeze(-1)
	scale := c.Sample(name+"_local", vector(dist.HalfCauchy(1))).Mul(tau)
	if h.Slab > 0 {
		half := h.SlabDF / 2
		slab := c.Sample(name+"_slab", dist.InverseGamma(half, half*h.Slab*h.Slab)).Unsqueeze(-1)
		scale = scale.Div(scale.Square().Div(slab).Add(1).Sqrt())
	}
	return c.Deterministic(name, c.Sample(name+"_raw", vector(dist.Normal(0, 1))).Mul(scale))
}

// Sample declares n coefficients and returns them, of shape [n]. Its sites are name_r2 (R²), name_shares (φ, of two
// coefficients and more) and name_raw (z); name is a Deterministic. A mistake in the fields is a [ppl.SiteError] of the
// function that runs the model.
func (r R2D2) Sample(c *ppl.Ctx, name string, n int) torch.Tensor {
	fail := func(format string, args ...any) {
		panic(&ppl.SiteError{Site: name, Distribution: "R2D2", Message: fmt.Sprintf(format, args...)})
	}
	r.Mean, r.Precision = cmp.Or(r.Mean, 0.5), cmp.Or(r.Precision, 2)
	r.Concentration = cmp.Or(r.Concentration, 0.5)
	switch {
	case n < 1 || n > 1<<24:
		fail("%d coefficients are asked for: there must be from 1 to %d", n, 1<<24)
	case !(r.Mean > 0 && r.Mean < 1):
		fail("Mean is %v: it must be between 0 and 1, or 0 for 1/2", r.Mean)
	case !(r.Precision > 0) || math.IsInf(r.Precision, 1):
		fail("Precision is %v: it must be greater than 0, or 0 for 2", r.Precision)
	case !(r.Concentration > 0) || math.IsInf(r.Concentration, 1):
		fail("Concentration is %v: it must be greater than 0, or 0 for 1/2", r.Concentration)
	}
	if r.Noise == nil {
		r.Noise = 1
	}
	r2 := c.Sample(name+"_r2", dist.Beta(r.Mean*r.Precision, (1-r.Mean)*r.Precision)).Unsqueeze(-1)
	scale := r2.Div(torch.Of(1).Sub(r2)).Sqrt().Mul(r.Noise)
	if n > 1 {
		shares := c.Sample(name+"_shares", dist.Dirichlet(torch.New(slices.Repeat([]float64{r.Concentration}, n))))
		scale = scale.Mul(shares.Sqrt())
	}
	raw := c.Sample(name+"_raw", dist.Independent(dist.Normal(0, 1).Expand(n), 1))
	return c.Deterministic(name, raw.Mul(scale))
}
