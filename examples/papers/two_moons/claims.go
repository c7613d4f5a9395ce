package main

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/score"
)

// claims checks what is said of the methods, on one seed.
func (t *task) claims(outcomes []outcome) ([]claim, error) {
	byName := map[string]outcome{}
	for _, o := range outcomes {
		byName[o.method.name] = o
	}
	var out []claim
	checks := []func(map[string]outcome) ([]claim, error){t.growsFar, t.laplaceMean, t.mixing, t.reach, t.order,
		t.landscape, t.scaling, t.wideLimit, t.decomposition}
	for _, check := range checks {
		c, err := check(byName)
		if err != nil {
			return nil, err
		}
		out = append(out, c...)
	}
	return out, nil
}

// growsFar: the draws differ more far from the data than at test data.
func (t *task) growsFar(all map[string]outcome) ([]claim, error) {
	var not []string
	count, margin := 0, math.Inf(1)
	least, most := math.Inf(1), 0.0
	for _, m := range methods {
		r := all[m.name].row
		if r.Draws < 2 {
			continue
		}
		count++
		margin = min(margin, r.SDFar-r.SD)
		least, most = min(least, r.SDFar/r.SD), max(most, r.SDFar/r.SD)
		if r.SDFar <= r.SD {
			not = append(not, r.Title)
		}
	}
	figure := fmt.Sprintf("sd far from the data over sd at test data: %.2f to %.2f; larger for %d of %d methods", least,
		most, count-len(not), count)
	if len(not) > 0 {
		figure += ", not for " + strings.Join(not, ", ")
	}
	e := all[nameEnsemble].row
	return []claim{
		{"The members of a deep ensemble disagree more far from the data",
			fmt.Sprintf("sd %.3f at test data, %.3f far away", e.SD, e.SDFar), e.SDFar - e.SD},
		{"So do the draws of every method", figure, margin},
	}, nil
}

const near = 0.05 // difference of probabilities that "about" allows

// laplaceMean: the mean prediction of a Laplace approximation is about that of the MAP.
func (t *task) laplaceMean(all map[string]outcome) ([]claim, error) {
	mode := all[nameMAP]
	var out []claim
	for _, name := range []string{nameLaplace, nameEvidence, "laplace_draws"} {
		o := all[name]
		difference, decisions := 0.0, 0
		for i, p := range o.test.p {
			difference += math.Abs(p-mode.test.p[i]) / float64(len(o.test.p))
			if (p > 0.5) != (mode.test.p[i] > 0.5) {
				decisions++
			}
		}
		out = append(out, claim{
			fmt.Sprintf("The mean prediction of %s, is about that of the MAP (within %g)", o.row.Title, near),
			fmt.Sprintf("mean |difference| of the probabilities of test data %.3f; %d of %d decisions differ",
				difference, decisions, len(o.test.p)),
			near - difference,
		})
	}
	return out, nil
}

// mixing: SGHMC forgets faster than SGLD. The logits of the test points are the series.
func (t *task) mixing(all map[string]outcome) ([]claim, error) {
	const lag = 5
	forget := func(name string) (correlation, ess float64) {
		logits := all[name].test.logits
		n := 0.0
		for i := 0; i < len(logits[0]); i += 10 {
			series := make([]float64, len(logits))
			for s := range logits {
				series[s] = logits[s][i]
			}
			if c := diag.Autocorrelation(series); c[lag] == c[lag] {
				correlation, ess, n = correlation+c[lag], ess+diag.ESSMean([][]float64{series}), n+1
			}
		}
		return correlation / n, ess / n
	}
	var out []claim
	for _, c := range []struct {
		sgld, sghmc string
		chain       chain
	}{{nameSGLD, nameSGHMC, t.short}, {nameSGLDLong, nameSGHMCLong, t.long}} {
		rhoL, essL := forget(c.sgld)
		rhoH, essH := forget(c.sghmc)
		out = append(out, claim{
			fmt.Sprintf("The autocorrelation of %s, falls faster than that of %s (%d updates)",
				all[c.sghmc].row.Title, all[c.sgld].row.Title, c.chain.steps()),
			fmt.Sprintf(
				"logits of test data, correlation over %d updates: SGLD %.2f, SGHMC %.2f; effective draws of %d: %.1f and %.1f",
				lag*c.chain.thin, rhoL, rhoH, c.chain.draws, essL, essH),
			rhoL - rhoH})
	}
	return out, nil
}

