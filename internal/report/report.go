// Package report writes draws as one HTML page for people to look at: what ran, what [diag.Diagnose] warns of, the
// summary table, and for each parameter trace, ranks, density and autocorrelation; intervals of all, a pair plot and an
// energy plot; predictive checks and a comparison of models where they are given.
//
// The page is a single file that asks the network for nothing: style, script and numbers are inside, and the plots are
// drawn by the script as SVG. It follows the reader's light or dark setting and prints in light. Without scripts,
// facts, warnings and table are still there.
//
// # Size
//
// Numbers are thinned to what a plot can show, so that a page stays below [MaxSize] (5 MB) whatever the draws, as long
// as names are of ordinary length. At 4 chains of 1000 draws of 1000 elements it is about 4 MB. Elements are ordered
// worst first: by R-hat, then by effective sample size. The first Details of them have fine plots, drawn when the page
// opens. The others have coarser ones, drawn when they are chosen. Where that does not fit, the last ones have no
// plots, and then no row in the table; the page says so. Of more than 16 chains, each plot shows the 16 whose means are
// furthest from the others.
//
// The same draws and options give the same bytes.
package report

import (
	"bytes"
	"cmp"
	_ "embed" // the files of the page
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// MaxSize is the size of a page that is not exceeded, in bytes. See the package comment.
const MaxSize = 5_000_000

// Shares of MaxSize; what is left is for style, script and the rest of the page.
const (
	dataBudget  = 3_900_000 // numbers of plots
	tableBudget = 900_000   // rows of the table
)

// ErrOption is wrapped by the error of an option that is not allowed.
var ErrOption = errors.New("bad option")

// Options choose what is shown. The zero value is the recommended one.
type Options struct {
	// Title heads the page; empty is "Posterior draws".
	Title string
	// Sources name where the draws come from, such as files; they are only shown.
	Sources []string
	// Notes are remarks on the draws, such as what a reader of files has left out; they are only shown.
	Notes []string
	// Facts are further facts of the run, as name and value, such as the model and its seed.
	Facts [][2]string
	// MaxTreeDepth is the limit that the sampler ran with, for the warnings; 0 is 10.
	MaxTreeDepth int
	// Sites are the sites to show, in this order; empty is all.
	Sites []string
	// Details is the number of elements that are drawn when the page opens; 0 is 40.
	Details int
	// Pair names the elements of the pair plot, such as theta[0], at most 5. Empty is up to 4: those in which
	// draws that diverged differ most from the others, or the worst ones where none diverged.
	Pair []string
	// LOO is leave-one-out cross-validation of the log likelihoods that belong to the draws; nil is none.
	LOO *loo.Result
	// Comparison ranks models by LOO; nil is none.
	Comparison loo.Comparisons
	// Predictive are observed variables with their replicates. The first 8 variables are shown; nil shows none.
	Predictive []Predictive
	// Pictures are drawings of effects, as many as have room.
	Pictures []Picture
}

//go:embed page.html
var pageHTML string

//go:embed style.css
var style template.CSS

//go:embed plot.js
var plotJS template.JS

//go:embed page.js
var pageJS template.JS

// Report writes the page. [draws.ErrNoDraws], [draws.ErrUnknownName], [ErrOption] and the errors of w are the errors;
// draws that are not finite, that never moved or that lack statistics are shown as they are.
func Report(w io.Writer, d *draws.Draws, o Options) error {
	page, err := build(d, o)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	t, err := template.New("page.html").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("report: write: %w", err)
	}
	return nil
}

// page is what the template shows.
type page struct {
	Title    string
	Sources  []string
	Notes    []string
	Facts    []fact
	Chains   chainTable
	Findings []finding
	OK       bool
	Checked  string
	Table    table
	Plots    int // elements with plots
	Details  int // of them drawn at once
	Energy   bool
	LOO      *looView
	Models   []comparisonRow
	Forest   *forestData
	Checks   []checkView
	Pictures []pictureView
	Style    template.CSS
	Script   []template.JS
	Data     template.JS
}

// fill sets the defaults and checks.
func (o *Options) fill() error {
	if o.Details < 0 {
		return fmt.Errorf("%w: Details is %d, want at least 1, or 0 for 40", ErrOption, o.Details)
	}
	if len(o.Pair) > maxPair {
		return fmt.Errorf("%w: Pair has %d names, want at most %d", ErrOption, len(o.Pair), maxPair)
	}
	o.Details, o.Title = cmp.Or(o.Details, 40), cmp.Or(o.Title, "Posterior draws")
	return nil
}

func build(d *draws.Draws, o Options) (*page, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if len(o.Sites) > 0 {
		var err error
		if d, err = d.Select(o.Sites...); err != nil {
			return nil, err
		}
	}
	summary, err := diag.Summary(d, diag.SummaryOptions{})
	if err != nil {
		return nil, err
	}
	diagnosis, err := diag.Diagnose(d, diag.DiagnoseOptions{MaxTreeDepth: o.MaxTreeDepth})
	if err != nil {
		return nil, err
	}
	names := valid(d.Names())
	order := worstFirst(summary.Rows)
	notes := valid(o.Notes)
	if n := len(names) - len(order); n > 0 {
		notes = append(notes, fmt.Sprintf("Constants of matrices, zeros and ones, have no row: %d.", n))
	}
	data, plotted, err := makeData(d, names, summary, order, o)
	if err != nil {
		return nil, err
	}
	var checks []checkView
	if data.Checks, checks, err = predictiveOf(o.Predictive); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	if o.LOO != nil {
		diagnosis.Join(o.LOO.Diagnose())
	}
	p := &page{
		Title: shown(o.Title), Sources: valid(o.Sources), Notes: notes,
		Facts: facts(d, o.Facts), Chains: chainsOf(d),
		Findings: findings(diagnosis), OK: diagnosis.OK(), Checked: checked(diagnosis),
		Table: tableOf(summary, names, order, plotted),
		Plots: len(data.Elements), Details: min(o.Details, len(data.Elements)), Energy: data.Energy != nil,
		LOO: looOf(o.LOO), Models: comparisonOf(o.Comparison), Forest: data.Forest, Checks: checks,
		Pictures: picturesOf(o.Pictures),
		Style:    style,
		Script:   []template.JS{plotJS, pageJS},
		Data:     template.JS(encoded),
	}
	return p, nil
}

// shown is a text as valid UTF-8, as HTML and JSON must be, without characters that nobody sees.
func shown(s string) string { return visible.Text(strings.ToValidUTF8(s, "\uFFFD")) }

// valid is a copy of shown strings.
func valid(x []string) []string {
	out := make([]string, len(x))
	for i, s := range x {
		out[i] = shown(s)
	}
	return out
}
