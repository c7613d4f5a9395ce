package formula

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
)

// addition is a function right of the bar of a left side, y | trials(n), and its arguments.
type addition struct {
	name string
	args []added
}

// added is an argument: its name in the formula, its key in Rows.Added, and what its values must be.
type added struct {
	name, key string
	ok        func(float64) bool
	want      string
}

// additions are those of Bürkner 2017, section 3.1, in the order in which they are written.
var additions = []addition{
	{"cens", []added{{"c", "cens", func(v float64) bool { return v == -1 || v == 0 || v == 1 || v == 2 },
		"censoring is -1 or left, 0 or none, 1 or right, 2 or interval"}, {"y2", "upper", nil, ""}}},
	{"trials", []added{{"n", "trials", func(v float64) bool { return v >= 0 && v == math.Trunc(v) },
		"trials are whole numbers from 0"}}},
	{"weights", []added{{"w", "weights", func(v float64) bool { return v >= 0 }, "a weight is at least 0"}}},
	{"se", []added{{"s", "se", func(v float64) bool { return v > 0 }, "a standard error is above 0"}}},
	{"trunc", []added{{"lb", "lower", sample.Finite, ""}, {"ub", "above", sample.Finite, ""}}},
}

// outcome reads the left side: y, f(y), or y | cens(c) + trials(n).
func (x *expansion) outcome(e Expr) (Outcome, *Error) {
	e = e.bare()
	o := Outcome{Added: map[string]Expr{}}
	if e.Kind == Call && e.Name == "||" {
		return o, x.wrong(e.at, "the left side has one bar: y | trials(n)")
	}
	if e.Kind == Call && e.Name == "|" {
		if err := x.additions(e.Args[1], &o); err != nil {
			return o, err
		}
		e = e.Args[0]
	}
	if o.Value = e; o.Several() {
		says := "cbind() is of at least two columns, of counts or shares; successes of trials are y | trials(n)"
		if e.Name == "mvbind" {
			says = "mvbind() is of at least two columns"
		}
		for _, a := range e.Args {
			if a.Kind != Column || a.Key != "" || len(e.Args) < 2 {
				return o, x.wrong(e.at, "%s", says)
			}
		}
		return o, nil
	}
	if e.Kind == Call && (e.Name == "factor" || e.Name == "C") || e.Kind != Column && e.Kind != Call {
		return o, x.wrong(e.at, "the outcome is a column, or a number made of columns, as log(y)")
	}
	return o, x.checkNumber(e)
}

// additions reads what is added to an outcome.
func (x *expansion) additions(e Expr, o *Outcome) *Error {
	if e.Kind == Call && e.Name == "+" && len(e.Args) == 2 {
		if err := x.additions(e.Args[0], o); err != nil {
			return err
		}
		return x.additions(e.Args[1], o)
	}
	for _, f := range additions {
		if e.Kind != Call || e.Name != f.name {
			continue
		}
		var names []string
		for _, to := range f.args {
			names = append(names, to.name)
		}
		a := x.arguments(e, names...)
		for _, to := range f.args {
			of := a.number(to.name)
			switch _, twice := o.Added[to.key]; {
			case of.None():
				continue
			case twice:
				a.wrong(e.at, "%s() is there twice", e.Name)
			case to.key == "cens" && of.Kind != Column:
				a.wrong(of.at, "cens() takes a column: -1 or left, 0 or none, 1 or right, 2 or interval")
			}
			o.Added[to.key] = of
		}
		return a.err
	}
	return x.wrong(e.at, "right of the bar stand trials(n), weights(w), se(s), cens(c), cens(c, upper) and "+
		"trunc(lb = l, ub = u), added to each other")
}

// Several says whether the outcome are several columns: those of categories, cbind(a, b), or outcomes of their own,
// mvbind(a, b).
func (o Outcome) Several() bool {
	return o.Value.Kind == Call && (o.Value.Name == "cbind" || o.Value.Name == "mvbind")
}

// learnOutcome learns the levels of an outcome that is a factor.
func (s *source) learnOutcome() error {
	e := s.f.Outcome.Value
	if s.f.Outcome.Several() {
		for _, a := range e.Args {
			s.m.outcome = append(s.m.outcome, a.Name)
		}
	}
	if e.Kind != Column || e.None() {
		return nil
	}
	factor, err := s.isFactor(e)
	if err != nil || !factor {
		return err
	}
	c, err := s.factor(e)
	s.m.outcome = c.levels
	return err
}

// outcome reads the left side.
func (s *source) outcome(r *Rows) (err error) {
	o := s.f.Outcome
	if o.Value.None() {
		return nil
	}
	r.Levels, r.Added = s.m.outcome, map[string][]float64{}
	if s.complete(o.Value) || s.learning {
		if r.Y, err = s.response(o.Value); err != nil {
			return err
		}
	}
	for _, f := range additions {
		for _, a := range f.args {
			e, there := o.Added[a.key]
			if !there || r.Y == nil && !s.complete(e) {
				continue
			}
			if r.Added[a.key], err = s.added(e, a, r.Added["cens"]); err != nil {
				return err
			}
		}
	}
	return s.consistent(r)
}

