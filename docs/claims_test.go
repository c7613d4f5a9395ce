package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of claims says what the results above it say: its figures are in them, and where a claim has a row of its
// own in a section, both have one verdict. Each has one of four values.
func TestClaimsSayWhatTheResultsSay(t *testing.T) {
	text, err := os.ReadFile("papers.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "## Claims of the papers\n")
	if !ok {
		t.Fatal("papers.md has no claims of the papers")
	}
	table, after, _ := strings.Cut(rest, "\n## ")
	results := before + after
	verdict := func(text, claim string) string {
		for line := range strings.Lines(text) {
			if cells := strings.Split(line, "|"); len(cells) > 2 && strings.HasPrefix(strings.TrimSpace(cells[1]), claim) {
				return strings.Trim(cells[2], " *")
			}
		}
		t.Errorf("there is no claim %q", claim)
		return ""
	}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| C") && (len(cells) != 8 ||
			!slices.Contains([]string{"yes", "no", "open", "impossible here"}, strings.TrimSpace(cells[2]))) {
			t.Errorf("%q has not six columns, of which the second is one of the four values", line)
		}
	}
	// A section says whether the margin is above 0; where it is not, the claim may be open.
	for number, claim := range map[string]string{
		"C2.6": "Laplace forgets less",
		"C2.7": "epistemic uncertainty tells better in parallel than serial",
	} {
		if have, want := verdict(table, number), verdict(before, claim); have != want && (have != "open" || want != "no") {
			t.Errorf("%s is %q, and %q is %q in its section", number, have, claim, want)
		}
	}
	figures := regexp.MustCompile(`−?\d+\.\d\d\d( ± \d\.\d+| \(\d\.\d+\))?`).FindAllString(table, -1)
	if len(figures) < 5 {
		t.Errorf("the table of claims has the figures %q alone", figures)
	}
	for _, figure := range figures {
		if !strings.Contains(results, figure) {
			t.Errorf("%s is in the table of claims and nowhere else", figure)
		}
	}
}