const fits = 0.9 // accuracy of a chain that is where the data are fitted

// reach: data say little of most directions, so that in them the posterior is as wide as the prior.
func (t *task) reach(all map[string]outcome) ([]claim, error) {
	flat, err := t.mode.Values()
	if err != nil {
		return nil, err
	}
	words := []string{fmt.Sprintf("MAP %.2f", rms(flat))}
	widest := 0.0
	tau := 1 / math.Sqrt(t.model.precision)
	for _, m := range methods {
		if d, ok := t.traces[m.name]; ok {
			last := rms(d.Row(0, d.Len(0)-1))
			words = append(words, fmt.Sprintf("%s %.3g", m.title, last))
			if all[m.name].row.Accuracy > fits {
				widest = max(widest, last)
			}
		}
	}
	return []claim{{
		fmt.Sprintf("A sampler that fits the data gets as wide as the prior N(0, %g²) (weights of at least half its sd)",
			tau),
		"root mean square of the weights at the end: " + strings.Join(words, ", "),
		widest - tau/2,
	}}, nil
}

func rms(x []float64) float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	return math.Sqrt(square / float64(len(x)))
}

// order: deep ensemble and SGHMC before Laplace before dropout, in each score; and what differs from the ensemble by
// more than chance.
func (t *task) order(all map[string]outcome) ([]claim, error) {
	var out []claim
	names := []string{nameEnsemble, nameSGLD, nameSGLDLong, nameSGHMC, nameSGHMCLong, nameParallel, nameLaplace,
		nameEvidence, nameDropout}
	for _, score := range []struct {
		name string
		of   func(rowJSON) float64
	}{
		{"NLL", func(r rowJSON) float64 { return r.NLL }},
		{"ECE", func(r rowJSON) float64 { return r.ECE }},
		{"Brier", func(r rowJSON) float64 { return r.Brier }},
	} {
		sorted := append([]string(nil), names...)
		sort.SliceStable(sorted, func(i, j int) bool { return score.of(all[sorted[i]].row) < score.of(all[sorted[j]].row) })
		var words []string
		for _, n := range sorted {
			words = append(words, fmt.Sprintf("%s %.4f", all[n].row.Title, score.of(all[n].row)))
		}
		at := func(name string) float64 { return score.of(all[name].row) }
		out = append(out, claim{score.name + ": deep ensemble and SGHMC (short) before Laplace (full) before MC dropout",
			strings.Join(words, " < "),
			min(at(nameLaplace)-max(at(nameEnsemble), at(nameSGHMC)), at(nameDropout)-at(nameLaplace))})
	}
	var words []string
	margin := math.Inf(1)
	for _, m := range methods {
		if m.name == nameEnsemble {
			continue
		}
		d, se := t.pairedNLL(all[m.name].test, all[nameEnsemble].test)
		words = append(words, fmt.Sprintf("%s %+.3f ± %.3f", all[m.name].row.Title, d, se))
		margin = min(margin, d)
	}
	return append(out, claim{"The deep ensemble has the least NLL of all",
		"NLL above the ensemble's, with errors over test points: " + strings.Join(words, "; "), margin}), nil
}

// pairedNLL is the difference of the negative log likelihoods of two predictions of the test data,
// with its standard error.
func (t *task) pairedNLL(a, b prediction) (difference, se float64) {
	d := make([]float64, len(a.z))
	for i, label := range t.test.label {
		d[i] = score.BinaryLogProbabilities(b.z[i])[label] - score.BinaryLogProbabilities(a.z[i])[label]
	}
	return meanError(d)
}
