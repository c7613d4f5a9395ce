package thermo

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// kineticLevel is the default probability of the interval of a kinetic temperature (Wenzel et al. 2020).
const kineticLevel = 0.99

// kineticTemperature is T_K of momenta m with the masses given; see [Kinetic.Add].
func kineticTemperature(m, mass []float64) (float64, error) {
	if len(m) == 0 {
		return 0, failf(draws.ErrSize, "kinetic temperature: no momenta")
	}
	if len(mass) > 1 && len(mass) != len(m) {
		return 0, failf(draws.ErrSize, "kinetic temperature: %d masses of %d momenta, want none, one, or one each",
			len(mass), len(m))
	}
	for i, v := range mass {
		if !(v > 0) || math.IsInf(v, 1) {
			return 0, failf(draws.ErrRange, "kinetic temperature: mass %d is %v, want a positive number", i, v)
		}
	}
	sum := 0.0
	for i, v := range m {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, failf(diag.ErrNotFinite, "kinetic temperature: momentum %d is %v", i, v)
		}
		switch len(mass) {
		case 0:
			sum += v * v
		case 1:
			sum += v * v / mass[0]
		default:
			sum += v * v / mass[i]
		}
	}
	return sum / float64(len(m)), nil
}

// kineticInterval is the interval in which the kinetic temperature of d momenta lies with probability level in exact
// simulation at temperature T, where d T_K / T has the χ² distribution of d degrees of freedom:
//
//	(T/d) (F⁻¹((1 - level)/2), F⁻¹((1 + level)/2))
//
// Wenzel et al. (2020), with the factor T that the law N(0, T M) of the momenta brings. level is above 0 and below 1; 0
// is the default 0.99. [draws.ErrRange] is the error.
func kineticInterval(d int, temperature, level float64) (low, high float64, err error) {
	if level == 0 {
		level = kineticLevel
	}
	if d < 1 {
		return 0, 0, failf(draws.ErrRange, "kinetic interval: %d momenta, want at least 1", d)
	}
	if err := checkPositive("kinetic interval", "temperature", temperature); err != nil {
		return 0, 0, err
	}
	if !(level > 0 && level < 1) {
		return 0, 0, failf(draws.ErrRange,
			"kinetic interval: level is %v, want a probability above 0 and below 1, or 0 for %v", level, kineticLevel)
	}
	law := distuv.ChiSquared{K: float64(d)}
	scale := temperature / float64(d)
	return scale * law.Quantile((1-level)/2), scale * law.Quantile((1+level)/2), nil
}

// checkPositive refuses numbers that are not positive and finite.
func checkPositive(doing, what string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return failf(draws.ErrRange, "%s: %s is %v, want a positive number", doing, what, v)
	}
	return nil
}

// KineticReading is one measurement of the kinetic temperature of a site.
type KineticReading struct {
	// Site is the name of the site, Chain the index of its chain.
	Site  string
	Chain int
	// Dim is the number of momenta, Target the temperature that the sampler was set to, Value the temperature measured.
	Dim           int
	Target, Value float64
	// Low and High are the ends of the interval in which exact simulation is with probability [Kinetic].Level; Inside
	// says that Value is in it.
	Low, High float64
	Inside    bool
	// Score is the normal score of the reading, Φ⁻¹(F(Dim Value/Target)): standard normal in exact simulation.
	Score float64
}

// Kinetic collects kinetic temperatures of sites at several times, usually the ends of the cycles of a schedule,
// and several chains. The tests of [Kinetic.Result] take readings as independent: momenta forget in 1/(h γ)
// updates, h the step size and γ the friction, so leave some of those between two readings. The zero value is
// ready, with the level 0.99.
type Kinetic struct {
	// Level is the probability of the interval of a reading; 0 is 0.99. Set it before the first reading.
	Level    float64
	readings []KineticReading
}

