package regression

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Family is the law of the outcome given its predictors: [Gaussian], [StudentT], [LogNormal], [SkewNormal], [Gamma],
// [InverseGaussian], [Exponential], [Weibull], [Beta], [Bernoulli], [Binomial], [BetaBinomial], [Poisson],
// [NegativeBinomial], [Geometric], [Cumulative], [Sequential], [Adjacent], [Categorical], [Multinomial], [Dirichlet],
// [VonMises], [Quantile], [Cox], or [ZeroInflated] or [Hurdle] of another one.
//
// A Link is "identity", "log", "logit", "probit", "cloglog" or "tan_half"; empty is the family's own, which comes first
// where a family has several. μ is its inverse at the linear predictor η.
type Family interface{ spec() *spec }

// Gaussian has the mean μ and the standard deviation sigma. Links: identity, log.
type Gaussian struct {
	Link string // one of its links; empty is the first
}

// StudentT has the location μ, the scale sigma and nu degrees of freedom. Links: identity, log.
type StudentT struct {
	Link string // one of its links; empty is the first
}

// LogNormal is exp of a number with mean η and standard deviation sigma.
type LogNormal struct{}

// SkewNormal has the mean μ, the standard deviation sigma and the skew alpha.
type SkewNormal struct{}

// Gamma has the mean μ and the given shape; its variance is μ²/shape. Link: log.
type Gamma struct{}

// InverseGaussian has the mean μ and the given shape; its variance is μ³/shape. Link: log.
type InverseGaussian struct{}

// Exponential has the mean μ. Link: log.
type Exponential struct{}

// Weibull has the mean μ and the given shape. Link: log.
type Weibull struct{}

// Beta has the mean μ and the precision phi: Beta(μ phi, (1 - μ) phi). Links: logit, probit, cloglog.
type Beta struct {
	Link string // one of its links; empty is the first
}

// Bernoulli is 1 with probability μ, and else 0. The outcome may be a factor of two levels, of which the second is 1.
// Links: logit, probit, cloglog.
type Bernoulli struct {
	Link string // one of its links; empty is the first
}

// Binomial is the number of successes of trials(n) with probability μ each. Links: logit, probit, cloglog.
type Binomial struct {
	Link string // one of its links; empty is the first
}

// BetaBinomial is Binomial with a probability from Beta(μ phi, (1 - μ) phi). Links: logit, probit, cloglog.
type BetaBinomial struct {
	Link string // one of its links; empty is the first
}

// Poisson is a count of mean μ. Links: log, identity.
type Poisson struct {
	Link string // one of its links; empty is the first
}

// NegativeBinomial is a count of mean μ and variance μ + μ²/shape. Link: log.
type NegativeBinomial struct{}

// Geometric is NegativeBinomial of shape 1. Link: log.
type Geometric struct{}

// VonMises is an angle from -π to π, with the mean direction μ and the concentration kappa. Links: tan_half, identity.
type VonMises struct {
	Link string // one of its links; empty is the first
}

// ZeroInflated is 0 with probability zi and else a count of another family; μ is the mean of that.
type ZeroInflated struct {
	Of Family // of counts
}

// spec is what a family is made of.
type spec struct {
	name    string   // as users of brms know it
	link    string   // the one that is asked for; "" is the first of links
	links   []string // the family's own first
	params  []string // beside μ, with what parameter says of each
	scaled  bool     // the outcome has a scale, and priors with it
	trials  bool     // the outcome is a number of trials(n)
	ordinal bool     // the outcome is one of ordered categories
	free    bool     // thresholds of ordered categories are in any order
	nominal bool     // the outcome is of categories without an order
	several bool     // the outcome is a column for each category
	joint   bool     // the outcome is several numbers with correlated residuals
	partial bool     // there is a partial likelihood alone
	hurdle  bool     // the outcome is 0, or of the family's law
	wrong   string   // what is wrong with a field
	allowed outcome
	dist    func(a args) dist.Distribution
	// glm is dist where η = x w + rest; nil where there is none.
	glm func(x, w, rest torch.Tensor, a args) dist.Distribution
	// logits are logarithms of numbers proportional to the probabilities of categories, [rows, categories]; nil is none.
	logits func(a args) torch.Tensor
	// mean of the outcome; nil is μ.
	mean func(a args) torch.Tensor
}

// args are what a distribution is made of, for each row.
type args struct {
	eta    torch.Tensor
	mu     torch.Tensor            // the inverse link of eta
	of     map[string]torch.Tensor // the other parameters by name
	trials torch.Tensor
	logits []any // the predictor of each category without an order, or of each outcome
}

// parameter is a parameter of families beside the mean: where it lies, and its prior where it has no formula.
type parameter struct {
	link  string // "log" for positive, "logit" for those from 0 to 1, "identity"
	prior func(scale float64) dist.Distribution
	says  func(scale float64) string // the prior in words
}

