package formula

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Kind says what an [Expr] is.
type Kind int

// The kinds of expressions.
const (
	Column Kind = iota // a column of the table, by its name
	Number             // a number
	Text               // a quoted text
	Flag               // TRUE or FALSE
	Call               // a function, or an operator, of its arguments
)

// Expr is an expression: a column, a constant, or a function of expressions. Make one with [Of], [Const] and [Apply];
// the zero Expr is none.
type Expr struct {
	Kind  Kind
	Name  string  // of the column, the function or the operator (+ - * / ^ :); the text of a Text
	Value float64 // of a Number; 1 for the Flag TRUE
	Key   string  // name of the argument that it is, as df in bs(x, df = 5); "" for one by its place
	Args  []Expr  // of a Call; a minus of one argument changes the sign
	at    int     // place in the text, from 1
}

// Of is a column of the table.
func Of(column string) Expr { return Expr{Kind: Column, Name: column} }

// Const is a number.
func Const(value float64) Expr { return Expr{Kind: Number, Value: value} }

// Apply is a function of arguments, for example Apply("log", Of("time")).
func Apply(function string, args ...Expr) Expr { return Expr{Kind: Call, Name: function, Args: args} }

// special says whether it is mo() or mi() of a column.
func (e Expr) special() bool { return e.Kind == Call && (e.Name == "mo" || e.Name == "mi") }

// None says that there is no expression.
func (e Expr) None() bool { return e.Kind == Column && e.Name == "" }

// String writes the expression as [Parse] reads it, with one form of spaces and as few parentheses as it needs.
func (e Expr) String() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

// operators have their binding strength, as in R: a larger one binds its operands first.
var operators = map[string]int{"|": 2, "||": 2, "+": 3, "-": 3, "*": 4, "/": 4, "%in%": 5, ":": 6, "^": 8}

// negation is the binding strength of a minus before its operand.
const negation = 7

// strength is the binding strength of the outermost operator; that of what has none is large.
func (e Expr) strength() int {
	if e.Kind == Call && len(e.Args) == 2 && operators[e.Name] > 0 {
		return operators[e.Name]
	}
	if e.Kind == Call && len(e.Args) == 1 && e.Name == "-" {
		return negation
	}
	if e.Kind == Number && (e.Value < 0 || strings.HasPrefix(number(e.Value), "-")) {
		return negation
	}
	return 9
}

func (e Expr) write(b *strings.Builder) {
	switch e.Kind {
	case Column:
		b.WriteString(quoted(e.Name))
	case Number:
		b.WriteString(number(e.Value))
	case Text:
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e.Name) + `"`)
	case Flag:
		b.WriteString(map[bool]string{true: "TRUE", false: "FALSE"}[e.Value != 0])
	case Call:
		e.writeCall(b)
	}
}

func (e Expr) writeCall(b *strings.Builder) {
	s := e.strength()
	switch {
	case s == negation:
		b.WriteByte('-')
		e.Args[0].inside(b, e.Args[0].strength() < s)
	case s < 9:
		// A power groups from the right, all others from the left.
		e.Args[0].inside(b, e.Args[0].strength() < s || e.Name == "^" && e.Args[0].strength() == s)
		if space := e.Name == ":" || e.Name == "^"; space {
			b.WriteString(e.Name)
		} else {
			b.WriteString(" " + e.Name + " ")
		}
		e.Args[1].inside(b, e.Args[1].strength() < s || e.Name != "^" && e.Args[1].strength() == s)
	default:
		b.WriteString(e.Name + "(")
		for i, a := range e.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			if a.Key != "" {
				b.WriteString(a.Key + " = ")
			}
			a.write(b)
		}
		b.WriteByte(')')
	}
}

func (e Expr) inside(b *strings.Builder, parentheses bool) {
	if parentheses {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	e.write(b)
}

// number writes a number, without an exponent where it needs few digits.
func number(v float64) string {
	if size := math.Abs(v); size >= 1e-4 && size < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// quoted is a name as a formula has it: in backquotes, where it is none otherwise.
func quoted(name string) string {
	plain := name != "TRUE" && name != "FALSE"
	for i, r := range name {
		plain = plain && inName(r, i == 0)
	}
	if plain && !(len(name) > 1 && name[0] == '.' && unicode.IsDigit(rune(name[1]))) && name != "." {
		return name
	}
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// inName says whether a rune may be in a name without backquotes.
func inName(r rune, first bool) bool {
	return unicode.IsLetter(r) || r == '.' || !first && (r == '_' || unicode.IsDigit(r) || unicode.IsMark(r))
}

// columns adds the columns of the table that an expression reads, each once.
func (e Expr) columns(to []string) []string {
	if e.Kind == Column && e.Name != "" && !slices.Contains(to, e.Name) {
		return append(to, e.Name)
	}
	for _, a := range e.Args {
		to = a.columns(to)
	}
	return to
}

// bare is an expression without the parentheses around it and in it, which its tree does not need.
func (e Expr) bare() Expr {
	if e.Kind == Call && e.Name == "(" {
		inner := e.Args[0].bare()
		inner.Key = e.Key
		return inner
	}
	args := make([]Expr, len(e.Args))
	for i, a := range e.Args {
		args[i] = a.bare()
	}
	if e.Args = args; len(args) == 0 {
		e.Args = nil
	}
	return e
}
