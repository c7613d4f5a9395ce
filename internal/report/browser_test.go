package report

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/store"
)

// plots counts the plots of a kind, and those of them that only say why they are empty.
func plots(dom, kind string) (all, empty int) {
	for _, m := range regexp.MustCompile(`<svg [^>]*data-plot="`+kind+`"[^>]*>`).FindAllString(dom, -1) {
		if all++; strings.Contains(m, "data-empty") {
			empty++
		}
	}
	return all, empty
}

func TestBrowserDrawsAllPlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page                                  string
		cards, noTrace, noRank, pairs, energy int
		marked                                int // plots that mark draws that diverged
	}{
		"funnel": {render(t, "funnel", funnel(t, 4, 1000), Options{}), 10, 0, 0, 1, 1, 10 + 6},
		"odd":    {render(t, "odd", odd(t, 400, 400, 333), Options{}), 14, 1, 2, 1, 1, 0},
		"single": {render(t, "single", plain(t, 1, 1, 1), Options{}), 1, 0, 1, 0, 0, 0},
	} {
		dom := testkit.Browser(t, c.page, "")
		for _, kind := range []string{"trace", "rank", "density", "autocorrelation"} {
			if n, _ := plots(dom, kind); n != c.cards {
				t.Errorf("%s: %d plots of %s, want %d", name, n, kind, c.cards)
			}
		}
		_, noTrace := plots(dom, "trace")
		_, noRank := plots(dom, "rank")
		pairs, _ := plots(dom, "pair")
		energy, _ := plots(dom, "energy")
		if noTrace != c.noTrace || noRank != c.noRank || pairs != c.pairs || energy != c.energy {
			t.Errorf("%s: %d empty traces, %d empty ranks, %d pair and %d energy plots, want %d, %d, %d and %d",
				name, noTrace, noRank, pairs, energy, c.noTrace, c.noRank, c.pairs, c.energy)
		}
		if n := strings.Count(dom, "data-divergences"); n != c.marked {
			t.Errorf("%s: divergences are marked in %d plots, want %d", name, n, c.marked)
		}
		if strings.Contains(dom, "Infinity") || regexp.MustCompile(` (d|x|y|x1|y1|viewBox)="[^"]*NaN`).MatchString(dom) {
			t.Errorf("%s: a plot has coordinates that are not numbers", name)
		}
	}
}

// Of 100 elements 40 are drawn. The address chooses another one, when the page opens and when it changes later; the
// test keeps a copy of each choice.
func TestBrowserChooses(t *testing.T) {
	t.Parallel()
	page := render(t, "hundred", plain(t, 2, 200, 100), Options{})
	e := embedded(t, page).Elements
	last, other := e[99].Name, e[70].Name
	steps := `<script>
const copy = () => {
  const c = document.getElementById("selected").cloneNode(true);
  c.id = "copy";
  document.body.append(c);
};
copy();
addEventListener("hashchange", copy);
setTimeout(() => { location.hash = "p=" + encodeURIComponent("` + other + `"); }, 50);
setTimeout(() => { location.hash = "p=%3Cscript%3Ealert(1)%3C%2Fscript%3E"; }, 200);
</script></body>`
	dom := testkit.Browser(t, strings.Replace(page, "</body>", steps, 1), "#p="+last)
	parts := strings.Split(dom, `<div id="copy">`)
	if len(parts) != 4 {
		t.Fatalf("the page was copied %d times, want 3", len(parts)-1)
	}
	if n, _ := plots(parts[0], "trace"); n != 40 {
		t.Errorf("%d traces are drawn at once, want 40", n)
	}
	for k, name := range []string{last, other} {
		if n, _ := plots(parts[k+1], "trace"); n != 1 || !strings.Contains(parts[k+1], `data-name="`+name+`"`) {
			t.Errorf("choice %d has %d traces in %.200q, want one, of %s", k, n, parts[k+1], name)
		}
	}
	if !strings.Contains(parts[3], "There are no plots of &lt;script&gt;") {
		t.Errorf("an unknown name gives %.200q, want a remark", parts[3])
	}
}

// A click sorts by numbers, the highest first, and NaN last; the filter hides rows; the pair
// plot takes another element.
func TestBrowserSortsAndFilters(t *testing.T) {
	t.Parallel()
	page := render(t, "odd", odd(t, 400, 400, 333), Options{})
	click := `<script>document.querySelectorAll("#table thead th")[9].click();
const f = document.getElementById("filter"); f.value = "u"; f.dispatchEvent(new Event("input"));
const p = document.getElementById("pairtools").children[4]; p.value = "normal"; p.dispatchEvent(new Event("change"));
</script></body>`
	dom := testkit.Browser(t, strings.Replace(page, "</body>", click, 1), "")
	if n := strings.Count(dom, "data-cell="); n != 15 {
		t.Errorf("the pair plot has %d cells after a fifth element was added, want 15", n)
	}
	var names []string
	for _, m := range regexp.MustCompile(`<tr( hidden="")?><th scope="row">(?:<a [^>]*>)?([^<]*)`).FindAllStringSubmatch(
		dom, -1) {
		names = append(names, m[2])
		if hidden := m[1] != ""; hidden == strings.Contains(m[2], "u") {
			t.Errorf("row %s is hidden: %v", m[2], hidden)
		}
	}
	if len(names) != 14 || names[0] != "stuck" || !strings.Contains("constant nan inf allnan", names[13]) {
		t.Errorf("the rows are %q, want stuck first and an R-hat of NaN last", names)
	}
}

// The intervals have a median for each element that varies, or not, and is finite; each checked variable has a plot.
func TestBrowserDrawsIntervalsAndChecks(t *testing.T) {
	t.Parallel()
	y := []float64{1, 2, 4}
	page := render(t, "checks", plain(t, 2, 100, 7), Options{Predictive: []Predictive{
		{Name: "y", Observed: y, Replicates: [][]float64{{2, 3, 4}, {1, 2, 5}}},
		{Name: "z", Observed: y, Replicates: [][]float64{y}}}})
	dom := testkit.Browser(t, page, "")
	if n := strings.Count(dom, "data-median"); n != 7 {
		t.Errorf("%d medians are drawn, want 7", n)
	}
	if n, _ := plots(dom, "check"); n != 2 {
		t.Errorf("%d checks are drawn, want 2", n)
	}
}

// The page of draws that WriteCSV wrote has plots of the parameters alone, and no warning: statistics are none.
func TestBrowserOfStoredDraws(t *testing.T) {
	t.Parallel()
	sites := []draws.Site{scalar("mu", 0), {Name: "w", Shape: []int{2}, Offset: 1, Size: 2}}
	stats := []string{draws.StatLP, draws.StatGradNorm, draws.StatHeld}
	d := container(t, sites, stats, []int{500, 500, 500, 500}, func(_, _ int, r *rand.Rand) ([]float64, []float64) {
		return []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}, []float64{-1 - r.Float64(), 1, 0}
	})
	dir := t.TempDir()
	paths, err := store.WriteCSV(filepath.Join(dir, "draws"), &store.Inference{Posterior: d}, store.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inf, err := store.Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	dom := testkit.Browser(t, render(t, "stored", inf.Posterior, Options{}), "")
	if n, _ := plots(dom, "trace"); n != 3 || !strings.Contains(dom, "No problems found.") ||
		strings.Contains(dom, `class="bad"`) {
		t.Errorf("%s: %d traces, or a warning", paths[0], n)
	}
}
