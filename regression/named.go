package regression

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
)

// families are those that have a name.
var families = []Family{Gaussian{}, StudentT{}, LogNormal{}, SkewNormal{}, Gamma{}, InverseGaussian{}, Exponential{},
	Weibull{}, Beta{}, Bernoulli{}, Binomial{}, BetaBinomial{}, Poisson{}, NegativeBinomial{}, Geometric{}, Cumulative{},
	Sequential{}, Adjacent{}, Categorical{}, Multinomial{}, Dirichlet{}, Quantile{}, VonMises{}, Cox{}}

// FamilyNamed is a family by its name, as "gaussian", "negbinomial", "zero_inflated_poisson" or "hurdle_gamma", with a
// link; "" is the family's own. Another name, and a link that the family does not have, are errors that list those that
// there are.
func FamilyNamed(name, link string) (Family, error) {
	base, zero := strings.CutPrefix(name, "zero_inflated_")
	base, hurdle := strings.CutPrefix(base, "hurdle_")
	var names []string
	var f Family
	for _, of := range families {
		if names = append(names, of.spec().name); of.spec().name == base {
			f = of
		}
	}
	if f == nil {
		slices.Sort(names)
		return nil, &infer.FieldError{Type: typeName, Field: "Family", Value: fmt.Sprintf("%q", name),
			Allowed: "the families are " + strings.Join(names, ", ") + ", and zero_inflated_ or hurdle_ before one of them"}
	}
	linked := reflect.New(reflect.TypeOf(f)).Elem()
	if field := linked.FieldByName("Link"); field.IsValid() {
		field.SetString(link)
	}
	f = linked.Interface().(Family)
	switch {
	case hurdle || zero && base == "beta": // which brms names otherwise
		f = Hurdle{Of: f}
	case zero:
		f = ZeroInflated{Of: f}
	}
	s := f.spec()
	s.link = link // of families with a single one too
	return f, (&Model{formula: Formula{Family: f}, family: s}).checkFields()
}
