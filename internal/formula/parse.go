package formula

import "fmt"

// parser reads expressions of tokens, by binding strengths (Pratt 1973).
type parser struct {
	text  string
	words []token
	depth int
}

const deepest = 100 // parentheses, calls and operators to the right that stand in each other

func (p *parser) next() token { return p.words[0] }

func (p *parser) take() token {
	t := p.words[0]
	if t.kind != tokenEnd {
		p.words = p.words[1:]
	}
	return t
}

func (p *parser) wrong(at int, problem string, args ...any) *Error {
	return &Error{p.text, at, fmt.Sprintf(problem, args...)}
}

// expression reads one whose operators bind at least so strongly.
func (p *parser) expression(least int) (Expr, *Error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > deepest {
		return Expr{}, p.wrong(p.next().at, "more than %d parentheses stand in each other", deepest)
	}
	left, err := p.operand()
	if err != nil {
		return left, err
	}
	for {
		t := p.next()
		s := operators[t.text]
		if t.kind != tokenSign || s < max(least, 1) {
			return left, nil
		}
		p.take()
		above := s + 1
		if t.text == "^" {
			above = s
		}
		right, err := p.expression(above)
		if err != nil {
			return left, err
		}
		left = Expr{Kind: Call, Name: t.text, Args: []Expr{left, right}, at: t.at}
	}
}

// operand reads a name, a constant, a call, what parentheses hold, or what has a sign before it.
func (p *parser) operand() (Expr, *Error) {
	t := p.take()
	switch {
	case t.kind == tokenNumber:
		return Expr{Kind: Number, Value: t.value, at: t.at}, nil
	case t.kind == tokenText:
		return Expr{Kind: Text, Name: t.text, at: t.at}, nil
	case t.kind == tokenName && p.next().kind == tokenSign && p.next().text == "(" && t.value == 0:
		return p.call(t)
	case t.kind == tokenName && t.value == 0 && (t.text == "TRUE" || t.text == "FALSE"):
		e := Expr{Kind: Flag, at: t.at}
		if t.text == "TRUE" {
			e.Value = 1
		}
		return e, nil
	case t.kind == tokenName && t.value == 0 && t.text == ".":
		return Expr{}, p.wrong(t.at, "a point for all other columns is not read: name them")
	case t.kind == tokenName:
		return Expr{Kind: Column, Name: t.text, at: t.at}, nil
	case t.kind == tokenSign && (t.text == "-" || t.text == "+"):
		inner, err := p.expression(negation)
		if err != nil || t.text == "+" {
			return inner, err
		}
		return Expr{Kind: Call, Name: "-", Args: []Expr{inner}, at: t.at}, nil
	case t.kind == tokenSign && t.text == "(":
		inner, err := p.expression(1)
		if err != nil {
			return inner, err
		}
		if err := p.closed(t); err != nil {
			return inner, err
		}
		return Expr{Kind: Call, Name: "(", Args: []Expr{inner}, at: t.at}, nil
	}
	return Expr{}, p.wrong(t.at, "expected a column, a function, a number or a parenthesis, not %s", t.describe())
}

// closed takes the parenthesis that closes another.
func (p *parser) closed(opened token) *Error {
	t := p.take()
	switch {
	case t.kind == tokenSign && t.text == ")":
		return nil
	case t.kind == tokenEnd:
		return p.wrong(opened.at, "this parenthesis is not closed: it needs a )")
	case t.kind == tokenSign && t.text == "~":
		return p.wrong(t.at, "a formula has one ~, between the outcome and the terms, outside parentheses")
	}
	return p.wrong(t.at, "expected an operator or ), not %s", t.describe())
}

// call reads the arguments of a function.
func (p *parser) call(name token) (Expr, *Error) {
	opened := p.take()
	e := Expr{Kind: Call, Name: name.text, at: name.at}
	if t := p.next(); t.kind == tokenSign && t.text == ")" {
		p.take()
		return e, nil
	}
	for {
		key := ""
		if t := p.next(); t.kind == tokenName && p.words[1].kind == tokenSign && p.words[1].text == "=" {
			key = t.text
			p.take()
			p.take()
		}
		arg, err := p.expression(1)
		if err != nil {
			return e, err
		}
		arg.Key = key
		e.Args = append(e.Args, arg)
		t := p.next()
		if t.kind == tokenSign && t.text == "," {
			p.take()
			continue
		}
		return e, p.closed(opened)
	}
}