// parameters are those of all families. Priors are those of Bambi's families (Capretto et al. 2022) but for sigma,
// which has that of rstanarm: the scale of the outcome is its mean.
var parameters = map[string]parameter{
	"sigma": {"log", func(s float64) dist.Distribution { return dist.Exponential(1 / s) },
		func(s float64) string { return fmt.Sprintf("Exponential(rate %.3g)", 1/s) }},
	"nu":    of("log", "Gamma(2, 0.1)", dist.Gamma(2, 0.1)),
	"shape": of("log", "HalfCauchy(1)", dist.HalfCauchy(1)),
	"phi":   of("log", "HalfCauchy(1)", dist.HalfCauchy(1)),
	"kappa": of("log", "HalfCauchy(1)", dist.HalfCauchy(1)),
	"alpha": of("identity", "Normal(0, 4)", dist.Normal(0, 4)),
	"zi":    of("logit", "Beta(2, 2)", dist.Beta(2, 2)),
	"hu":    of("logit", "Beta(2, 2)", dist.Beta(2, 2)),
}

func of(link, says string, d dist.Distribution) parameter {
	return parameter{link, func(float64) dist.Distribution { return d }, func(float64) string { return says }}
}

// outcome is what the outcomes of a family are. n is the number of trials.
type outcome struct {
	ok   func(y, n float64) bool
	must string
}

func whole(y float64) bool { return y >= 0 && y == math.Trunc(y) }

var (
	number   = outcome{func(_, _ float64) bool { return true }, ""}
	positive = outcome{func(y, _ float64) bool { return y > 0 }, "it must be above 0"}
	unit     = outcome{func(y, _ float64) bool { return y > 0 && y < 1 }, "it must be between 0 and 1, without the ends"}
	count    = outcome{func(y, _ float64) bool { return whole(y) }, "it must be a count: a whole number from 0"}
	ofTrials = outcome{func(y, n float64) bool { return whole(y) && y <= n },
		"it must be a whole number from 0 to its number of trials"}
	binary = outcome{func(y, _ float64) bool { return y == 0 || y == 1 }, "it must be 0 or 1"}
	angle  = outcome{func(y, _ float64) bool { return y >= -math.Pi && y <= math.Pi }, "it must be an angle from -π to π"}
)

func (f Gaussian) spec() *spec {
	return &spec{name: "gaussian", link: f.Link, links: []string{"identity", "log"}, params: []string{"sigma"},
		scaled: true, allowed: number,
		dist: func(a args) dist.Distribution { return dist.Normal(a.mu, a.of["sigma"]) },
		glm: func(x, w, rest torch.Tensor, a args) dist.Distribution {
			return dist.NormalGLM(x, w, rest, a.of["sigma"])
		}}
}

func (f StudentT) spec() *spec {
	return &spec{name: "student", link: f.Link, links: []string{"identity", "log"}, params: []string{"sigma", "nu"},
		scaled: true, allowed: number,
		dist: func(a args) dist.Distribution { return dist.StudentT(a.of["nu"], a.mu, a.of["sigma"]) }}
}

func (LogNormal) spec() *spec {
	return &spec{name: "lognormal", links: []string{"identity"}, params: []string{"sigma"}, allowed: positive,
		dist: func(a args) dist.Distribution { return dist.LogNormal(a.mu, a.of["sigma"]) },
		mean: func(a args) torch.Tensor { return a.of["sigma"].Square().Div(2).Add(a.mu).Exp() }}
}

func (SkewNormal) spec() *spec {
	return &spec{name: "skew_normal", links: []string{"identity"}, params: []string{"sigma", "alpha"}, scaled: true,
		allowed: number,
		// With δ = α/√(1 + α²) the mean is loc + ω δ √(2/π) and the variance ω² (1 - 2δ²/π) (Azzalini 1985).
		dist: func(a args) dist.Distribution {
			alpha := a.of["alpha"]
			shift := alpha.Div(alpha.Square().Add(1).Sqrt()).Mul(math.Sqrt(2 / math.Pi))
			omega := a.of["sigma"].Div(torch.Of(1).Sub(shift.Square()).Sqrt())
			return dist.SkewNormal(a.mu.Sub(omega.Mul(shift)), omega, alpha)
		}}
}

func (Gamma) spec() *spec {
	return &spec{name: "gamma", links: []string{"log"}, params: []string{"shape"}, allowed: positive,
		dist: func(a args) dist.Distribution { return dist.Gamma(a.of["shape"], a.of["shape"].Div(a.mu)) }}
}

func (InverseGaussian) spec() *spec {
	return &spec{name: "inverse_gaussian", links: []string{"log"}, params: []string{"shape"}, allowed: positive,
		dist: func(a args) dist.Distribution { return dist.InverseGaussian(a.mu, a.of["shape"]) }}
}

func (Exponential) spec() *spec {
	return &spec{name: "exponential", links: []string{"log"}, allowed: positive,
		dist: func(a args) dist.Distribution { return dist.Exponential(a.eta.Neg().Exp()) }}
}

