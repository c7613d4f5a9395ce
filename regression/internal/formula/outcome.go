package formula

import (
	"math"

	"github.com/kelvin-ppl/kelvin/data"
)

// learnOutcome learns the levels of an outcome that is a factor.
func (s *source) learnOutcome() error {
	e := s.f.Outcome.Value
	if e.Kind != Column || e.None() {
		return nil
	}
	factor, err := s.isFactor(e)
	if err != nil || !factor {
		return err
	}
	c, err := s.factor(e)
	s.m.Outcome = c.levels
	return err
}

// outcome reads the left side.
func (s *source) outcome(r *Rows) error {
	o := s.f.Outcome
	if o.Value.None() {
		return nil
	}
	r.Levels = s.m.Outcome
	var err error
	there := s.complete(o.Value)
	if there || s.learning {
		if r.Y, err = s.response(o.Value); err != nil {
			return err
		}
	}
	for _, a := range []struct {
		of   Expr
		to   *[]float64
		ok   func(float64) bool
		want string
	}{
		{o.Trials, &r.Trials, whole, "trials are whole numbers from 0"},
		{o.Weights, &r.Weights, func(v float64) bool { return v >= 0 }, "a weight is at least 0"},
		{o.SE, &r.SE, func(v float64) bool { return v > 0 }, "a standard error is above 0"},
		{o.Lower, &r.Lower, finite, ""},
		{o.Above, &r.Above, finite, ""},
	} {
		if a.of.None() || r.Y == nil && !s.complete(a.of) {
			continue
		}
		v, err := s.number(a.of)
		if err != nil {
			return err
		}
		*a.to = v.full(s.t.Len())
		for i, x := range *a.to {
			if !a.ok(x) {
				return cell(i, a.of, number(x), a.want)
			}
		}
	}
	if !o.Censored.None() && (r.Y != nil || s.complete(o.Censored)) {
		if r.Censored, err = s.censored(o.Censored); err != nil {
			return err
		}
	}
	if !o.Upper.None() && (r.Y != nil || s.complete(o.Upper)) {
		if r.Upper, err = s.upper(o.Upper, r.Censored); err != nil {
			return err
		}
	}
	return s.consistent(r)
}

func whole(v float64) bool { return v >= 0 && v == math.Trunc(v) }

// upper reads the ends of intervals. A column may lack them in rows without an interval; that is NaN.
func (s *source) upper(e Expr, censored []int) ([]float64, error) {
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
	v, err := s.number(e)
	return v.full(s.t.Len()), err
}

// complete says whether the table has all columns of an expression.
func (s *source) complete(e Expr) bool {
	for _, c := range e.columns(nil) {
		if !s.has(Of(c)) {
			return false
		}
	}
	return true
}

func (s *source) response(e Expr) ([]float64, error) {
	if s.m.Outcome == nil {
		v, err := s.number(e)
		return v.full(s.t.Len()), err
	}
	c, err := s.factor(e)
	if err != nil {
		return nil, err
	}
	to := matched(c.levels, s.m.Outcome)
	out := make([]float64, len(c.of))
	for i, code := range c.of {
		if to[code] < 0 {
			return nil, cell(i, e, c.levels[code], "the outcome does not have this level in the training data: it has "+
				list(s.m.Outcome))
		}
		out[i] = float64(to[code])
	}
	return out, nil
}

// censored reads the codes of cens(c).
func (s *source) censored(e Expr) ([]int, error) {
	const want = "censoring is -1 or left, 0 or none, 1 or right, 2 or interval"
	factor, err := s.isFactor(e)
	if err != nil {
		return nil, err
	}
	out := make([]int, s.t.Len())
	if !factor {
		v, err := s.numeric(e)
		for i, x := range v.x {
			if out[i] = int(x); x != float64(out[i]) || out[i] < -1 || out[i] > 2 {
				return nil, cell(i, e, number(x), want)
			}
		}
		return out, err
	}
	c, err := s.factor(e)
	if err != nil {
		return nil, err
	}
	codes := map[string]int{"left": -1, "none": 0, "right": 1, "interval": 2, "-1": -1, "0": 0, "1": 1, "2": 2}
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
	o := s.f.Outcome
	wrong := func(i int, problem string) error {
		value := ""
		if r.Y != nil {
			value = number(r.Y[i])
		}
		return &data.Error{Row: i, Column: o.Value.plain(), Value: value, Problem: problem}
	}
	for i := range r.N {
		interval := r.Censored != nil && r.Censored[i] == 2
		switch {
		case r.Lower != nil && r.Above != nil && r.Lower[i] >= r.Above[i]:
			return wrong(i, "its lower bound "+number(r.Lower[i])+" is not below its upper bound "+number(r.Above[i]))
		case r.Y == nil:
		case r.Levels != nil && (r.Trials != nil || r.Censored != nil || r.Lower != nil || r.Above != nil ||
			r.SE != nil):
			return wrong(i, "it is a factor, which has no trials, censoring, truncation or standard errors")
		case r.Trials != nil && (r.Y[i] < 0 || r.Y[i] > r.Trials[i]):
			return wrong(i, "it must be from 0 to its number of trials, "+number(r.Trials[i]))
		case interval && r.Upper == nil:
			return wrong(i, "it is censored in an interval, whose end is missing: write cens(c, upper)")
		case interval && r.Upper[i] <= r.Y[i]:
			return wrong(i, "the end of its interval, "+number(r.Upper[i])+", must be above it")
		case r.Lower != nil && r.Y[i] < r.Lower[i]:
			return wrong(i, "it is below its lower bound, "+number(r.Lower[i]))
		case r.Above != nil && r.Y[i] > r.Above[i]:
			return wrong(i, "it is above its upper bound, "+number(r.Above[i]))
		}
	}
	return nil
}
