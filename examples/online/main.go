// Command online follows the strength of football teams through two seasons of simulated games with extended Kalman
// filters, one game after another: predict the result, see it, update, forget the game. Ratings walk at random between
// games, so that the bands of what is known widen when nobody plays. As the true ratings are known here, the bands can
// be checked.
//
//	go run ./examples/online             tables, and a picture in out/online.png
//	go run ./examples/online -json       one JSON object
//	go run ./examples/online -quick      fewer games
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.quick, "quick", false, "15 rounds in place of two seasons, and at most 4 leagues")
	flag.StringVar(&o.picture, "picture", filepath.Join("out", "online.png"), "file of the picture")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the first league")
	flag.IntVar(&o.leagues, "leagues", 12, "number of simulated leagues")
	command.Main("online", func(context.Context) error { return run(os.Stdout, o) })
}

type options struct {
	json, quick bool
	picture     string
	seed        uint64
	leagues     int
}

func run(w io.Writer, o options) error {
	if o.leagues < 1 {
		return fmt.Errorf("leagues is %d: it must be at least 1", o.leagues)
	}
	if o.quick {
		o.leagues = min(o.leagues, 4)
	}
	all := filters()
	seen, err := runLeagues(o, all)
	if err != nil {
		return err
	}
	s := summarise(all, seen)
	if err := os.MkdirAll(filepath.Dir(o.picture), 0o755); err != nil {
		return err
	}
	if err := plotRatings(o.picture, all, seen[0]); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(s)
	}
	s.print(w)
	_, err = fmt.Fprintf(w, "\nWritten to %s\n", o.picture)
	return err
}

// outcome is one league and the way of each filter through it.
type outcome struct {
	league league
	paths  []path // in the order of the filters
}

// runLeagues runs the leagues side by side, one on each processor.
func runLeagues(o options, all []filter) ([]outcome, error) {
	seen := make([]outcome, o.leagues)
	err := command.SideBySide(o.leagues, func(i int) (err error) {
		seen[i], err = runLeague(all, o.seed+uint64(i), o.quick)
		return err
	})
	return seen, err
}

func runLeague(all []filter, seed uint64, quick bool) (r outcome, err error) {
	if r.league, err = simulate(seed, quick); err != nil {
		return r, err
	}
	for _, f := range all {
		p, err := follow(f, r.league)
		if err != nil {
			return r, fmt.Errorf("%s: %w", f.title, err)
		}
		r.paths = append(r.paths, p)
	}
	return r, nil
}

// estimate is a mean over leagues and its standard error.
type estimate struct {
	Mean float64 `json:"mean"`
	SE   float64 `json:"se"` // 0 for one league
}

func over(seen []outcome, f func(r outcome) float64) estimate {
	values := make([]float64, len(seen))
	for i, r := range seen {
		values[i] = f(r)
	}
	if len(values) == 1 {
		return estimate{Mean: values[0]}
	}
	mean, sd := stat.MeanStdDev(values, nil)
	return estimate{Mean: mean, SE: sd / math.Sqrt(float64(len(values)))}
}

// summaryJSON is the JSON output. Log scores are mean log probabilities of the results.
type summaryJSON struct {
	Leagues  int          `json:"leagues"`
	Games    int          `json:"games"` // of a league
	Truth    estimate     `json:"log_score_truth"`
	Constant estimate     `json:"log_score_constant"`
	Filters  []filterJSON `json:"filters"`
}

type filterJSON struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Inside   estimate `json:"inside"`          // share of true ratings inside the bands of 95 %
	Relative estimate `json:"inside_relative"` // the same of ratings less the league's mean
	Log      estimate `json:"log_score"`
	Gain     estimate `json:"log_score_gain"` // over the constant model
	Loss     estimate `json:"log_score_loss"` // to the true probabilities
	Rate     float64  `json:"updates_per_second"`
}

func summarise(all []filter, seen []outcome) summaryJSON {
	bound := func(i int) func(r outcome) float64 {
		return func(r outcome) float64 {
			truth, constant := r.league.bounds()
			return []float64{truth, constant}[i]
		}
	}
	truth, constant := bound(0), bound(1)
	s := summaryJSON{Leagues: len(seen), Games: len(seen[0].league.games), Truth: over(seen, truth),
		Constant: over(seen, constant)}
	for i, f := range all {
		updates, seconds := 0, 0.0
		for _, r := range seen {
			updates += r.paths[i].updates
			seconds += r.paths[i].seconds
		}
		s.Filters = append(s.Filters, filterJSON{
			Name: f.name, Title: f.title,
			Inside:   over(seen, func(r outcome) float64 { return r.paths[i].inside }),
			Relative: over(seen, func(r outcome) float64 { return r.paths[i].relative }),
			Log:      over(seen, func(r outcome) float64 { return r.paths[i].log }),
			Gain:     over(seen, func(r outcome) float64 { return r.paths[i].log - constant(r) }),
			Loss:     over(seen, func(r outcome) float64 { return truth(r) - r.paths[i].log }),
			Rate:     float64(updates) / seconds,
		})
	}
	return s
}

// print prints the tables.
func (s summaryJSON) print(w io.Writer) {
	fmt.Fprintf(w, "%d leagues of %d games; means (standard errors) over leagues.\n\n", s.Leagues, s.Games)
	fmt.Fprintf(w, "%-20s %-18s %-18s %-18s %-18s %-18s %s\n", "", "log score", "over constant", "below truth",
		"in 95 % bands", "less league mean", "updates/s")
	cell := func(e estimate) string { return fmt.Sprintf("%.4f (%.4f)", e.Mean, e.SE) }
	for _, f := range s.Filters {
		fmt.Fprintf(w, "%-20s %-18s %-18s %-18s %-18s %-18s %.0f\n",
			f.Title, cell(f.Log), cell(f.Gain), cell(f.Loss), cell(f.Inside), cell(f.Relative), f.Rate)
	}
	fmt.Fprintf(w, "%-20s %s\n%-20s %s\n", "the constant model", cell(s.Constant), "the truth", cell(s.Truth))
}
