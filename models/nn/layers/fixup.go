package layers

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// Fixup starts networks of [Residual] branches without normalisation so that their outputs do not grow with depth
// (Zhang et al. 2019): the last weights of each branch are at Last, 0 by default, so that a branch begins as nearly
// nothing; the other weights of L branches of m weights each are normal with the standard deviation
//
//	Gain/√fan-in · L^(−1/(2m − 2))
//
// weights outside branches have Gain/√fan-in, and those of the layer Output are 0. Biases are 0. With [WeightNorm],
// directions are normal with mean length 1, and the number that is said of a weight is the length of its features: the
// last ones of a branch are Last times Gain. Fixup's scalar biases and multipliers are layers of the user's: it is
// what Heek and Kalchbrenner 2019 call simplified.
type Fixup struct {
	Gain   float64 // 0 means √2, for ReLU
	Last   float64 // factor of the last weights of a branch; 0 as in Fixup
	Output string  // the layer that makes the logits, by name; "" for none
}

// Scheme is for nn.Init: nn.Init(net, layers.Fixup{}.Scheme, &streams).
func (f Fixup) Scheme(sites []nn.Site) ([]nn.Law, error) {
	gain, err := positive("Fixup", "Gain", f.Gain, math.Sqrt2)
	if err != nil {
		return nil, err
	}
	if !(f.Last >= 0) || math.IsInf(f.Last, 1) {
		return nil, fieldError("Fixup", "Last", f.Last, "it must be at least 0 and finite")
	}
	branches, found := 0, f.Output == ""
	for _, s := range sites {
		if s.Branch.Of > 0 && s.Branch.Place == s.Branch.Of && !s.Gain {
			branches++
		}
		found = found || s.Layer == f.Output
	}
	if !found {
		names := make([]string, len(sites))
		for i, s := range sites {
			names[i] = s.Layer
		}
		return nil, &infer.ModelError{Name: f.Output, What: "layer", Have: names}
	}
	laws := make([]nn.Law, len(sites))
	for i, s := range sites {
		laws[i] = f.law(s, gain, branches)
	}
	return laws, nil
}

// law is that of a site in a network of so many branches.
func (f Fixup) law(s nn.Site, gain float64, branches int) nn.Law {
	normed := s.Kind == "WeightNorm"
	switch {
	case s.Bias:
		return nn.Constant(0)
	case isDirection(s) || s.Gain && !normed || s.Table:
		return s.Default
	}
	factor := 1.0
	switch {
	case f.Output != "" && s.Layer == f.Output:
		factor = 0
	case s.Branch.Of > 0 && s.Branch.Place == s.Branch.Of:
		factor = f.Last
	case s.Branch.Of > 1:
		factor = math.Pow(float64(branches), -1/(2*float64(s.Branch.Of)-2))
	}
	switch {
	case normed:
		return nn.Constant(gain * factor)
	case factor == 0:
		return nn.Constant(0)
	}
	return nn.Normal(gain * factor / math.Sqrt(float64(s.FanIn)))
}
