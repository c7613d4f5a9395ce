package report

import (
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
)

// finding is the findings of one kind: the first ones in full, the others counted, and the advice once.
type finding struct {
	Severity string
	Code     string
	Messages []string
	More     int
	Advice   string
}

// findings groups the findings of a diagnosis by kind, in their order.
func findings(r *diag.Report) []finding {
	const most = 5
	var out []finding
	for _, same := range r.Groups() {
		f := same[0]
		kind := finding{Severity: f.Severity.String(), Code: string(f.Code), More: max(len(same)-most, 0), Advice: f.Advice}
		for _, g := range same[:min(most, len(same))] {
			kind.Messages = append(kind.Messages, strings.ToValidUTF8(g.Message, "\uFFFD"))
		}
		out = append(out, kind)
	}
	return out
}

// checked lists the checks that were made.
func checked(r *diag.Report) string {
	var codes []string
	for _, c := range r.Checked {
		codes = append(codes, string(c))
	}
	return strings.Join(codes, ", ")
}
