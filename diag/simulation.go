package diag

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Simulation is what was measured while a tempered sampler ran; what is missing is not checked.
type Simulation struct {
	// Kinetic are kinetic temperatures of sites, from times far enough apart to be independent.
	Kinetic *Kinetic
	// Configurational are readings of [ConfigurationalTemperature].
	Configurational []SiteReadings
	// Thermostats are summaries of traces of ξ.
	Thermostats []SiteThermostat
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

// SiteThermostat is the summary of the thermostat of a site, empty for that of a whole chain.
type SiteThermostat struct {
	Site string
	Thermostat
}

// SimulationOptions are the thresholds of [DiagnoseSimulation]. The zero value is the recommended one.
type SimulationOptions struct {
	// P is the largest probability, under exact simulation, of what is reported, for each check of all sites together, above
	// 0 and below 1; 0 is 1e-4.
	P float64
	// Tolerance is the relative deviation of a temperature that does not matter: what is surely there but smaller is Info. 0
	// is 0.01. Ten times as much is Serious.
	Tolerance float64
}

// SimulationReport is the result of [DiagnoseSimulation].
type SimulationReport struct {
	Report
	// Kinetic is the test of all kinetic temperatures, nil if there are none, and Sites those of each site, in the order
	// that sites came.
	Kinetic *KineticResult
	Sites   []SiteKinetic
	// Configurational has one entry for each one of [Simulation].
	Configurational []SiteTemperature
}

// SiteKinetic is the test of the kinetic temperatures of one site.
type SiteKinetic struct {
	Site string
	KineticResult
}

// SiteTemperature is the mean temperature of one site.
type SiteTemperature struct {
	Site string
	Temperature
}

// DiagnoseSimulation says in words whether a tempered sampler, such as stochastic gradient MCMC, simulates its target:
//
//   - momenta of a site that are hotter or colder than the target, by χ² of the mean kinetic temperature
//   - kinetic temperatures too often outside their intervals, or scattered too little
//   - parameters hotter or colder than the target, by the mean configurational temperature and its standard error
//   - a thermostat whose variance is not that of the target, or that is below what exact gradients give
//   - gradient noise above the injected noise
//
// Something is reported if exact simulation would hardly show it (P, divided by the number of sites that a check looks at);
// it is Info where the temperature is off by less than Tolerance, and Serious above ten times that. A sampler with a step
// size always has some bias. That a check passes with few readings means little. [ErrRange] for options and targets,
// [ErrSize] and [ErrNotFinite] are the errors.
func DiagnoseSimulation(s Simulation, opt SimulationOptions) (*SimulationReport, error) {
	if !(opt.P >= 0 && opt.P < 1) {
		return nil, failf(ErrRange, "diagnose simulation: P is %v, want a probability above 0 and below 1, or 0 for 1e-4", opt.P)
	}
	if !(opt.Tolerance >= 0) || math.IsInf(opt.Tolerance, 1) {
		return nil, failf(ErrRange, "diagnose simulation: Tolerance is %v, want a number above 0, or 0 for 0.01", opt.Tolerance)
	}
	opt.P, opt.Tolerance = cmp.Or(opt.P, 1e-4), cmp.Or(opt.Tolerance, 0.01)
	r := &SimulationReport{}
	if s.Kinetic != nil && len(s.Kinetic.readings) > 0 {
		if err := r.kinetic(s.Kinetic, opt); err != nil {
			return nil, err
		}
	}
	for _, c := range s.Configurational {
		t, err := MeanTemperature(c.Readings, c.Target)
		if err != nil {
			return nil, fmt.Errorf("%w of site %q", err, c.Site)
		}
		r.Configurational = append(r.Configurational, SiteTemperature{c.Site, t})
	}
	r.configurational(opt)
	r.thermostats(s.Thermostats, opt)
	r.noise(s.Noise)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return r, nil
}

// severity of a temperature that is off by a share of the target.
func (opt SimulationOptions) severity(share float64) Severity {
	switch share = math.Abs(share); {
	case share <= opt.Tolerance:
		return Info
	case share <= 10*opt.Tolerance:
		return Warning
	}
	return Serious
}

// simulationFinding concerns all chains and no observation.
func simulationFinding(code Code, s Severity, site string, figure, threshold float64) Finding {
	return Finding{Code: code, Severity: s, Site: site, Chain: -1, Observation: -1, Figure: figure, Threshold: threshold}
}

func (r *SimulationReport) kinetic(k *Kinetic, opt SimulationOptions) error {
	all, err := kineticResult(k.readings, k.Level)
	if err != nil {
		return err
	}
	r.Kinetic = &all
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
	r.Checked = append(r.Checked, CodeHot, CodeCold, CodeCoverage, CodeSpread, CodeCorrelated)
	between := 0.0 // mean square of what the sites are off by, beyond chance
	for _, name := range sites {
		site, err := kineticResult(bySite[name], k.Level)
		if err != nil {
			return err
		}
		r.Sites = append(r.Sites, SiteKinetic{name, site})
		dims := 0.0
		for _, v := range bySite[name] {
			dims += float64(v.Dim)
		}
		between += max((site.Ratio-1)*(site.Ratio-1)-2/dims, 0) / float64(len(sites))
		if site.PRatio >= opt.P/float64(len(sites)) {
			continue
		}
		code, word := CodeHot, "hotter"
		if site.Ratio < 1 {
			code, word = CodeCold, "colder"
		}
		r.add(simulationFinding(code, opt.severity(site.Ratio-1), name, site.Ratio, 1),
			"%s: momenta are %s than the target, T_K/T is %.4g on average (p %.2g)", name, word, site.Ratio, site.PRatio)
	}
	excess := math.Sqrt(max(scatter, between))
	wide := 0.0 // Σ z² above its mean
	for _, v := range k.readings {
		wide += v.Score*v.Score - 1
	}
	few := all.PInside < opt.P && all.Fraction < all.Level
	if few || all.PScore < opt.P || all.PSpread < opt.P && wide > 0 {
		r.add(simulationFinding(CodeCoverage, opt.severity(excess), "", all.Fraction, all.Level),
			"%d of %d kinetic temperatures (%.1f%%) are inside intervals that hold %g%% of exact ones; they are off by %.2g%% beyond chance",
			all.Inside, all.Readings, 100*all.Fraction, 100*all.Level, 100*excess)
	}
	if all.PSpread < opt.P && wide < 0 {
		r.add(simulationFinding(CodeSpread, Warning, "", 1+wide/float64(all.Readings), 1),
			"kinetic temperatures scatter too little: the mean square of their scores is %.3g instead of 1 (p %.2g)",
			1+wide/float64(all.Readings), all.PSpread)
	}
	if all.LagZ > 4 && all.Lag > 0.1 {
		r.add(simulationFinding(CodeCorrelated, Warning, "", all.Lag, 0.1), "successive kinetic temperatures are correlated, by %.2f", all.Lag)
	}
	if all.Readings < 20 {
		r.add(simulationFinding(CodeFewReadings, Info, "", float64(all.Readings), 20), "there are %d kinetic temperatures", all.Readings)
	}
	return nil
}

func (r *SimulationReport) configurational(opt SimulationOptions) {
	if len(r.Configurational) > 0 {
		r.Checked = append(r.Checked, CodeConfigurational)
	}
	for _, t := range r.Configurational {
		p := studentP(t.Z, t.ESS-1)
		switch {
		case math.IsNaN(p):
			r.add(simulationFinding(CodeFewReadings, Info, t.Site, t.ESS, minDraws),
				"%s: the readings of the configurational temperature are too few, or do not change", t.Site)
		case p < opt.P/float64(len(r.Configurational)):
			word := "hotter"
			if t.Z < 0 {
				word = "colder"
			}
			r.add(simulationFinding(CodeConfigurational, opt.severity(t.Mean/t.Target-1), t.Site, t.Mean, t.Target),
				"%s: parameters are %s than the target, T_C is %.4g ± %.2g instead of %.4g", t.Site, word, t.Mean, t.MCSE, t.Target)
		}
	}
}

func (r *SimulationReport) thermostats(all []SiteThermostat, opt SimulationOptions) {
	if len(all) > 0 {
		r.Checked = append(r.Checked, CodeThermostat)
	}
	for _, t := range all {
		name := cmp.Or(t.Site, "thermostat")
		limit := math.Abs(distuv.UnitNormal.Quantile(opt.P / float64(2*len(all)) / 2))
		if z := (t.VarianceRatio - 1) / t.VarianceSE; math.Abs(z) > limit {
			r.add(simulationFinding(CodeThermostat, min(opt.severity(t.VarianceRatio-1), Warning), t.Site, t.VarianceRatio, 1),
				"%s: the variance of ξ is %.3g ± %.2g times that of the target", name, t.VarianceRatio, t.VarianceSE)
		}
		if t.Z < -limit {
			r.add(simulationFinding(CodeThermostat, Warning, t.Site, t.Mean, t.ExactMean),
				"%s: ξ is %.4g ± %.2g on average, below the %.4g of exact gradients", name, t.Mean, t.MCSE, t.ExactMean)
		}
	}
}

func (r *SimulationReport) noise(n *NoiseShare) {
	if n == nil {
		return
	}
	r.Checked = append(r.Checked, CodeGradientNoise)
	if n.Dominates || n.Largest > 1 {
		r.add(simulationFinding(CodeGradientNoise, Warning, "", max(n.Mean, n.Largest), 1), "%s", n.Message)
	}
}

// studentP is the two-sided probability of t under Student's law with so many degrees of freedom.
func studentP(t, degrees float64) float64 {
	if math.IsNaN(t) || !(degrees > 0) {
		return math.NaN()
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: degrees}.CDF(-math.Abs(t))
}

// Format writes the report for people to read, as [Report.Format] does, after a line on the kinetic temperatures. The error
// is that of w.
func (r *SimulationReport) Format(w io.Writer) error {
	if _, err := io.WriteString(w, r.String()); err != nil {
		return fmt.Errorf("diag: write report: %w", err)
	}
	return nil
}

// String is the text that [SimulationReport.Format] writes.
func (r *SimulationReport) String() string {
	head := "no kinetic temperatures"
	if r.Kinetic != nil {
		head = r.Kinetic.String()
	}
	return r.text(head)
}
