package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// The table has the text of diag's, in the order of the model, and flags of its own.
func TestTableIsThatOfSummary(t *testing.T) {
	d := funnel(t, 4, 500)
	s, err := diag.Summary(d, diag.SummaryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tab := tableOf(s, d.Names(), worstFirst(s.Rows), nil)
	lines := strings.Split(s.String(), "\n")
	for i, row := range tab.Rows {
		text := row.Name
		for k, c := range row.Cells {
			text += " " + c.Text
			r := s.Rows[i]
			want := tab.Head[k] == "r_hat" && r.RHat > 1.01 || tab.Head[k] == "ess_bulk" && r.ESSBulk < 400 ||
				tab.Head[k] == "ess_tail" && r.ESSTail < 400
			if c.Bad != want {
				t.Errorf("%s of %s is flagged: %v, want %v", tab.Head[k], row.Name, c.Bad, want)
			}
		}
		if want := strings.Join(strings.Fields(lines[i+1]), " "); text != want {
			t.Errorf("row %d is %q, want %q", i, text, want)
		}
	}
	if len(tab.Rows) != 10 || len(tab.Head) != 9 {
		t.Errorf("%d rows of %d columns, want 10 of 9", len(tab.Rows), len(tab.Head))
	}
}

// The constants of a Cholesky factor have no row, no plot and no interval, and the rows behind them are their own.
func TestStructuralConstantsAreLeftOut(t *testing.T) {
	d, err := draws.New([]draws.Site{{Name: "l", Shape: []int{2, 2}, Size: 4}, {Name: "z", Offset: 4, Size: 1}}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		for c := range 2 {
			u := float64((37*i+11*c)%101) / 101
			if err := d.AppendChain(c, []float64{1 + u, 0, u - 0.5, 2 + u, 5 + u}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, err := build(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range p.Table.Rows {
		names = append(names, row.Name)
	}
	if want := []string{"l[0,0]", "l[1,0]", "l[1,1]", "z"}; !slices.Equal(names, want) {
		t.Errorf("the rows are %v, want %v", names, want)
	}
	if mean := p.Table.Rows[3].Cells[0].Text; !strings.HasPrefix(mean, "5.") {
		t.Errorf("the mean of z is %s, want 5 and a half", mean)
	}
	if len(p.Forest.Names) != 4 || p.Plots != 4 {
		t.Errorf("%d intervals and %d plots, want 4", len(p.Forest.Names), p.Plots)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.HasSuffix(n, "have no row: 1.") }) {
		t.Errorf("the notes are %v", p.Notes)
	}
}

func TestFactsAndFindings(t *testing.T) {
	d := funnel(t, 4, 1000)
	page := render(t, "funnel", d, Options{})
	r, err := diag.Diagnose(d, diag.DiagnoseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := int(r.Of(diag.CodeDivergence)[0].Figure)
	for _, f := range facts(d, nil) {
		if f.Name == "divergences" && (f.Value != short(float64(n)) || !f.Bad) {
			t.Errorf("divergences are %q, want %d", f.Value, n)
		}
	}
	if advice := r.Of(diag.CodeDivergence)[0].Advice; !strings.Contains(page, advice[:60]) {
		t.Errorf("the page lacks the advice %q", advice)
	}
	many := &diag.Report{}
	for range 8 {
		many.Findings = append(many.Findings, diag.Finding{Code: diag.CodeRHat, Severity: diag.Serious, Message: "m"})
	}
	if f := findings(many); len(f) != 1 || len(f[0].Messages) != 5 || f[0].More != 3 {
		t.Errorf("8 findings of a kind are shown as %+v", f)
	}
}

// A chain of the plot data is the chain of the draws.
func TestElementData(t *testing.T) {
	d := odd(t, 400, 400, 333)
	byName := map[string]element{}
	for _, e := range embedded(t, render(t, "odd", d, Options{})).Elements {
		byName[e.Name] = e
	}
	e := byName["normal"]
	for c := range 3 {
		x, y := d.Element(c, 0), unpack(e.Trace[c])
		for i := range x {
			if got := e.Low + y[i]*(e.High-e.Low); len(y) != len(x) || got-x[i] > 1e-3 || x[i]-got > 1e-3 {
				t.Fatalf("draw %d of chain %d is %v, want %v", i, c, got, x[i])
			}
		}
		rho := diag.Autocorrelation(x)
		if a := unpack(e.Auto[c]); len(a) != 101 || 2*a[1]-1-rho[1] > 1e-3 || rho[1]-2*a[1]+1 > 1e-3 {
			t.Errorf("chain %d has autocorrelations %v, want %v", c, a[:2], rho[:2])
		}
	}
	if e := byName["constant"]; e.Dens != nil || e.Ranks != nil || !strings.Contains(e.Note, "2.5") {
		t.Errorf("a constant has densities %v, ranks %v and the note %q", e.Dens, e.Ranks, e.Note)
	}
	if e := byName["nan"]; !strings.Contains(e.Note, "NaN") || !e.Bad {
		t.Errorf("draws that are NaN have the note %q", e.Note)
	}
}

func TestOptions(t *testing.T) {
	d := plain(t, 2, 20, 3)
	empty, err := draws.New(d.Sites(), nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		d    *draws.Draws
		o    Options
		want error
	}{
		"details": {d, Options{Details: -1}, ErrOption},
		"pairs":   {d, Options{Pair: make([]string, 6)}, ErrOption},
		"pair":    {d, Options{Pair: []string{"theta"}}, draws.ErrUnknownName},
		"site":    {d, Options{Sites: []string{"phi"}}, draws.ErrUnknownName},
		"empty":   {empty, Options{}, draws.ErrNoDraws},
	} {
		var b bytes.Buffer
		if err := Report(&b, c.d, c.o); !errors.Is(err, c.want) || b.Len() > 0 {
			t.Errorf("%s: the error is %v after %d bytes, want %v", name, err, b.Len(), c.want)
		}
	}
	page := embedded(t, render(t, "options", d, Options{Details: 2, Pair: []string{"theta[2]", "theta[0]"}}))
	if page.Details != 2 || len(page.Pair) != 2 || page.Elements[page.Pair[0]].Name != "theta[2]" {
		t.Errorf("details %d and pair %v of %d elements", page.Details, page.Pair, len(page.Elements))
	}
}
