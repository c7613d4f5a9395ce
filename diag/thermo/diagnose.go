package thermo

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Simulation is what was measured while a tempered sampler ran; what is missing is not checked.
type Simulation struct {
	// Kinetic are kinetic temperatures of sites, from times far enough apart to be independent.
	Kinetic *Kinetic
	// Configurational are readings of [ConfigurationalTemperature].
	Configurational []SiteReadings
	// Thermostats are summaries of traces of ξ.
	Thermostats []Thermostat
	// Noise compares gradient noise with the injected noise.
	Noise *NoiseShare
}

// SiteReadings are readings of a temperature of a site.
type SiteReadings struct {
	// Site is the name of the site, Readings are [chain][reading], and Target is the temperature set.
	Site     string
	Readings [][]float64
	Target   float64
}

// Options are the thresholds of [Diagnose]. The zero value is the recommended one.
type Options struct {
	// P is the largest probability, under exact simulation, of what is reported, for each check of all sites together,
	// above 0 and below 1; 0 is 1e-4.
	P float64
	// Tolerance is the relative deviation of a temperature that does not matter: A smaller deviation is Info even where
	// it is sure. 0 is 0.01. Ten times as much is diag.Serious.
	Tolerance float64
}

// Report is the result of [Diagnose].
type Report struct {
	diag.Report // its text begins with a line on the kinetic temperatures
	// Kinetic is the test of all kinetic temperatures, nil if the run told none. Sites are the tests of each
	// site, in the order that sites came.
	Kinetic *KineticResult
	Sites   []KineticResult
	// Configurational has one entry for each one of [Simulation].
	Configurational []Temperature
}

