package formula

// outcome reads the left side: y, f(y), or y | cens(c) + trials(n) (Bürkner 2017, section 3.1).
func (x *expansion) outcome(e Expr) (Outcome, *Error) {
	e = e.bare()
	var o Outcome
	if e.Kind == Call && e.Name == "||" {
		return o, x.wrong(e.at, "the left side has one bar: y | trials(n)")
	}
	if e.Kind == Call && e.Name == "|" {
		if err := x.additions(e.Args[1], &o); err != nil {
			return o, err
		}
		e = e.Args[0]
	}
	if o.Value = e; e.Kind == Call && (e.Name == "mvbind" || e.Name == "cbind") {
		return o, x.wrong(e.at, "one formula has one outcome: write a formula for each; successes of trials are "+
			"y | trials(n)")
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
	names := map[string][]string{"trials": {"n"}, "weights": {"w"}, "se": {"s"}, "cens": {"c", "y2"},
		"trunc": {"lb", "ub"}}
	if e.Kind != Call || names[e.Name] == nil {
		return x.wrong(e.at, "right of the bar stand trials(n), weights(w), se(s), cens(c), cens(c, upper) and "+
			"trunc(lb = l, ub = u), added to each other")
	}
	args, err := x.arguments(e, names[e.Name]...)
	if err != nil {
		return err
	}
	for name, a := range args {
		if name == "c" && a.Kind != Column {
			return x.wrong(a.at, "cens() takes a column: -1 or left, 0 or none, 1 or right, 2 or interval")
		}
		if err := x.checkNumber(a); err != nil {
			return err
		}
	}
	set := func(to *Expr, name string) *Error {
		a := args[name]
		if a.None() {
			return nil
		}
		if !to.None() {
			return x.wrong(e.at, "%s() is there twice", e.Name)
		}
		a.Key, *to = "", a
		return nil
	}
	places := map[string]*Expr{"n": &o.Trials, "w": &o.Weights, "s": &o.SE, "c": &o.Censored, "y2": &o.Upper,
		"lb": &o.Lower, "ub": &o.Above}
	for _, name := range names[e.Name] {
		if err := set(places[name], name); err != nil {
			return err
		}
	}
	return nil
}
