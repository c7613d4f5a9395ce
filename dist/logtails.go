package dist

import "github.com/kelvin-ppl/kelvin/torch"

// LogTails are log P(X ≤ x) and log P(X > x), each from its own tail, so that neither loses digits where the other is
// nearly 1. d is a distribution of single real numbers with a CDF; another one is an [*Error] of the model. They are
// what censored data have for a likelihood: the second of a number that is known to be above x.
func LogTails(d Distribution, x any) (lower, upper torch.Tensor) {
	if d == nil {
		panic(&Error{"LogTails", "", "nil", "a distribution of single real numbers with a CDF is required"})
	}
	if missing := noCDF(d); missing != "" || d.Support().Discrete() || len(d.EventShape()) > 0 {
		panic(&Error{d.Name(), "", "it has no distribution function here",
			"a distribution of single real numbers with a CDF is required"})
	}
	return tailsAnywhere(d, torch.Of(x))
}