// Diagnose says in words whether a tempered sampler, such as stochastic gradient MCMC, simulates its target:
//
//   - momenta of a site that are hotter or colder than the target, by χ² of the mean kinetic temperature
//   - kinetic temperatures too often outside their intervals, or scattered too little
//   - parameters hotter or colder than the target, by the mean configurational temperature and its standard error
//   - a thermostat whose variance is not that of the target, or that is below what exact gradients give
//   - gradient noise above the injected noise
//
// A finding is what exact simulation shows with a probability below P, divided by the number of sites that a check
// looks at. It is Info if the temperature is off by less than Tolerance, and Serious above ten times that. A sampler
// with a step size always has some bias. With few readings, a check that passes means little. [draws.ErrRange] for
// options and targets, [draws.ErrSize] and [diag.ErrNotFinite] are the errors.
func Diagnose(s Simulation, opt Options) (*Report, error) {
	if !(opt.P >= 0 && opt.P < 1) {
		return nil, failf(draws.ErrRange,
			"diagnose simulation: P is %v, want a probability above 0 and below 1, or 0 for 1e-4", opt.P)
	}
	if !(opt.Tolerance >= 0) || math.IsInf(opt.Tolerance, 1) {
		return nil, failf(draws.ErrRange, "diagnose simulation: Tolerance is %v, want a number above 0, or 0 for 0.01",
			opt.Tolerance)
	}
	opt.P, opt.Tolerance = cmp.Or(opt.P, 1e-4), cmp.Or(opt.Tolerance, 0.01)
	r := &Report{}
	r.Subject = "no kinetic temperatures"
	if s.Kinetic != nil && len(s.Kinetic.readings) > 0 {
		if err := r.kinetic(s.Kinetic, opt); err != nil {
			return nil, err
		}
	}
	for _, c := range s.Configurational {
		t, err := meanTemperature(c.Readings, c.Target)
		if err != nil {
			return nil, fmt.Errorf("%w of site %q", err, c.Site)
		}
		t.Site = c.Site
		r.Configurational = append(r.Configurational, t)
	}
	r.configurational(opt)
	r.thermostats(s.Thermostats, opt)
	r.noise(s.Noise)
	slices.SortStableFunc(r.Findings, func(a, b diag.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return r, nil
}

// The kinds of findings, [diag.Finding].Code.
const (
	codeHot             diag.Code = "kinetic_hot"      // momenta hotter than the target
	codeCold            diag.Code = "kinetic_cold"     // momenta colder than the target
	codeCoverage        diag.Code = "kinetic_coverage" // too many kinetic temperatures outside their intervals
	codeSpread          diag.Code = "kinetic_spread"   // kinetic temperatures that scatter too little
	codeCorrelated      diag.Code = "correlated"       // readings that follow each other too closely
	codeConfigurational diag.Code = "configurational"  // parameters hotter or colder than the target
	codeThermostat      diag.Code = "thermostat"       // a thermostat that is not in equilibrium
	codeGradientNoise   diag.Code = "gradient_noise"   // minibatch noise beside the injected noise
	codeFewReadings     diag.Code = "few_readings"     // too few readings to see much
)

// advice says what to do about each kind of finding.
var advice = map[diag.Code]string{
	codeHot: "The step size is too large, or nothing compensates the noise of the gradients: use a smaller step, " +
		"larger batches, more friction, an estimate of the noise, or a thermostat.",
	codeCold: "Too little noise is injected; or momenta are damped on the way (weight decay on them, clipping); or " +
		"they have not reached equilibrium yet; or the mass given is not that of the step.",
	codeCoverage: "The sampler does not simulate its target. Look at which sites are hot or cold; a smaller step " +
		"size, a preconditioner, and a cyclical step size help.",
	codeSpread: "Exact momenta scatter more. Look for momenta that are rescaled, readings that were given twice or " +
		"averaged, and noise that is not normal.",
	codeCorrelated: "Probabilities count correlated readings as independent ones and are too small. Leave more " +
		"updates between readings.",
	codeConfigurational: "The parameters are not at their target. Run longer if they still move; else look at the " +
		"step size, the noise and its temperature.",
	codeThermostat:    "Run longer if ξ still moves; else use a smaller step size.",
	codeGradientNoise: "Use a smaller step, larger batches, more friction, an estimate of the noise, or a thermostat.",
	codeFewReadings:   "Passing means little. Take readings of more sites, chains or cycles.",
}

// add appends a finding about all chains, with the advice of its kind.
func (r *Report) add(code diag.Code, s diag.Severity, site string, figure, threshold float64, format string,
	args ...any) {
	r.Findings = append(r.Findings, diag.Finding{Code: code, Severity: s, Site: site, Chain: -1, Observation: -1,
		Figure: figure, Threshold: threshold, Message: fmt.Sprintf(format, args...), Advice: advice[code]})
}

// severity of a temperature that is off by a share of the target.
func (opt Options) severity(share float64) diag.Severity {
	switch share = math.Abs(share); {
	case share <= opt.Tolerance:
		return diag.Info
	case share <= 10*opt.Tolerance:
		return diag.Warning
	}
	return diag.Serious
}

func (r *Report) kinetic(k *Kinetic, opt Options) error {
	all, err := kineticResult(k.readings, k.Level)
	if err != nil {
		return err
	}
	r.Kinetic, r.Subject = &all, all.String()
	bySite, chains := map[string][]KineticReading{}, map[int]bool{}
	var sites []string
	scatter := 0.0 // of Value/Target, beyond that of χ²
	for _, v := range k.readings {
		if _, ok := bySite[v.Site]; !ok {
			sites = append(sites, v.Site)
		}
		bySite[v.Site] = append(bySite[v.Site], v)
		chains[v.Chain] = true
		off := v.Value/v.Target - 1
		scatter += (off*off - 2/float64(v.Dim)) / float64(len(k.readings))
	}
	r.Chains, r.Draws = len(chains), len(k.readings)/len(sites)/len(chains)
	r.Checked = append(r.Checked, codeHot, codeCold, codeCoverage, codeSpread, codeCorrelated)
	between := 0.0 // mean square of what the sites are off by, beyond chance
	for _, name := range sites {
		site, err := kineticResult(bySite[name], k.Level)
		if err != nil {
			return err
		}
		site.Site = name
		r.Sites = append(r.Sites, site)
		dims := 0.0
		for _, v := range bySite[name] {
			dims += float64(v.Dim)
		}
		between += max((site.Ratio-1)*(site.Ratio-1)-2/dims, 0) / float64(len(sites))
		if site.PRatio >= opt.P/float64(len(sites)) {
			continue
		}
		code, word := codeHot, "hotter"
		if site.Ratio < 1 {
			code, word = codeCold, "colder"
		}
		r.add(code, opt.severity(site.Ratio-1), name, site.Ratio, 1,
			"%s: momenta are %s than the target, T_K/T is %.4g on average (p %.2g)", name, word, site.Ratio,
			site.PRatio)
	}
	excess := math.Sqrt(max(scatter, between))
	wide := 0.0 // Σ z² above its mean
	for _, v := range k.readings {
		wide += v.Score*v.Score - 1
	}
	few := all.PInside < opt.P && all.Fraction < all.Level
	if few || all.PScore < opt.P || all.PSpread < opt.P && wide > 0 {
		r.add(codeCoverage, opt.severity(excess), "", all.Fraction, all.Level,
			"%d of %d kinetic temperatures (%.1f%%) are inside intervals that hold %g%% of exact ones; "+
				"they are off by %.2g%% beyond chance", all.Inside, all.Readings, 100*all.Fraction, 100*all.Level, 100*excess)
	}
	if all.PSpread < opt.P && wide < 0 {
		r.add(codeSpread, diag.Warning, "", 1+wide/float64(all.Readings), 1,
			"kinetic temperatures scatter too little: the mean square of their scores is %.3g instead of 1 (p %.2g)",
			1+wide/float64(all.Readings), all.PSpread)
	}
	if all.LagZ > 4 && all.Lag > 0.1 {
		r.add(codeCorrelated, diag.Warning, "", all.Lag, 0.1, "successive kinetic temperatures are correlated, by %.2f",
			all.Lag)
	}
	if all.Readings < 20 {
		r.add(codeFewReadings, diag.Info, "", float64(all.Readings), 20, "there are %d kinetic temperatures",
			all.Readings)
	}
	return nil
}

func (r *Report) configurational(opt Options) {
	if len(r.Configurational) > 0 {
		r.Checked = append(r.Checked, codeConfigurational)
	}
	for _, t := range r.Configurational {
		p := studentP(t.Z, t.ESS-1)
		switch {
		case math.IsNaN(p):
			r.add(codeFewReadings, diag.Info, t.Site, t.ESS, 4,
				"%s: the readings of the configurational temperature are too few, or do not change", t.Site)
		case p < opt.P/float64(len(r.Configurational)):
			word := "hotter"
			if t.Z < 0 {
				word = "colder"
			}
			r.add(codeConfigurational, opt.severity(t.Mean/t.Target-1), t.Site, t.Mean, t.Target,
				"%s: parameters are %s than the target, T_C is %.4g ± %.2g instead of %.4g", t.Site, word, t.Mean,
				t.MCSE, t.Target)
		}
	}
}

func (r *Report) thermostats(all []Thermostat, opt Options) {
	if len(all) > 0 {
		r.Checked = append(r.Checked, codeThermostat)
	}
	for _, t := range all {
		name := cmp.Or(t.Site, "thermostat")
		limit := math.Abs(distuv.UnitNormal.Quantile(opt.P / float64(2*len(all)) / 2))
		if z := (t.VarianceRatio - 1) / t.VarianceSE; math.Abs(z) > limit {
			r.add(codeThermostat, min(opt.severity(t.VarianceRatio-1), diag.Warning), t.Site, t.VarianceRatio, 1,
				"%s: the variance of ξ is %.3g ± %.2g times that of the target", name, t.VarianceRatio, t.VarianceSE)
		}
		if t.Z < -limit {
			r.add(codeThermostat, diag.Warning, t.Site, t.Mean, t.ExactMean,
				"%s: ξ is %.4g ± %.2g on average, below the %.4g of exact gradients", name, t.Mean, t.MCSE, t.ExactMean)
		}
	}
}

func (r *Report) noise(n *NoiseShare) {
	if n == nil {
		return
	}
	r.Checked = append(r.Checked, codeGradientNoise)
	if n.Dominates || n.Largest > 1 {
		r.add(codeGradientNoise, diag.Warning, "", max(n.Mean, n.Largest), 1, "%s", n.Message)
	}
}

// studentP is the two-sided probability of t under Student's law with so many degrees of freedom.
func studentP(t, degrees float64) float64 {
	if math.IsNaN(t) || !(degrees > 0) {
		return math.NaN()
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: degrees}.CDF(-math.Abs(t))
}