// Add takes d momenta m of a site of a chain. Their kinetic temperature, with the masses M, is
//
//	T_K = Σ m(i)² / M(i) / d
//
// and T on average if momenta are N(0, T M), as in the target of a sampler at temperature T. mass is nil for 1, one
// number for all, or one for each momentum. It must be the mass that the sampler's step used, such as σ². In exact
// simulation d T_K / T has the χ² distribution of d degrees of freedom, which gives the interval of the reading.
// Wenzel, Roth, Veeling et al. (2020), Proceedings of Machine Learning Research 119. [draws.ErrSize],
// [diag.ErrNotFinite] for momenta, and [draws.ErrRange] for masses, temperature and Level are the errors.
func (k *Kinetic) Add(site string, chain int, m, mass []float64, temperature float64) (KineticReading, error) {
	value, err := kineticTemperature(m, mass)
	if err != nil {
		return KineticReading{}, err
	}
	return k.AddValue(site, chain, len(m), value, temperature)
}

// AddValue takes a kinetic temperature that was computed elsewhere, of d momenta. [draws.ErrRange] is the error, also
// for a value below 0, and [diag.ErrNotFinite].
func (k *Kinetic) AddValue(site string, chain, d int, value, temperature float64) (KineticReading, error) {
	low, high, err := kineticInterval(d, temperature, k.Level)
	if err != nil {
		return KineticReading{}, err
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return KineticReading{}, failf(diag.ErrNotFinite, "kinetic temperature: the value of %q is %v", site, value)
	}
	if value < 0 {
		return KineticReading{}, failf(draws.ErrRange, "kinetic temperature: the value of %q is %v, want at least 0",
			site, value)
	}
	r := KineticReading{Site: site, Chain: chain, Dim: d, Target: temperature, Value: value, Low: low, High: high,
		Inside: low <= value && value <= high, Score: chiScore(float64(d), float64(d)*(value/temperature))}
	k.readings = append(k.readings, r)
	return r, nil
}

// Readings are the readings so far, in the order they came.
func (k *Kinetic) Readings() []KineticReading { return append([]KineticReading(nil), k.readings...) }

// chiScore is the standard normal number with the probabilities that x has under χ² with d degrees of freedom. Where
// the tail underflows, or rounding spoils it, that is the cube root of Wilson and Hilferty (1931).
func chiScore(d, x float64) float64 {
	if x == 0 {
		return -math.MaxFloat32 // far from the target, but finite, so that sums are finite
	}
	below, above := mathext.GammaIncReg(d/2, x/2), mathext.GammaIncRegComp(d/2, x/2)
	tail := min(below, above)
	if !(tail > 1e-300) || d > 1e4 && tail < 1e-6 {
		v := 2 / (9 * d)
		z := (math.Cbrt(x/d) - (1 - v)) / math.Sqrt(v)
		if d <= 1e4 { // further out than the tail that could still be computed
			z = math.Copysign(max(math.Abs(z), 37), x-d)
		}
		return z
	}
	if below < above {
		return mathext.NormalQuantile(below)
	}
	return -mathext.NormalQuantile(above)
}

// KineticResult says whether kinetic temperatures are those of exact simulation. Each P is a two-sided probability for
// independent readings: how often exact simulation gives figures that are at least as far off.
type KineticResult struct {
	// Site is empty for the result of all sites together.
	Site string
	// Level is the probability with which a reading of exact simulation is inside.
	Level float64
	// Readings counts the readings, Inside those that are inside their interval; Fraction is Inside/Readings.
	Readings, Inside int
	Fraction         float64
	// Low and High are the ends of the 95% Clopper-Pearson interval of the probability of being inside.
	Low, High float64
	// PInside is that of the count, by the binomial distribution of Level.
	PInside float64
	// Ratio is the mean of Value/Target weighted by Dim, 1 in exact simulation, and PRatio its probability by χ² with Σ
	// Dim degrees of freedom.
	Ratio, PRatio float64
	// PScore is that of the mean of the scores, which weighs every reading alike, by the normal distribution; PSpread
	// is that of the sum of their squares, χ² with Readings degrees of freedom: below 1e-4, readings scatter too much
	// or too little.
	PScore, PSpread float64
	// Lag is the autocorrelation of the scores of successive readings of a site and chain, 0 for independent readings,
	// and LagZ its number of standard errors. If LagZ is well above 0, the probabilities are too small.
	Lag, LagZ float64
}

