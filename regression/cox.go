package regression

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/models/survival"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Cox is proportional hazards without a law of times: the hazard of a row is exp(η) times one that all rows share and
// that stays open, by the partial likelihood of [survival.Cox]. The outcome is a time, cens(c) says where it is the end
// of observation, and trunc(lb = entry) when observation began. There is no intercept, which the shared hazard has.
// Link: log.
//
// Expected is the hazard ratio exp(η), to a row whose columns have their means. A partial likelihood has no density of
// single rows, so that there is no Predict, Check, LOO, KFold and R2.
type Cox struct{}

func (Cox) spec() *spec {
	return &spec{name: "cox", links: []string{"log"}, partial: true,
		allowed: outcome{func(y, _ float64) bool { return y >= 0 }, "it must be a time from 0"}}
}

// learnCox takes times, events and entries of a partial likelihood.
func (m *Model) learnCox(fail func(format string, args ...any) error) error {
	added := m.rows.Added
	for key := range added {
		if key != "cens" && key != "lower" {
			return fail("of the family cox cens(c) and trunc(lb = entry) stand right of the bar")
		}
	}
	c := survival.Cox{Time: m.rows.Y, Event: make([]bool, m.rows.N), Entry: added["lower"]}
	events := 0
	for i := range c.Event {
		if added["cens"] != nil && added["cens"][i] != 0 && added["cens"][i] != 1 {
			return m.wrongRow(i, c.Time[i], "it is censored from the left or in an interval, and the family cox has times "+
				"that are right censored or not: weibull or lognormal take others")
		}
		if c.Entry != nil && !(c.Entry[i] < c.Time[i]) {
			return m.wrongRow(i, c.Time[i], fmt.Sprintf("its entry %g is not below it", c.Entry[i]))
		}
		if c.Event[i] = added["cens"] == nil || added["cens"][i] == 0; c.Event[i] {
			events++
		}
	}
	if events == 0 {
		return fail("all rows are censored: the family cox needs an event")
	}
	m.bounds, m.cox = false, c
	return nil
}

// ratios declares the partial likelihood of a model's rows.
func (m *Model) ratios(c *ppl.Ctx, eta torch.Tensor) {
	if len(eta.Shape()) == 0 {
		panic(&ppl.SiteError{Site: m.outcome, Message: "the family cox has no intercept: its formula needs a term"})
	}
	c.Factor(m.outcome, m.cox.LogPartial(eta))
}

// single refuses what needs the density of single rows, or draws of them.
func (m *Model) single(name string) error {
	if !m.family.partial {
		return nil
	}
	return fmt.Errorf("regression.%s: the partial likelihood of the family cox compares each event with all rows at risk "+
		"then: it has no density of a single row, and no times to draw; families with a law of times, as weibull and "+
		"lognormal, have them", name)
}

// Check compares the outcome with draws of it, as [ppl.Program.Check].
func (m *Model) Check(posterior *draws.Draws, seed uint64) (*diag.Report, error) {
	if err := m.single("Check"); err != nil {
		return nil, err
	}
	return m.Program.Check(posterior, seed)
}
