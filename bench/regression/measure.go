package main

import (
	"cmp"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/regression"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// side is what the runs of one side were. The tags are a format that other programs read.
type side struct {
	Compile     float64 `json:"compile_s"`
	Seconds     float64 `json:"seconds"` // of all runs, warm-up included
	ESS         float64 `json:"min_ess"` // the sum over the runs of the least bulk ESS of a reported number
	Least       string  `json:"least"`   // the number that has it in the last run
	Gradients   float64 `json:"gradients"`
	Divergences float64 `json:"divergences"`
	Tier        string  `json:"tier,omitempty"` // of Kelvin's gradients

	of []map[string]moments // of each run
}

// rate is effective draws a second, cost gradients for an effective draw.
func (s *side) rate() float64 { return s.ESS / s.Seconds }
func (s *side) cost() float64 { return s.Gradients / s.ESS }

// moments are the mean and the standard deviation of a number, with their Monte-Carlo errors.
type moments struct{ mean, sd, meanError, sdError float64 }

// add adds a run's draws of the reported numbers.
func (s *side) add(numbers map[string][][]float64, seconds, gradients, divergences float64) {
	s.Seconds, s.Gradients, s.Divergences = s.Seconds+seconds, s.Gradients+gradients, s.Divergences+divergences
	least, of := math.Inf(1), map[string]moments{}
	for name, x := range numbers {
		ess := diag.ESSBulk(x)
		if !(ess >= least) { // NaN is the least
			least, s.Least = ess, name
		}
		of[name] = momentsOf(x)
	}
	s.ESS += least
	s.of = append(s.of, of)
}

func momentsOf(x [][]float64) moments {
	mean, sd := stat.MeanStdDev(slices.Concat(x...), nil)
	return moments{mean, sd, diag.MCSEMean(x), diag.MCSESD(x)}
}

// together are the moments over all runs, which are independent.
func (s *side) together() map[string]moments {
	out, n := map[string]moments{}, float64(len(s.of))
	for _, run := range s.of {
		for name, m := range run {
			o := out[name]
			out[name] = moments{o.mean + m.mean/n, o.sd + m.sd/n, math.Hypot(o.meanError, m.meanError/n),
				math.Hypot(o.sdError, m.sdError/n)}
		}
	}
	return out
}

// apart is the largest |z| of a mean or a standard deviation of the two sides, and whose it is.
func apart(a, b *side) (z float64, name string) {
	other := b.together()
	take := func(x, y, errorX, errorY float64, of string) {
		v := math.Abs(x-y) / math.Hypot(errorX, errorY)
		if v != v {
			v = math.MaxFloat64
		}
		if v > z {
			z, name = v, of
		}
	}
	for key, x := range a.together() {
		y, ok := other[key]
		if !ok {
			return math.MaxFloat64, key + ", which Stan does not have"
		}
		take(x.mean, y.mean, x.meanError, y.meanError, "mean of "+key)
		take(x.sd, y.sd, x.sdError, y.sdError, "sd of "+key)
	}
	return z, name
}

// kelvin is Kelvin's side of a case.
type kelvin struct {
	side
	c     regressionCase
	model *regression.Model
	table *data.Table
}

// newKelvin fits the formula and compiles its gradient, so that it is in the cache.
func newKelvin(c regressionCase) (*kelvin, error) {
	began := time.Now()
	k := &kelvin{c: c}
	var err error
	if k.table, err = c.table(); err != nil {
		return nil, err
	}
	if k.model, err = c.formula.Fit(k.table); err != nil {
		return nil, err
	}
	start, err := k.model.Start(k.model.Batch(), 1, 1)
	if err != nil {
		return nil, err
	}
	_, report, err := infer.Compile(k.model.Target(), start, k.model.Batch(), native.Options{})
	k.Compile, k.Tier = time.Since(began).Seconds(), report.String()
	return k, err
}

// sample is one run.
func (k *kelvin) sample(ctx context.Context, o infer.Options) error {
	o.Observer = infer.Silent
	began := time.Now()
	r, err := infer.Run(ctx, k.model, hmc.NUTS{TargetAccept: k.c.accept}, o)
	if err != nil {
		return err
	}
	seconds, divergences := time.Since(began).Seconds(), 0.0
	for c := range r.Draws.Chains() {
		values, err := r.Draws.Stat(draws.StatDivergent, c)
		if err != nil {
			return err
		}
		divergences += floats.Sum(values)
	}
	numbers, err := k.reported(r.Draws)
	k.add(numbers, seconds, float64(r.Gradients), divergences)
	return err
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// reported are the draws of the numbers that a summary has, by their names in Stan.
func (k *kelvin) reported(d *draws.Draws) (map[string][][]float64, error) {
	out := map[string][][]float64{}
	for _, name := range k.model.Reported(d) {
		s, err := d.Site(name)
		if err != nil {
			return nil, err
		}
		s.Name = strings.TrimRight(unnamed.ReplaceAllString(s.Name, "_"), "_")
		for i := range s.Size {
			x := make([][]float64, d.Chains())
			for c := range x {
				x[c] = d.Element(c, s.Offset+i)
			}
			out[posteriors.StanName(s, i)] = x
		}
	}
	return out, nil
}

// stan is Stan's side of a case.
type stan struct {
	side
	process *peer.Process
}

// newStan compiles the program of a case.
func newStan(ctx context.Context, e *peer.Environments, k *kelvin) (*stan, error) {
	text, _, err := k.c.program()
	if err != nil {
		return nil, err
	}
	of, err := k.c.stanData(k.table, k.model)
	if err != nil {
		return nil, err
	}
	s := &stan{}
	if s.process, err = e.Start(ctx, peer.Groups[0]); err != nil {
		return nil, err
	}
	a, err := s.process.Ask("compile", peer.Request{"code": text, "data": of}, 15*time.Minute)
	if err != nil {
		s.process.Close()
	}
	s.Compile = a.Seconds
	return s, err
}

// sample is one run. Only the numbers that Kelvin reports count.
func (s *stan) sample(k *kelvin, file string, o infer.Options) error {
	a, err := s.process.Ask("sample", peer.Request{"sampler": "stan", "chains": o.Chains, "warmup": o.Warmup,
		"draws": o.Draws, "seed": o.Seed, "accept": cmp.Or(k.c.accept, 0.8), "file": file}, 15*time.Minute)
	if err != nil {
		return err
	}
	all, err := peer.ReadDraws(file, a)
	maps.DeleteFunc(all, func(name string, _ [][]float64) bool { _, ok := k.of[0][name]; return !ok })
	s.add(all, a.Seconds, a.WarmupGradients+a.Gradients, a.Divergences)
	return err
}
