package regression

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
)

// learnOutcome checks the outcome against the family.
func (m *Model) learnOutcome(f *formula.Formula, rows *formula.Rows) error {
	s, o := m.family, f.Outcome
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: outcome %s: %s", typeName, o.Value, fmt.Sprintf(format, args...))
	}
	trials := rows.Added["trials"]
	m.levels, m.bounds = rows.Levels, rows.Added["lower"] != nil || rows.Added["above"] != nil
	if err := m.refused(o, rows, fail); err != nil {
		return err
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i, y := range rows.Y {
		n := 0.0
		if s.trials {
			n = trials[i*rows.N/len(rows.Y)]
		}
		if !s.allowed.ok(y, n) {
			return m.wrongRow(i*rows.N/len(rows.Y), y, fmt.Sprintf("of the family %s %s", s.name, s.allowed.must))
		}
		low, high = math.Min(low, y), math.Max(high, y)
		if s.logits != nil && !s.several && y != math.Trunc(y) {
			return m.wrongRow(i, y, fmt.Sprintf("of the family %s it must be a factor or a whole number", s.name))
		}
	}
	if s.partial {
		if err := m.learnCox(fail); err != nil {
			return err
		}
	}
	if s.name == "dirichlet" {
		for i, k := 0, len(m.levels); i < rows.N; i++ {
			if sum := floats.Sum(rows.Y[i*k : (i+1)*k]); math.Abs(sum-1) > 1e-6 {
				return m.wrongRow(i, sum, "the sum of its shares must be 1")
			}
		}
	}
	if s.logits != nil || s.joint {
		m.categories, m.lowest = len(m.levels), 0
		if m.levels == nil {
			m.categories, m.lowest = int(high-low)+1, low
		}
		if m.categories < 2 {
			return fail("it has one category: the family %s needs at least 2", s.name)
		}
	}
	m.scale = 1
	if s.scaled && !s.joint {
		if _, sd := sample.Moments(rows.Y); sd > 0 && s.linked() == "identity" {
			m.scale = sd
		}
	}
	return nil
}

// refused says what a family does not take beside the outcome.
func (m *Model) refused(o formula.Outcome, rows *formula.Rows, fail func(format string, args ...any) error) error {
	s := m.family
	switch {
	case s.trials && rows.Added["trials"] == nil:
		return fail("the family %s counts successes of trials: write %s | trials(n), n a column or a number", s.name, o.Value)
	case !s.trials && rows.Added["trials"] != nil:
		return fail("trials() is of the families binomial and beta_binomial, and this is %s", s.name)
	case rows.Added["se"] != nil && s.name != "gaussian":
		return fail("se() is of the family gaussian, and this is %s", s.name)
	case s.partial && m.levels == nil && !o.Several():
	case m.bounds && s.countable():
		return fail("trunc() is of families of real numbers, and this is %s", s.name)
	case rows.Added["cens"] != nil && (m.bounds || !slices.Contains(censorable, s.name)):
		return fail("cens() is of gaussian, student, lognormal, gamma, inverse_gaussian, exponential and weibull, without " +
			"trunc()")
	case o.Several() != (s.several || s.joint):
		return fail("counts of several categories, cbind(a, b) | trials(n), are of the family multinomial, their shares, " +
			"cbind(a, b), of dirichlet, and no others of these")
	case s.joint && len(rows.Added) > 0 && (len(rows.Added) > 1 || rows.Added["weights"] == nil):
		return fail("of several outcomes only weights(w) stands right of the bar")
	case m.levels != nil && s.logits == nil && !s.joint && !(s.name == "bernoulli" && len(m.levels) == 2):
		return fail("it is a factor of levels %q, and the family %s is of numbers: two levels are of bernoulli, more of "+
			"categorical or, in their order, of cumulative", m.levels, s.name)
	}
	return nil
}

// wrongRow is the error of an outcome that the family does not have.
func (m *Model) wrongRow(row int, y float64, problem string) error {
	return &data.Error{Line: m.table.Line(row), Row: row, Column: m.outcome, Value: fmt.Sprintf("%g", y), Problem: problem}
}

// centre is the link of the mean outcome.
func (m *Model) centre() float64 {
	if m.family.logits != nil || m.family.joint {
		return 0
	}
	y := m.working(false)
	if m.family.hurdle {
		some := 0
		for i, v := range m.rows.Y {
			if v != 0 {
				y[some] = y[i]
				some++
			}
		}
		y = append(y[:some], y[0])[:max(some, 1)]
	}
	mean, _ := sample.Moments(y)
	return forward(m.family.linked(), mean)
}

// working is an outcome in which effects about add up: shares of trials and, where logs is true, logarithms of what has
// a log link.
func (m *Model) working(logs bool) []float64 {
	y := slices.Clone(m.rows.Y)
	for i := range y {
		switch {
		case m.family.trials:
			y[i] /= math.Max(1, m.rows.Added["trials"][i])
		case strings.HasSuffix(m.family.name, "lognormal"):
			y[i] = math.Log(cmp.Or(y[i], 1)) // a hurdle has zeros
		case logs && m.family.linked() == "log":
			y[i] = math.Log(y[i] + 0.5)
		}
	}
	return y
}

// addOutcome gives the outcome and what is added to it.
func (m *Model) addOutcome(rows *formula.Rows, numbers func(key string, x []float64, shape ...int)) {
	added := maps.Clone(rows.Added)
	if rows.Y != nil {
		y := slices.Clone(rows.Y)
		for i := range y {
			y[i] -= m.lowest
		}
		shape := []int{rows.N}
		if len(y) > rows.N {
			shape = append(shape, m.categories)
		}
		numbers("y", y, shape...)
		if cens := added["cens"]; cens != nil {
			ends := slices.Clone(rows.Y) // a number above y where there is no interval
			for i := range ends {
				if ends[i]++; cens[i] == 2 {
					ends[i] = added["upper"][i]
				}
			}
			added["upper"] = ends
		}
	}
	if m.bounds {
		added["lower"] = orElse(rows.Added["lower"], rows.N, math.Inf(-1))
		added["above"] = orElse(rows.Added["above"], rows.N, math.Inf(1))
	}
	for key, x := range added {
		numbers(key, x)
	}
}

func orElse(x []float64, n int, v float64) []float64 {
	if x == nil {
		return slices.Repeat([]float64{v}, n)
	}
	return x
}
