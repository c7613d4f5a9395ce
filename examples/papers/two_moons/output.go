package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
)

// summary is the JSON output.
type summary struct {
	Settings tuned     `json:"settings"`
	Tau      float64   `json:"tau"`
	First    uint64    `json:"first_seed"`
	Seeds    int       `json:"seeds"`
	Methods  []line    `json:"methods"`
	Claims   []judged  `json:"claims"`
	Notes    []string  `json:"notes"`
	Seconds  []float64 `json:"seconds"` // of each seed
}

// line is a method's line of the table.
type line struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	Accuracy seeds.Estimate  `json:"accuracy"`
	NLL      seeds.Estimate  `json:"nll"`
	Brier    seeds.Estimate  `json:"brier"`
	ECE      seeds.Estimate  `json:"ece"`
	MCE      seeds.Estimate  `json:"mce"`
	AUROC    *seeds.Estimate `json:"auroc"`
	SD       seeds.Estimate  `json:"sd"`
	SDFar    seeds.Estimate  `json:"sd_far"`
	Draws    int             `json:"draws"`
	Seconds  seeds.Estimate  `json:"seconds"`
}

// judged is a claim over seeds. It holds where its margin is above 0 by more than two standard errors.
type judged struct {
	Claim  string         `json:"claim"`
	Figure string         `json:"figure"` // of the first seed
	Margin seeds.Estimate `json:"margin"`
	Held   int            `json:"held"` // seeds on which the margin is above 0
	Holds  bool           `json:"holds"`
}

// rowJSON are the scores of one method on the test data.
type rowJSON struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Accuracy float64  `json:"accuracy"`
	NLL      float64  `json:"nll"`
	Brier    float64  `json:"brier"` // mean (p − y)²
	ECE      float64  `json:"ece"`
	MCE      float64  `json:"mce"`
	AUROC    *float64 `json:"auroc"`  // of the epistemic entropy, for points far from the data; null with one draw
	SD       float64  `json:"sd"`     // mean standard deviation of the probability over the draws, at the test data
	SDFar    float64  `json:"sd_far"` // and far from the data
	Draws    int      `json:"draws"`
	Seconds  float64  `json:"seconds"`
}

// claim is something that is said of these methods, with what one seed found. The margin is the difference that the
// claim is about, in its units: above 0 where the claim holds. Of several differences it is the least.
type claim struct {
	Claim  string  `json:"claim"`
	Figure string  `json:"figure"`
	Margin float64 `json:"margin"`
}

// summarise takes means and standard errors over seeds.
func summarise(all []*seedResult) *summary {
	s := &summary{Seeds: len(all)}
	over := func(of func(*seedResult) float64) seeds.Estimate {
		var x []float64
		for _, r := range all {
			x = append(x, of(r))
		}
		return seeds.Over(x)
	}
	for i, r := range all[0].Methods {
		row := func(of func(rowJSON) float64) seeds.Estimate {
			return over(func(r *seedResult) float64 { return of(r.Methods[i]) })
		}
		l := line{Name: r.Name, Title: r.Title, Draws: r.Draws,
			Accuracy: row(func(r rowJSON) float64 { return r.Accuracy }),
			NLL:      row(func(r rowJSON) float64 { return r.NLL }),
			Brier:    row(func(r rowJSON) float64 { return r.Brier }),
			ECE:      row(func(r rowJSON) float64 { return r.ECE }),
			MCE:      row(func(r rowJSON) float64 { return r.MCE }),
			SD:       row(func(r rowJSON) float64 { return r.SD }),
			SDFar:    row(func(r rowJSON) float64 { return r.SDFar }),
			Seconds:  row(func(r rowJSON) float64 { return r.Seconds })}
		if r.AUROC != nil {
			e := row(func(r rowJSON) float64 { return *r.AUROC })
			l.AUROC = &e
		}
		s.Methods = append(s.Methods, l)
	}
	for i, c := range all[0].Claims {
		j := judged{Claim: c.Claim, Figure: c.Figure, Margin: over(func(r *seedResult) float64 { return r.Claims[i].Margin })}
		for _, r := range all {
			if r.Claims[i].Margin > 0 {
				j.Held++
			}
		}
		j.Holds = j.Margin.Mean > 0 && j.Margin.Mean > 2*j.Margin.SE
		s.Claims = append(s.Claims, j)
	}
	for _, r := range all {
		for _, n := range r.Notes {
			s.Notes = append(s.Notes, fmt.Sprintf("Seed %d: %s", r.Seed, n))
		}
		s.Seconds = append(s.Seconds, r.Seconds)
	}
	s.First = all[0].Seed
	return s
}

func (s *summary) print(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "Means ± standard errors over %d seeds, from %d on.\n\n", s.Seeds, s.First)
	fmt.Fprintf(b, "%-24s %-15s %-15s %-17s %-15s %-15s %6s %7s %5s %5s\n", "", "accuracy", "NLL", "Brier", "ECE", "AUROC",
		"sd", "sd far", "draws", "s")
	three := func(e seeds.Estimate) string { return fmt.Sprintf("%.3f ± %.3f", e.Mean, e.SE) }
	for _, r := range s.Methods {
		auroc := "-"
		if r.AUROC != nil {
			auroc = three(*r.AUROC)
		}
		fmt.Fprintf(b, "%-24s %-15s %-15s %.4f ± %-8.4f %-15s %-15s %6.3f %7.3f %5d %5.0f\n", r.Title, three(r.Accuracy),
			three(r.NLL), r.Brier.Mean, r.Brier.SE, three(r.ECE), auroc, r.SD.Mean, r.SDFar.Mean, r.Draws, r.Seconds.Mean)
	}
	fmt.Fprintln(b, "\nAUROC: how well epistemic entropy tells points far from the data from test data. sd: mean "+
		"standard deviation of the probability")
	fmt.Fprintln(b,
		"over the draws, at test data and far from all data. Seconds include the MAP's where a method starts there.")
	for _, n := range s.Notes {
		fmt.Fprintln(b, n+".")
	}
	fmt.Fprintf(b, "\nWhat is said of these methods. A claim holds where its margin is above 0 by more than two standard "+
		"errors; figures are those of seed %d:\n", s.First)
	for _, c := range s.Claims {
		answer := "no "
		if c.Holds {
			answer = "yes"
		}
		fmt.Fprintf(b, "[%s] %s\n      margin %.3g ± %.2g, above 0 on %d of %d seeds; %s\n", answer, c.Claim, c.Margin.Mean,
			c.Margin.SE, c.Held, s.Seeds, c.Figure)
	}
	return b.Flush()
}
