package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// The marks. With some 70 parameters a largest |z| of 3 is usual; the errors of the effective sample sizes included,
// more than 4 is not. R-hat and effective sample size: Vehtari et al. 2021, Bayesian Analysis 16, 667–718.
const (
	maxZ        = 4
	maxRHat     = 1.01
	minESS      = 100 // for each chain
	divergences = 0   // none of the reference runs had any
)

// parameter is what one parameter's draws say beside the reference's.
type parameter struct {
	name      string
	mean, sd  figure
	rhat, ess float64
}

// figure is a figure of ours and of the reference with their Monte-Carlo standard errors.
type figure struct{ ours, error, reference, referenceError float64 }

// z is the difference in units of the combined standard error.
func (f figure) z() float64 { return (f.ours - f.reference) / math.Hypot(f.error, f.referenceError) }

func (f figure) String() string {
	return fmt.Sprintf("%.5g ± %.2g, the reference's %.5g ± %.2g: z = %.2f", f.ours, f.error, f.reference,
		f.referenceError, f.z())
}

// compare takes every parameter of the reference, in the order of names.
func compare(d *draws.Draws, r posteriors.Reference) ([]parameter, error) {
	elements := map[string]int{}
	for _, s := range d.Sites() {
		for i := range s.Size {
			elements[posteriors.StanName(s, i)] = s.Offset + i
		}
	}
	var out []parameter
	for name, theirs := range r {
		at, ok := elements[name]
		if !ok {
			return nil, fmt.Errorf("the reference has draws of %s, and the model has no such value", name)
		}
		ours := make([][]float64, d.Chains())
		for c := range ours {
			ours[c] = d.Element(c, at)
		}
		a, b := summarise(ours), summarise(theirs)
		out = append(out, parameter{
			name: name,
			mean: figure{a.mean, a.meanError, b.mean, b.meanError},
			sd:   figure{a.sd, a.sdError, b.sd, b.sdError},
			rhat: diag.RHat(ours), ess: diag.ESSBulk(ours),
		})
	}
	slices.SortFunc(out, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

type summary struct{ mean, meanError, sd, sdError float64 }

func summarise(x [][]float64) summary {
	mean, sd := posteriors.MeanSD(x)
	return summary{mean, diag.MCSEMean(x), sd, diag.MCSESD(x)}
}

// row is the outcome of one posterior. The tags are a format that other programs read.
type row struct {
	Name        string  `json:"name"`
	Seed        uint64  `json:"seed"`
	MaxZMean    float64 `json:"max_z_mean"`
	MaxZSD      float64 `json:"max_z_sd"`
	MaxRHat     float64 `json:"max_rhat"`
	MinESSBulk  float64 `json:"min_ess_bulk"`
	Divergences int     `json:"divergences"`
	Gradients   int     `json:"gradients"`
	Seconds     float64 `json:"seconds"`

	parameters []parameter
	misses     []string
}

// judge fills in the largest figures and what misses its mark. A figure that is not a number misses it.
func (r *row) judge(chains int) {
	r.MinESSBulk = math.Inf(1)
	miss := func(format string, args ...any) { r.misses = append(r.misses, fmt.Sprintf(format, args...)) }
	for _, p := range r.parameters {
		r.MaxZMean, r.MaxZSD = math.Max(r.MaxZMean, math.Abs(p.mean.z())), math.Max(r.MaxZSD, math.Abs(p.sd.z()))
		r.MaxRHat, r.MinESSBulk = math.Max(r.MaxRHat, p.rhat), math.Min(r.MinESSBulk, p.ess)
		if !(math.Abs(p.mean.z()) <= maxZ) {
			miss("mean of %s %v", p.name, p.mean)
		}
		if !(math.Abs(p.sd.z()) <= maxZ) {
			miss("standard deviation of %s %v", p.name, p.sd)
		}
		if !(p.rhat < maxRHat) {
			miss("R-hat of %s %.4f: it must be less than %v", p.name, p.rhat, maxRHat)
		}
		if least := float64(minESS * chains); !(p.ess >= least) {
			miss("bulk effective sample size of %s %.0f: it must be at least %.0f", p.name, p.ess, least)
		}
	}
	if r.Divergences > divergences {
		miss("%d divergences, where the reference has none", r.Divergences)
	}
}

// seeds is what the runs of one posterior say together: the worst figures, and the largest z of means and of standard
// deviations averaged over the runs.
type seeds struct {
	runs, missed           int
	worst                  row
	averageMean, averageSD float64
}

// overSeeds joins the rows of each posterior, which follow each other.
func overSeeds(rows []row) []seeds {
	var out []seeds
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Name == rows[0].Name {
			n++
		}
		s := seeds{runs: n, worst: row{Name: rows[0].Name, MinESSBulk: math.Inf(1)}}
		for _, r := range rows[:n] {
			if len(r.misses) > 0 {
				s.missed++
			}
			w := &s.worst
			w.MaxZMean, w.MaxZSD = math.Max(w.MaxZMean, r.MaxZMean), math.Max(w.MaxZSD, r.MaxZSD)
			w.MaxRHat, w.MinESSBulk = math.Max(w.MaxRHat, r.MaxRHat), math.Min(w.MinESSBulk, r.MinESSBulk)
			w.Divergences += r.Divergences
		}
		for i := range rows[0].parameters {
			s.averageMean = math.Max(s.averageMean, math.Abs(average(rows[:n], i, func(p parameter) figure { return p.mean })))
			s.averageSD = math.Max(s.averageSD, math.Abs(average(rows[:n], i, func(p parameter) figure { return p.sd })))
		}
		out, rows = append(out, s), rows[n:]
	}
	return out
}

// average is z of a figure of the i-th parameter, averaged over independent runs with the same reference.
func average(rows []row, i int, of func(parameter) figure) float64 {
	f := of(rows[0].parameters[i])
	f.ours, f.error = 0, 0
	for _, r := range rows {
		g := of(r.parameters[i])
		f.ours, f.error = f.ours+g.ours/float64(len(rows)), math.Hypot(f.error, g.error/float64(len(rows)))
	}
	return f.z()
}
