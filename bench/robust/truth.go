package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// moments is the mean and standard deviation of a number, with their standard errors: 0 where they are exact.
type moments struct{ mean, sd, meanError, sdError float64 }

// momentsOf is the moments of draws, chain by chain.
func momentsOf(x [][]float64) moments {
	mean, sd := posteriors.MeanSD(x)
	return moments{mean, sd, diag.MCSEMean(x), diag.MCSESD(x)}
}

// with is the moments of two independent runs together.
func (m moments) with(o moments) moments {
	return moments{(m.mean + o.mean) / 2, (m.sd + o.sd) / 2, math.Hypot(m.meanError, o.meanError) / 2,
		math.Hypot(m.sdError, o.sdError) / 2}
}

// truth is the moments of judged numbers by their names in Stan.
type truth map[string]moments

// stored is the truth of targets without a closed form, from long runs that `robust -truth` made.
//
//go:embed truth.json
var stored []byte

// longRuns is what the file has of a target: mean, standard deviation and their standard errors.
type longRuns struct {
	Source  string                `json:"source"`
	Moments map[string][4]float64 `json:"moments"`
}

// known is the truth of a target: in closed form, or that of the file.
func (p problem) known(name string) (truth, error) {
	if p.exact != nil {
		return p.exact, nil
	}
	file := map[string]longRuns{}
	if err := json.Unmarshal(stored, &file); err != nil {
		return nil, fmt.Errorf("truth.json: %w", err)
	}
	out := truth{}
	for name, v := range file[name].Moments {
		out[name] = moments{v[0], v[1], v[2], v[3]}
	}
	return out, nil
}

// keepMost is how many elements of a site the file has: of a longer one, some that are evenly spread.
const keepMost = 40

// store makes a long run of each of two methods, with seeds that the comparison does not have, and writes to the file
// what both say, where their chains agree and they agree with each other.
func (s settings) store(ctx context.Context, out io.Writer) error {
	if len(s.methods) != 2 {
		return errors.New("-truth: -methods must name the two methods of the long runs, which must agree")
	}
	file := map[string]longRuns{}
	text, err := os.ReadFile(s.truth)
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", s.truth, err)
	}
	for _, t := range s.targets {
		p, program, err := t.compile()
		if err != nil {
			return err
		}
		if p.exact != nil || p.bimodal {
			continue
		}
		known, err := s.longRuns(ctx, p, program)
		if err != nil {
			fmt.Fprintf(out, "%s: no truth: %v\n", t.name, err)
			if ctx.Err() != nil {
				return err
			}
			continue
		}
		file[t.name] = known
		if err := atomicfile.Write(s.truth, encode(file), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d numbers\n", t.name, len(known.Moments))
	}
	return nil
}

// encode is the file as JSON, a line for each number.
func encode(file map[string]longRuns) []byte {
	var b strings.Builder
	list := func(names []string, each func(name string)) {
		for i, name := range names {
			each(name)
			if i < len(names)-1 {
				b.WriteString(",")
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("{\n")
	list(slices.Sorted(maps.Keys(file)), func(name string) {
		known := file[name]
		fmt.Fprintf(&b, " %q: {\"source\": %q, \"moments\": {\n", name, known.Source)
		list(slices.SortedFunc(maps.Keys(known.Moments), shortFirst), func(name string) {
			v := known.Moments[name]
			fmt.Fprintf(&b, "  %q: [%.8g, %.8g, %.3g, %.3g]", name, v[0], v[1], v[2], v[3])
		})
		b.WriteString(" }}")
	})
	b.WriteString("}\n")
	return []byte(b.String())
}

// shortFirst orders names so that x[2] comes before x[10].
func shortFirst(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// some is the names that the file has.
func (q quantities) some() []string {
	sites := map[string][]string{}
	for name := range q {
		site, _, _ := strings.Cut(name, "[")
		sites[site] = append(sites[site], name)
	}
	var out []string
	for _, names := range sites {
		slices.SortFunc(names, shortFirst)
		step := (len(names) + keepMost - 1) / keepMost
		for i := 0; i < len(names); i += step {
			out = append(out, names[i])
		}
	}
	return out
}

// longRun is the draws of the first of five seeds whose chains agree, so that no chain that was lost is among them.
func (s settings) longRun(ctx context.Context, p problem, program *ppl.Program, m method, from uint64) (quantities,
	error) {
	var why string
	for seed := range uint64(5) {
		o := s.options
		o.Seed, o.Observer = from+seed, infer.Silent
		r, err := runTo(ctx, s.limit, p, program, m, o)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			why = err.Error()
			continue
		}
		q := watched(r.Draws, p.watch)
		if _, why = q.judge(nil, false); why == "" {
			return q, nil
		}
	}
	return nil, fmt.Errorf("%s: %s", m.name, why)
}

// longRuns is what two long runs say.
func (s settings) longRuns(ctx context.Context, p problem, program *ppl.Program) (longRuns, error) {
	var both [2]quantities
	for i, m := range s.methods {
		var err error
		if both[i], err = s.longRun(ctx, p, program, m, uint64(1000*(i+1))); err != nil {
			return longRuns{}, err
		}
	}
	reference := truth{}
	for name, x := range both[1] {
		reference[name] = momentsOf(x)
	}
	if _, why := both[0].judge(reference, false); why != "" {
		return longRuns{}, fmt.Errorf("%s and %s: %s", s.methods[0].name, s.methods[1].name, why)
	}
	known := longRuns{
		Source: fmt.Sprintf("%s and %s, %d chains of %d draws each", s.methods[0].name, s.methods[1].name, s.options.Chains,
			s.options.Draws),
		Moments: map[string][4]float64{},
	}
	for _, name := range both[0].some() {
		m := momentsOf(both[0][name]).with(reference[name])
		known.Moments[name] = [4]float64{m.mean, m.sd, m.meanError, m.sdError}
	}
	return known, nil
}