func (Weibull) spec() *spec {
	return &spec{name: "weibull", links: []string{"log"}, params: []string{"shape"}, allowed: positive,
		dist: func(a args) dist.Distribution {
			k := a.of["shape"]
			return dist.Weibull(a.eta.Sub(k.Reciprocal().Add(1).Lgamma()).Exp(), k)
		}}
}

var probabilities = []string{"logit", "probit", "cloglog"}

func (f Beta) spec() *spec {
	return &spec{name: "beta", link: f.Link, links: probabilities, params: []string{"phi"}, allowed: unit,
		dist: func(a args) dist.Distribution {
			yes, no := shares(f.Link, a.eta)
			return dist.Beta(yes.Mul(a.of["phi"]), no.Mul(a.of["phi"]))
		}}
}

func (f Bernoulli) spec() *spec {
	return &spec{name: "bernoulli", link: f.Link, links: probabilities, allowed: binary,
		dist: func(a args) dist.Distribution { return dist.BernoulliLogits(logOdds(f.Link, a.eta)) },
		glm: func(x, w, rest torch.Tensor, _ args) dist.Distribution {
			return dist.BernoulliLogitGLM(x, w, rest)
		}}
}

func (f Binomial) spec() *spec {
	return &spec{name: "binomial", link: f.Link, links: probabilities, trials: true, allowed: ofTrials,
		dist: func(a args) dist.Distribution { return dist.BinomialLogits(a.trials, logOdds(f.Link, a.eta)) },
		mean: func(a args) torch.Tensor { return a.mu.Mul(a.trials) }}
}

func (f BetaBinomial) spec() *spec {
	return &spec{name: "beta_binomial", link: f.Link, links: probabilities, params: []string{"phi"}, trials: true,
		allowed: ofTrials,
		dist: func(a args) dist.Distribution {
			yes, no := shares(f.Link, a.eta)
			return dist.BetaBinomial(a.trials, yes.Mul(a.of["phi"]), no.Mul(a.of["phi"]))
		},
		mean: func(a args) torch.Tensor { return a.mu.Mul(a.trials) }}
}

func (f Poisson) spec() *spec {
	s := &spec{name: "poisson", link: f.Link, links: []string{"log", "identity"}, allowed: count,
		dist: func(a args) dist.Distribution { return dist.Poisson(a.mu) },
		glm: func(x, w, rest torch.Tensor, _ args) dist.Distribution {
			return dist.PoissonLogGLM(x, w, rest)
		}}
	if s.canonical() {
		s.dist = func(a args) dist.Distribution { return dist.PoissonLog(a.eta) }
	}
	return s
}

func (NegativeBinomial) spec() *spec {
	return &spec{name: "negbinomial", links: []string{"log"}, params: []string{"shape"}, allowed: count,
		dist: func(a args) dist.Distribution { return dist.NegativeBinomial(a.mu, a.of["shape"]) }}
}

func (Geometric) spec() *spec {
	return &spec{name: "geometric", links: []string{"log"}, allowed: count,
		dist: func(a args) dist.Distribution { return dist.NegativeBinomial(a.mu, 1) }}
}

func (f VonMises) spec() *spec {
	return &spec{name: "von_mises", link: f.Link, links: []string{"tan_half", "identity"}, params: []string{"kappa"},
		allowed: angle,
		dist:    func(a args) dist.Distribution { return dist.VonMises(a.mu, a.of["kappa"]) }}
}

func (f ZeroInflated) spec() *spec {
	switch f.Of.(type) {
	case Poisson, NegativeBinomial, Geometric, Binomial, BetaBinomial:
	default:
		return &spec{name: "zero_inflated",
			wrong: "ZeroInflated is of Poisson, NegativeBinomial, Geometric, Binomial or BetaBinomial"}
	}
	s := *f.Of.spec()
	base, mean := s.dist, s.mean
	s.name = "zero_inflated_" + s.name
	s.params = append(append([]string{}, s.params...), "zi")
	s.glm = nil
	s.dist = func(a args) dist.Distribution { return dist.ZeroInflated(a.of["zi"], base(a)) }
	s.mean = func(a args) torch.Tensor {
		m := a.mu
		if mean != nil {
			m = mean(a)
		}
		return m.Mul(torch.Of(1).Sub(a.of["zi"]))
	}
	return &s
}

// canonical says whether the link is the family's own.
func (s *spec) canonical() bool { return s.link == "" || s.link == s.links[0] }

// linked is the link in use.
func (s *spec) linked() string {
	if s.link == "" {
		return s.links[0]
	}
	return s.link
}

// countable says whether the outcome is a whole number.
func (s *spec) countable() bool {
	return s.ordinal || s.nominal || s.trials || s.allowed.ok(0, 1) && !s.allowed.ok(0.5, 1)
}
