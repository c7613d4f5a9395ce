package regression

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Hypothesis is what the draws say of a statement such as "age > 0.1", "treatment[b] = treatment[c]" or
// "exp(sd_clinic[Intercept]) < 2": two sides of arithmetic, of names as summaries have them and of coefficients by
// their columns alone.
//
// difference is the left side less the right one, draw by draw. evidence is the ratio of the posterior probability of
// the statement to that of its contrary, +Inf where no draw is against it. Of an equality it is the posterior density
// of the difference at 0 over its prior density there (Savage and Dickey; Wagenmakers et al. 2010, Cognitive Psychology
// 60), by kernel estimates of both from as many draws: it follows the priors, so state them.
func (m *Model) Hypothesis(posterior *draws.Draws, statement string) (difference *draws.Draws, evidence float64,
	err error) {
	fail := func(err error) (*draws.Draws, float64, error) {
		return nil, 0, fmt.Errorf("regression.Hypothesis: %q: %w", statement, err)
	}
	if posterior == nil || posterior.Total() == 0 {
		return fail(draws.ErrNoDraws)
	}
	text, used := m.inBackquotes(posterior, statement)
	sides := strings.FieldsFunc(outsideBackquotes(text), func(r rune) bool { return strings.ContainsRune("<>=", r) })
	if len(sides) != 2 {
		return fail(fmt.Errorf("it has two sides with one of >, < and = between them"))
	}
	at := len(sides[0])
	f, err := formula.Parse(fmt.Sprintf("~ 0 + I((%s) - (%s))", strings.TrimSpace(text[:at]),
		strings.TrimSpace(text[at+1:])))
	if err != nil {
		return fail(err)
	}
	values, err := evaluated(f, used, posterior.Total(), func(element int) []float64 { return posterior.Pooled(element) })
	if err != nil {
		return fail(err)
	}
	next := -1
	difference, err = mapped(draws.Site{Name: strings.TrimSpace(statement), Size: 1}, posterior, func(int, int) []float64 {
		next++
		return values[next : next+1]
	})
	if err != nil {
		return fail(err)
	}
	if text[at] == '=' {
		prior, err := m.priorOf(posterior, f, used)
		if err != nil {
			return fail(err)
		}
		return difference, densityAt0(values) / densityAt0(prior), nil
	}
	above, below := 0.0, 0.0
	for _, v := range values {
		if v > 0 == (text[at] == '>') {
			above++
		} else {
			below++
		}
	}
	return difference, above / below, nil
}

// inBackquotes is a statement with its names in backquotes, as formulas have them, and the elements that they are. A
// statement that has backquotes already says itself where names begin and end.
func (m *Model) inBackquotes(d *draws.Draws, statement string) (text string, elements map[string]int) {
	elements = map[string]int{}
	all := d.Names()
	for _, name := range m.Needed(d) {
		s, _ := d.Site(name)
		for i := range s.Size {
			elements[all[s.Offset+i]] = s.Offset + i
			if of := m.site(name); of.role == isCoefficient && name == "b" {
				elements[of.labels[0][i]] = s.Offset + i
			} else if column, ok := strings.CutPrefix(name, "b["); ok && of.role == isCoefficient {
				elements[strings.TrimSuffix(column, "]")] = s.Offset
			}
		}
	}
	names := slices.Collect(maps.Keys(elements))
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	part := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' }
	var b strings.Builder
	for inside := false; statement != ""; {
		i := slices.IndexFunc(names, func(name string) bool {
			rest, ok := strings.CutPrefix(statement, name)
			return ok && (rest == "" || !part([]rune(rest)[0]) && rest[0] != '(' && rest[0] != '[')
		})
		first := []rune(statement)[0]
		switch {
		case first == '`':
			inside = !inside
		case !inside && i >= 0:
			b.WriteString("`" + names[i] + "`")
			statement = statement[len(names[i]):]
			continue
		case !inside && part(first): // another name or a number, whole
			end := strings.IndexFunc(statement, func(r rune) bool { return !part(r) })
			if end < 0 {
				end = len(statement)
			}
			b.WriteString(statement[:end])
			statement = statement[end:]
			continue
		}
		b.WriteRune(first)
		statement = statement[len(string(first)):]
	}
	return b.String(), elements
}

// outsideBackquotes has a letter in the place of each byte of a name.
func outsideBackquotes(text string) string {
	out, inside := []byte(text), false
	for i, c := range out {
		if c == '`' {
			inside = !inside
		}
		if inside || c == '`' {
			out[i] = 'x'
		}
	}
	return string(out)
}

// evaluated are the values of a formula's only column, of n rows, in which elements are columns.
func evaluated(f *formula.Formula, elements map[string]int, n int, of func(element int) []float64) ([]float64, error) {
	columns := []data.Column{{Name: "row", Numbers: make([]float64, n)}}
	for _, name := range f.Columns() {
		element, known := elements[name]
		if !known {
			return nil, fmt.Errorf("the draws have no %q: %s", name,
				formula.Nearest(name, slices.Sorted(maps.Keys(elements))))
		}
		columns = append(columns, data.Column{Name: name, Numbers: of(element)})
	}
	table, err := data.NewTable(columns...)
	if err != nil {
		return nil, err
	}
	design, err := f.Fit(table, formula.Options{EmptyCells: true, Collinear: true})
	if err != nil {
		return nil, err
	}
	rows, err := design.Rows(table)
	if err != nil {
		return nil, err
	}
	return rows.X, nil
}

// priorOf are values of a formula under the prior, of as many draws as there are of the posterior.
func (m *Model) priorOf(posterior *draws.Draws, f *formula.Formula, elements map[string]int) ([]float64, error) {
	n := posterior.Total()
	values, err := ppl.Predictive{Model: m.Model(), Batch: m.Batch(), Sites: m.Needed(posterior)}.Prior(n)
	if err != nil {
		return nil, err
	}
	defer torch.Free(slices.Collect(maps.Values(values))...)
	return evaluated(f, elements, n, func(element int) []float64 {
		for _, s := range posterior.Sites() {
			if element >= s.Offset && element < s.Offset+s.Size {
				flat := torch.Must(torch.ToSlice[float64](values[s.Name]))
				return formula.Every(flat, element-s.Offset, s.Size)
			}
		}
		return nil
	})
}

// densityAt0 is a Gaussian kernel estimate with the bandwidth of Silverman (1986), 0.9 min(sd, IQR/1.34) n^(-1/5).
func densityAt0(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	_, sd := sample.Moments(x)
	n := float64(len(x))
	h := 0.9 * math.Min(sd, (sample.Quantile(sorted, 0.75)-sample.Quantile(sorted, 0.25))/1.34) * math.Pow(n, -0.2)
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(-v * v / (2 * h * h))
	}
	return sum / (n * h * math.Sqrt(2*math.Pi))
}
