package formula

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
)

// Input is what a model reads of rows, by name: a number, Width numbers or, with Index, a place in each row.
type Input struct {
	Name   string
	Values []float64
	Width  int // 0 is one number, without a dimension
	Index  bool
}

// Numbers are what a linear predictor reads of rows, each with the suffix: "x", the common columns less their means;
// "offset"; "z0", ..., of the smooths, "z0_0", ..., and "z0_rest" of a product,
// "at0" and "by0" of a Gaussian process; and of the groups "g0_x0", ..., of each column that
// is not constant, "g0_index0" and "g0_weight0", ..., of each member.
func (p Part) Numbers(r *Rows) []Input {
	out := p.Design.numbers(r, p.Means)
	for i := range out {
		out[i].Name += p.Suffix
	}
	return out
}

func (d *Design) numbers(r *Rows, means []float64) (out []Input) {
	if k := len(d.names); k > 0 {
		x := slices.Clone(r.X)
		for i := range x {
			x[i] -= means[i%k]
		}
		out = append(out, Input{Name: "x", Values: x, Width: k})
	}
	if r.Offset != nil {
		out = append(out, Input{Name: "offset", Values: r.Offset})
	}
	for i, s := range d.Smooths() {
		out = append(out, s.numbers(i, r.Smooths[i])...)
	}
	for i, g := range d.groups {
		rows := r.Groups[i]
		for j, name := range g.Columns {
			if name != "Intercept" {
				out = append(out, Input{Name: fmt.Sprintf("g%d_x%d", i, j), Values: Every(rows.X, j, len(g.Columns))})
			}
		}
		index := make([]float64, len(rows.Index))
		for k, v := range rows.Index {
			index[k] = float64(v)
		}
		for j := range g.Members {
			out = append(out, Input{Name: fmt.Sprintf("g%d_index%d", i, j), Values: Every(index, j, g.Members), Index: true})
			if g.Members > 1 {
				out = append(out, Input{Name: fmt.Sprintf("g%d_weight%d", i, j), Values: Every(rows.Weights, j, g.Members)})
			}
		}
	}
	return out
}

// numbers are those of smooth i, of which z has the columns.
func (s SmoothDesign) numbers(i int, z []float64) (out []Input) {
	column := func(name string, j int, index bool) {
		out = append(out, Input{Name: name, Values: Every(z, j, s.Columns), Index: index})
	}
	switch s.Kind {
	case "product":
		for k, f := range s.Factors {
			column(fmt.Sprintf("z%d_%d", i, k), k, f.Levels != nil)
		}
		if s.Columns > len(s.Factors) {
			column(fmt.Sprintf("z%d_rest", i), s.Columns-1, false)
		}
	case "gp":
		column(fmt.Sprintf("at%d", i), 0, false)
		if s.Columns > 1 {
			column(fmt.Sprintf("by%d", i), 1, false)
		}
	default:
		out = append(out, Input{Name: fmt.Sprintf("z%d", i), Values: z, Width: s.Columns})
	}
	return out
}

// Every is column j of a matrix of k columns.
func Every(x []float64, j, k int) []float64 {
	out := make([]float64, 0, len(x)/k)
	for i := j; i < len(x); i += k {
		out = append(out, x[i])
	}
	return out
}

// Recipe makes the data of a prediction from rows, as a fitted regression read those of its training data.
type Recipe struct {
	Of map[string][]string `json:"columns"` // of a table, each with its levels; nil for numbers
	// Parts are the linear predictors, the mean's first.
	Parts  []Part `json:"predictors"`
	Bounds bool   `json:"bounds,omitempty"` // the outcome is truncated
	// Lowest is the first of ordered categories that are numbers, which an outcome is counted from.
	Lowest float64 `json:"lowest,omitempty"`
}

// Part is a linear predictor. What it reads has the suffix at the end of its name.
type Part struct {
	Suffix string    `json:"suffix,omitempty"`
	Design *Design   `json:"design"`
	Means  []float64 `json:"means,omitempty"` // of the common columns
	// Reach has the ends of each Gaussian process, by its place among the smooths.
	Reach map[int][2]float64 `json:"reach,omitempty"`
}

