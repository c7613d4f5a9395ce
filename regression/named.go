package regression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
)

// named are the families by the names that users of brms know; one that has a single link ignores it.
var named = map[string]func(link string) Family{
	"gaussian":         func(l string) Family { return Gaussian{l} },
	"student":          func(l string) Family { return StudentT{l} },
	"lognormal":        func(string) Family { return LogNormal{} },
	"skew_normal":      func(string) Family { return SkewNormal{} },
	"gamma":            func(string) Family { return Gamma{} },
	"inverse_gaussian": func(string) Family { return InverseGaussian{} },
	"exponential":      func(string) Family { return Exponential{} },
	"weibull":          func(string) Family { return Weibull{} },
	"beta":             func(l string) Family { return Beta{l} },
	"bernoulli":        func(l string) Family { return Bernoulli{l} },
	"binomial":         func(l string) Family { return Binomial{l} },
	"beta_binomial":    func(l string) Family { return BetaBinomial{l} },
	"poisson":          func(l string) Family { return Poisson{l} },
	"negbinomial":      func(string) Family { return NegativeBinomial{} },
	"geometric":        func(string) Family { return Geometric{} },
	"cumulative":       func(string) Family { return Cumulative{} },
	"categorical":      func(string) Family { return Categorical{} },
	"quantile":         func(string) Family { return Quantile{} },
	"von_mises":        func(l string) Family { return VonMises{l} },
}

// FamilyNamed is a family by its name, as "gaussian", "negbinomial" or "zero_inflated_poisson", with a link; "" is the
// family's own. Another name, and a link that the family does not have, are errors that list those that there are.
func FamilyNamed(name, link string) (Family, error) {
	base, zero := strings.CutPrefix(name, "zero_inflated_")
	of, ok := named[base]
	if !ok {
		return nil, &infer.FieldError{Type: typeName, Field: "Family", Value: fmt.Sprintf("%q", name),
			Allowed: "the families are " + strings.Join(slices.Sorted(maps.Keys(named)), ", ") +
				", and zero_inflated_ before one of counts"}
	}
	f := of(link)
	if zero {
		f = ZeroInflated{Of: f}
	}
	s := f.spec()
	s.link = link // of families with a single one too
	return f, (&Model{formula: Formula{Family: f}, family: s}).checkFields()
}
