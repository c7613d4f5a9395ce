package report

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
)

var (
	rawText = regexp.MustCompile(`(?s)<(script|style)\b[^>]*>.*?</(?:script|style)>`)
	tag     = regexp.MustCompile(`<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*>`)
	void    = []string{"meta", "link", "input", "br", "hr", "img"}
	dataOf  = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
)

// balanced checks that a page is HTML in which every tag that opens is closed, in order.
func balanced(t *testing.T, page string) {
	t.Helper()
	page = strings.TrimPrefix(page, "<!DOCTYPE html>")
	page = rawText.ReplaceAllString(page, "")
	if rest := tag.ReplaceAllString(page, ""); strings.ContainsAny(rest, "<>") {
		at := strings.IndexAny(rest, "<>")
		t.Fatalf("a < or > is not a tag: %q", rest[max(0, at-60):min(len(rest), at+60)])
	}
	var open []string
	for _, m := range tag.FindAllStringSubmatch(page, -1) {
		switch {
		case slices.Contains(void, m[2]):
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			t.Fatalf("</%s> closes %v", m[2], open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v are not closed", open)
	}
}

// embedded are the numbers in a page.
func embedded(t *testing.T, page string) data {
	t.Helper()
	m := dataOf.FindAllStringSubmatch(page, -1)
	if len(m) != 1 {
		t.Fatalf("the page has %d blocks of data, want 1", len(m))
	}
	var d data
	if err := json.Unmarshal([]byte(m[0][1]), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPagesAreHTML(t *testing.T) {
	for name, c := range map[string]struct {
		d        *draws.Draws
		elements int
	}{
		"funnel": {funnel(t, 4, 1000), 10},
		"odd":    {odd(t, 400, 400, 333), 14},
		"one":    {plain(t, 1, 300, 2), 2},
		"few":    {plain(t, 2, 3, 2), 2},
		"single": {plain(t, 1, 1, 1), 1},
		"chains": {plain(t, 64, 200, 3), 3},
		"none":   {plain(t, 2, 10, 0), 0},
	} {
		page := render(t, name, c.d, Options{})
		balanced(t, page)
		d := embedded(t, page)
		if len(d.Elements) != c.elements || len(d.Lengths) != c.d.Chains() {
			t.Errorf("%s: %d elements and %d chains, want %d and %d", name, len(d.Elements), len(d.Lengths), c.elements,
				c.d.Chains())
		}
		for _, outside := range []string{"http:", "https:", "src=", "@import", "url("} {
			text := strings.ReplaceAll(page, "http://www.w3.org/2000/svg", "") // a name, which is not fetched
			if strings.Contains(text, outside) {
				t.Errorf("%s: the page has %q", name, outside)
			}
		}
	}
}

// Names, titles, files and statistics come from others.
func TestEverythingIsEscaped(t *testing.T) {
	const evil = `</script></title><script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\u202e"
	d := container(t, []draws.Site{scalar(evil, 0), scalar("b\xff", 1), scalar("constant "+evil, 2)}, []string{evil},
		[]int{50, 50},
		func(_, _ int, r *rand.Rand) ([]float64, []float64) {
			return []float64{r.NormFloat64(), r.NormFloat64(), 1}, []float64{0}
		})
	page := render(t, "escaped", d, Options{Title: evil, Sources: []string{evil}, Notes: []string{evil + "\xfe"},
		Facts: [][2]string{{evil, evil + "\xfe"}}})
	balanced(t, page)
	for _, bad := range []string{"<script>alert", "<img", "</script></title>", "\xff", "\xfe", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	names := []string{}
	for _, e := range embedded(t, page).Elements {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	if want := []string{shown(evil), "b\uFFFD", "constant " + shown(evil)}; !slices.Equal(names, want) {
		t.Errorf("the data have the names %q, want %q", names, want)
	}
	t.Log("seen: scripts in names, titles, notes and facts of a report are text")
}

func TestSameDrawsGiveTheSameBytes(t *testing.T) {
	d := odd(t, 200, 180)
	first := render(t, "same", d, Options{})
	if second := render(t, "same", d, Options{}); first != second {
		t.Error("two pages of the same draws differ")
	}
}

// The bound holds for many elements, many chains, both, and long names.
func TestSizeIsBounded(t *testing.T) {
	t.Parallel()
	long := func() *draws.Draws {
		var sites []draws.Site
		for k := range 2200 {
			sites = append(sites, scalar(strings.Repeat("<&>", 60)+string(rune('a'+k%26))+strings.Repeat("x", k/26), k))
		}
		return container(t, sites, nil, []int{20, 20}, func(_, _ int, r *rand.Rand) ([]float64, []float64) {
			x := make([]float64, len(sites))
			for k := range x {
				x[k] = r.NormFloat64()
			}
			return x, nil
		})
	}
	for name, c := range map[string]struct {
		d     *draws.Draws
		o     Options
		least int // elements with plots
	}{
		"many":   {many(t, 4, 300, 1000), Options{}, 1000},
		"wide":   {many(t, 32, 20, 1300), Options{}, 500},
		"detail": {many(t, 4, 100, 1700), Options{Details: 1700}, 1000},
		"long":   {long(), Options{}, 1000},
	} {
		bounded(t, name, c.d, c.o, c.least)
	}
}

// bounded checks the size of a page, and that as many elements as there can be have plots and links to them.
func bounded(t *testing.T, name string, d *draws.Draws, o Options, least int) {
	t.Helper()
	page := render(t, name, d, o)
	n := len(embedded(t, page).Elements)
	t.Logf("%s: %d bytes, %d elements with plots", name, len(page), n)
	if len(page) > MaxSize || n < least {
		t.Errorf("%s: %d bytes with plots of %d elements, want at most %d and at least %d", name, len(page), n, MaxSize,
			least)
	}
	links := strings.Count(page, `<a href="#p=`)
	if rows := strings.Count(page, `<th scope="row">`); links > n || rows < links {
		t.Errorf("%s: %d links in %d rows for plots of %d elements", name, links, rows, n)
	}
}