// saved is a recipe in a file, which no other design is.
type saved struct {
	Regression *Recipe `json:"regression"`
}

// Save writes the recipe.
func (r *Recipe) Save() ([]byte, error) { return json.Marshal(saved{r}) }

// Saved reads what [Recipe.Save] has written, and is nil for what else a design in a file may be.
func Saved(text []byte) (*Recipe, error) {
	var s saved
	if err := json.Unmarshal(text, &s); err != nil || s.Regression == nil {
		return nil, err
	}
	for _, p := range s.Regression.Parts {
		for i := range p.Reach {
			if p.Design != nil && (i < 0 || i >= len(p.Design.smooths)) {
				return nil, unreadable("there is no smooth %d", i)
			}
		}
		if p.Design == nil || len(p.Means) != len(p.Design.names) {
			return nil, unreadable("a predictor has none, or not the means of its columns")
		}
	}
	return s.Regression, nil
}

// Columns are those of a row.
func (r *Recipe) Columns() (out []string) {
	for name := range r.Of {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Outcomes are the columns that make the outcome.
func (r *Recipe) Outcomes() []string {
	if len(r.Parts) == 0 {
		return nil
	}
	return r.Parts[0].Design.Formula().Outcome.Value.columns(nil)
}

// Names are the columns that are numbers.
func (r *Recipe) Names() []string {
	return slices.DeleteFunc(r.Columns(), func(name string) bool { return r.Of[name] != nil })
}

// Levels are those of a factor, nil for numbers.
func (r *Recipe) Levels(column string) []string { return slices.Clone(r.Of[column]) }

// Data are the numbers of a table by name, "y" among them where the table has the outcome. A level that the training
// data do not have, a value that is missing and one that a function does not take are errors that name it.
func (r *Recipe) Data(t *data.Table) (map[string][]float64, error) {
	out := map[string][]float64{}
	for i, p := range r.Parts {
		rows, err := p.Design.Rows(t)
		if err != nil {
			return nil, err
		}
		for k, g := range p.Design.groups {
			if err := Unseen(g.Factor, rows.Groups[k].Unseen, ""); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(p.Within(rows), p.complete(rows)); err != nil {
			return nil, err
		}
		for _, n := range p.Numbers(rows) {
			out[n.Name] = n.Values
		}
		if i > 0 {
			continue
		}
		for key, v := range rows.Added {
			out[key] = v
		}
		if rows.Y != nil {
			out["y"] = each(rows.Y, func(y float64) float64 { return y - r.Lowest })
		}
		if r.Bounds {
			for key, end := range map[string]float64{"lower": math.Inf(-1), "above": math.Inf(1)} {
				if out[key] == nil {
					out[key] = slices.Repeat([]float64{end}, rows.N)
				}
			}
		}
	}
	return out, nil
}

// Within is an error for rows beyond a Gaussian process, where its functions are far from what they stand for.
func (p Part) Within(rows *Rows) error {
	for i, ends := range p.Reach {
		for row, v := range Every(rows.Smooths[i], 0, p.Design.smooths[i].width()) {
			if !(v >= ends[0] && v <= ends[1]) {
				return fmt.Errorf("row %d: %s is %g, and predictions of it reach from %g to %g", row+1, p.Design.smooths[i].name,
					v, ends[0], ends[1])
			}
		}
	}
	return nil
}

// complete is an error for missing values of mi(), which a recipe cannot draw.
func (p Part) complete(rows *Rows) error {
	for i, s := range p.Design.smooths {
		for k, f := range s.factors {
			z := Every(rows.Smooths[i], k, s.width())
			if row := slices.IndexFunc(z, math.IsNaN); row >= 0 && f.levels == nil {
				return fmt.Errorf("row %d: %s is missing", row+1, f.expr.Args[0].plain())
			}
		}
	}
	return nil
}

// Unseen is the error for levels of a group that the training data do not have, with what to do; nil for none.
func Unseen(group string, levels []string, advice string) error {
	if len(levels) == 0 {
		return nil
	}
	most := min(len(levels), 5)
	text := `"` + strings.Join(levels[:most], `", "`) + `"`
	if more := len(levels) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("group %s: the training data do not have the levels %s%s", group, text, advice)
}
