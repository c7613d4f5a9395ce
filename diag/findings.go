package diag

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Code names a kind of finding.
type Code string

// The findings of [Diagnose]. Those of a run's own notes have the kind of the note.
const (
	CodeDivergence Code = "divergence"    // transitions that diverged
	CodeTreeDepth  Code = "tree_depth"    // transitions cut off at the largest tree depth
	CodeEBFMI      Code = "ebfmi"         // low energy changes from draw to draw
	CodeHeld       Code = "held"          // updates that were refused, so that the chain stayed where it was
	CodeRHat       Code = "rhat"          // chains that disagree
	CodeESSBulk    Code = "ess_bulk"      // too few effective draws for the centre
	CodeESSTail    Code = "ess_tail"      // too few effective draws for the tails
	CodeNotFinite  Code = "not_finite"    // draws that are NaN or infinite
	CodeConstant   Code = "constant"      // an element that never moved
	codeJumps      Code = "energy_jumps"  // energy errors as of a density that is not continuous
	codeFewDraws   Code = "few_draws"     // fewer than 6 draws in a chain
	codeOneChain   Code = "one_chain"     // nothing to compare with
	codeSteps      Code = "step_sizes"    // of chains, that differ by orders of magnitude
	codeStill      Code = "never_moved"   // a chain all of whose draws are the same
	codeUnequal    Code = "unequal_chain" // chains of different lengths
	CodeSkipped    Code = "skipped"       // a check that lacked its statistic
)

// Severity orders findings.
type Severity int

// Info is worth knowing; Warning makes figures imprecise; Serious can make them wrong.
const (
	Info Severity = iota
	Warning
	Serious
)

// String is "info", "warning" or "serious".
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Serious:
		return "serious"
	}
	return fmt.Sprintf("severity(%d)", int(s))
}

// Finding is one thing that a diagnosis found.
type Finding struct {
	Code     Code     // the kind of finding
	Severity Severity // how much it matters
	// Site is the element concerned, such as theta[0]; the statistic that was missing; or empty for a whole run.
	Site string
	// Chain is the chain concerned, -1 for all; Observation is the data point concerned, -1 for none.
	Chain, Observation int
	// Figure is what was measured, Threshold the limit that it passed. For divergences and tree
	// depth Figure counts transitions.
	Figure, Threshold float64
	// Message says what was found, Advice what to do about it.
	Message, Advice string
}

// Report is the result of a diagnosis.
type Report struct {
	// Findings are ordered by severity, the serious ones first.
	Findings []Finding
	// Checked names the checks that were made.
	Checked []Code
	// Chains and Draws, of each chain, say what was looked at.
	Chains, Draws int
	// Subject says in words what was looked at; empty is "4 chains of 1000 draws".
	Subject string
}

// OK is true if there is no finding above Info.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity > Info })
}

// Join adds the findings and the checks of another report, such as that of a leave-one-out cross-validation; nil adds
// nothing.
func (r *Report) Join(other *Report) {
	if other == nil {
		return
	}
	r.Findings = append(r.Findings, other.Findings...)
	r.Checked = append(r.Checked, other.Checked...)
	r.sort()
}

// sort puts the serious findings first.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
}

// Of are the findings of one kind.
func (r *Report) Of(code Code) []Finding {
	var found []Finding
	for _, f := range r.Findings {
		if f.Code == code {
			found = append(found, f)
		}
	}
	return found
}

// Format writes the report for people to read: findings of one kind together, the first three in full and the others
// counted, and the advice once. The error is that of w.
func (r *Report) Format(w io.Writer) error {
	if w == nil {
		return failf(draws.ErrRange, "write report: the writer is nil")
	}
	if _, err := io.WriteString(w, r.String()); err != nil {
		return fmt.Errorf("diag: write report: %w", err)
	}
	return nil
}

// String is the text that [Report.Format] writes.
func (r *Report) String() string {
	const most = 3
	var b strings.Builder
	b.WriteString(cmp.Or(r.Subject, fmt.Sprintf("%d chains of %d draws", r.Chains, r.Draws)))
	var checked []string
	for _, code := range r.Checked {
		checked = append(checked, string(code))
	}
	if len(checked) > 0 {
		fmt.Fprintf(&b, "; checked %s", strings.Join(checked, ", "))
	}
	b.WriteString(".\n")
	switch {
	case r.OK() && len(r.Findings) > 0: // all of them Info
		b.WriteString("No problems found. Notes:\n")
	case r.OK():
		b.WriteString("No problems found.\n")
	}
	for _, group := range r.Groups() {
		for i, f := range group {
			if i == most {
				fmt.Fprintf(&b, "%s: %d more like this.\n", f.Severity, len(group)-most)
				break
			}
			fmt.Fprintf(&b, "%s: %s\n", f.Severity, f.Message)
		}
		if group[0].Advice != "" {
			fmt.Fprintf(&b, "  %s\n", group[0].Advice)
		}
	}
	return visible.Text(b.String())
}

// Groups are the findings of one kind and severity together whose advice is the same but for numbers, in order. The
// advice of the first finding holds for its group.
func (r *Report) Groups() [][]Finding {
	var groups [][]Finding
	for _, f := range r.Findings {
		k := slices.IndexFunc(groups,
			func(g []Finding) bool {
				return g[0].Code == f.Code && g[0].Severity == f.Severity && sameAdvice(g[0], f)
			})
		if k < 0 {
			groups = append(groups, nil)
			k = len(groups) - 1
		}
		groups[k] = append(groups[k], f)
	}
	return groups
}

// sameAdvice says whether advice differs in numbers alone, or is that of the finding before.
func sameAdvice(first, f Finding) bool {
	words := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, s)
	}
	return f.Advice == "" || words(first.Advice) == words(f.Advice)
}