// Result is made of all readings so far. [draws.ErrSize] for none and [draws.ErrRange] for a Level that is no
// probability are the errors.
func (k *Kinetic) Result() (KineticResult, error) {
	return kineticResult(k.readings, k.Level)
}

func kineticResult(readings []KineticReading, level float64) (KineticResult, error) {
	if len(readings) == 0 {
		return KineticResult{}, failf(draws.ErrSize, "kinetic temperature: no readings")
	}
	if level == 0 {
		level = kineticLevel
	}
	if !(level > 0 && level < 1) {
		return KineticResult{}, failf(draws.ErrRange,
			"kinetic temperature: level is %v, want a probability above 0 and below 1", level)
	}
	r := KineticResult{Level: level, Readings: len(readings)}
	total, dims, scores, squares := 0.0, 0.0, 0.0, 0.0
	for _, v := range readings {
		if v.Inside {
			r.Inside++
		}
		total += float64(v.Dim) * (v.Value / v.Target)
		dims += float64(v.Dim)
		scores += v.Score
		squares += v.Score * v.Score
	}
	n := float64(len(readings))
	r.Fraction = float64(r.Inside) / n
	r.Low, r.High = sample.ClopperPearson(r.Inside, r.Readings, 0.95)
	r.PInside = binomialP(r.Inside, r.Readings, level)
	r.Ratio, r.PRatio = total/dims, twoSided(chiScore(dims, total))
	r.PScore = twoSided(scores / math.Sqrt(n))
	r.PSpread = twoSided(chiScore(n, squares))
	r.Lag, r.LagZ = scoreLag(readings)
	return r, nil
}

// Exact is true if no probability is below p: nothing speaks against the sampler simulating its target.
func (r KineticResult) Exact(p float64) bool {
	return min(r.PInside, r.PRatio, r.PScore, r.PSpread) >= p
}

// String is one line.
func (r KineticResult) String() string {
	return fmt.Sprintf("%d of %d kinetic temperatures inside their %g%% intervals (%.1f%%, 95%% interval %.1f to "+
		"%.1f); mean T_K/T %.4f, p %.2g",
		r.Inside, r.Readings, 100*r.Level, 100*r.Fraction, 100*r.Low, 100*r.High, r.Ratio, r.PRatio)
}

// scoreLag is the autocorrelation at lag 1 of the scores, known mean 0 and variance taken from the pairs, and its
// number of standard errors, 1/sqrt(pairs) under independence.
func scoreLag(readings []KineticReading) (lag, z float64) {
	type series struct {
		site  string
		chain int
	}
	bySeries := map[series][]float64{}
	var order []series // so that sums do not depend on the map
	for _, r := range readings {
		s := series{r.Site, r.Chain}
		if _, ok := bySeries[s]; !ok {
			order = append(order, s)
		}
		bySeries[s] = append(bySeries[s], r.Score)
	}
	products, squares, pairs := 0.0, 0.0, 0
	for _, s := range order {
		x := bySeries[s]
		mean, _ := sample.MeanVar(x) // a temperature that is wrong must not look like correlation
		for i := 1; i < len(x); i++ {
			products += (x[i] - mean) * (x[i-1] - mean)
			squares += ((x[i]-mean)*(x[i]-mean) + (x[i-1]-mean)*(x[i-1]-mean)) / 2
			pairs++
		}
	}
	if squares == 0 {
		return 0, 0
	}
	lag = products / squares
	return lag, lag * math.Sqrt(float64(pairs))
}

// twoSided is the probability of a standard normal number at least as far from 0 as z.
func twoSided(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// binomialP is twice the smaller one of P(X <= k) and P(X >= k), at most 1, for X of n trials with probability p.
func binomialP(k, n int, p float64) float64 {
	atMost, atLeast := 1.0, 1.0
	if k < n {
		atMost = mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
	}
	if k > 0 {
		atLeast = mathext.RegIncBeta(float64(k), float64(n-k+1), p)
	}
	return min(1, 2*min(atMost, atLeast))
}