// added is what is added to an outcome.
func (s *source) added(e Expr, a added, censored []float64) (x []float64, err error) {
	switch a.key {
	case "cens":
		x, err = s.censored(e, a.want)
	case "upper":
		return s.upper(e, censored)
	default:
		x, err = s.number(e)
	}
	for i, v := range x {
		if !a.ok(v) {
			return nil, cell(i, e, number(v), a.want)
		}
	}
	return x, err
}

// upper reads the ends of intervals. A column may lack them in rows without an interval; that is NaN.
func (s *source) upper(e Expr, censored []float64) ([]float64, error) {
	if e.Kind == Column && s.has(e) && censored != nil {
		c, err := s.t.Column(e.Name)
		if err != nil {
			return nil, err
		}
		for i, v := range c.Numbers {
			if math.IsNaN(v) && censored[i] == 2 {
				return nil, cell(i, e, "", "it is missing, and the outcome is censored in an interval in this row")
			}
		}
		if c.Numbers != nil {
			return c.Numbers, nil
		}
	}
	return s.number(e)
}

// complete says whether the table has all columns of an expression.
func (s *source) complete(e Expr) bool {
	for _, c := range e.columns(nil) {
		if !s.has(Expr{Name: c}) {
			return false
		}
	}
	return true
}

func (s *source) response(e Expr) ([]float64, error) {
	if s.f.Outcome.Several() {
		out := make([]float64, s.t.Len()*len(e.Args))
		for k, a := range e.Args {
			x, err := s.numeric(a)
			if err != nil {
				return nil, err
			}
			for i, v := range x {
				out[i*len(e.Args)+k] = v
			}
		}
		return out, nil
	}
	if s.m.outcome == nil {
		return s.number(e)
	}
	c, err := s.factor(e)
	if err != nil {
		return nil, err
	}
	to := matched(c.levels, s.m.outcome)
	out := make([]float64, len(c.of))
	for i, code := range c.of {
		if to[code] < 0 {
			return nil, cell(i, e, c.levels[code], "the outcome does not have this level in the training data: it has "+
				list(s.m.outcome))
		}
		out[i] = float64(to[code])
	}
	return out, nil
}

// censored reads the words of cens(c), or its numbers.
func (s *source) censored(e Expr, want string) ([]float64, error) {
	if factor, err := s.isFactor(e); err != nil || !factor {
		return s.numeric(e)
	}
	c, err := s.factor(e)
	if err != nil {
		return nil, err
	}
	out := make([]float64, s.t.Len())
	codes := map[string]float64{"left": -1, "none": 0, "right": 1, "interval": 2, "-1": -1, "0": 0, "1": 1, "2": 2}
	for i, code := range c.of {
		k, ok := codes[c.levels[code]]
		if !ok {
			return nil, cell(i, e, c.levels[code], want)
		}
		out[i] = k
	}
	return out, nil
}

// consistent compares the outcome with what is added to it.
func (s *source) consistent(r *Rows) error {
	trials, cens, upper, lower, above := r.Added["trials"], r.Added["cens"], r.Added["upper"], r.Added["lower"],
		r.Added["above"]
	several := s.f.Outcome.Several()
	for i := range r.N {
		problem, interval := "", cens != nil && cens[i] == 2
		switch {
		case lower != nil && above != nil && lower[i] >= above[i]:
			problem = fmt.Sprintf("its lower bound %v is not below its upper bound %v", lower[i], above[i])
		case r.Y == nil, several && trials == nil:
		case several:
			k := len(r.Levels)
			if sum := floats.Sum(r.Y[i*k : (i+1)*k]); sum != trials[i] {
				return cell(i, s.f.Outcome.Value, number(sum), "the sum of its counts must be its number of trials, "+
					number(trials[i]))
			}
		case r.Levels != nil && len(r.Added) > number01(r.Added["weights"] != nil):
			problem = "it is a factor, which has no trials, censoring, truncation or standard errors"
		case trials != nil && (r.Y[i] < 0 || r.Y[i] > trials[i]):
			problem = "it must be from 0 to its number of trials, " + number(trials[i])
		case interval && upper == nil:
			problem = "it is censored in an interval, whose end is missing: write cens(c, upper)"
		case interval && upper[i] <= r.Y[i]:
			problem = fmt.Sprintf("the end of its interval, %v, must be above it", upper[i])
		case lower != nil && r.Y[i] < lower[i]:
			problem = "it is below its lower bound, " + number(lower[i])
		case above != nil && r.Y[i] > above[i]:
			problem = "it is above its upper bound, " + number(above[i])
		}
		if problem != "" {
			value := ""
			if r.Y != nil {
				value = number(r.Y[i])
			}
			return cell(i, s.f.Outcome.Value, value, problem)
		}
	}
	return nil
}
