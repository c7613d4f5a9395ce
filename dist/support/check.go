package support

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Error says what is outside a support, or which argument of a constructor is wrong.
type Error struct {
	What    string // "element [1 2] of shape [2 3]"
	Value   string
	Allowed string
}

// Error names the element, its value and what is allowed.
func (e *Error) Error() string { return fmt.Sprintf("%s is %s: %s", e.What, e.Value, e.Allowed) }

// RecoverAsError makes the panic of a model an error of the function that called it.
func (e *Error) RecoverAsError() {}

// Sums and lengths may be off by this much, which covers the rounding of a softmax over thousands of terms.
const (
	tolerance   = 1e-6
	tolerance32 = 1e-4
)

// checker is one check of values against a support.
type checker struct {
	s      Support
	values []float64
	shape  []int
	tol    float64
}

// checkValues finds the first element, vector or matrix outside.
func (s Support) checkValues(values []float64, shape []int, dtype gotch.DType) error {
	c := checker{s, values, shape, tolerance}
	if dtype == gotch.Float || dtype == gotch.Half || dtype == gotch.BFloat16 {
		c.tol = tolerance32
	}
	if need := s.EventDims(); len(shape) < need {
		return &Error{"the shape of the value", fmt.Sprint(shape),
			fmt.Sprintf("a value of this kind, %s, has at least %d dimensions", s, need)}
	}
	if err := c.broadcast(s.EventDims() - s.Extra); err != nil {
		return err
	}
	switch s.EventDims() - s.Extra {
	case 1:
		return c.blocks(1, "vector")
	case 2:
		return c.blocks(2, "matrix")
	}
	return c.scalars()
}

// broadcast repeats the values for each of the ends that the support has, where n dimensions are of one value.
func (c *checker) broadcast(n int) error {
	outer := c.shape[:len(c.shape)-n]
	for _, end := range []torch.Tensor{c.s.Low, c.s.High} {
		shape, ok := operand.Broadcast(outer, end.Shape())
		if !ok {
			return &Error{"the shape of the value", fmt.Sprint(c.shape), fmt.Sprintf("an end of the support has shape %v, "+
				"which does not broadcast to it", end.Shape())}
		}
		outer = shape
	}
	shape := append(slices.Clone(outer), c.shape[len(c.shape)-n:]...)
	if slices.Equal(shape, c.shape) {
		return nil
	}
	return torch.Do(func(*torch.Scope) error {
		t, err := torch.FromSlice(c.values, c.shape...)
		if err == nil {
			c.values, c.shape = t.Expand(shape...).Values(), shape
		}
		return err
	})
}

// scalars checks one element after the other.
func (c checker) scalars() error {
	if c.s.Kind == KindPoint && !c.s.Closed {
		return nil
	}
	low, err := spread(c.s.Low, c.shape)
	if err != nil {
		return err
	}
	high, err := spread(c.s.High, c.shape)
	if err != nil {
		return err
	}
	for i, x := range c.values {
		from, to := low(i), high(i)
		if c.s.Kind == KindPoint && c.tol == tolerance32 {
			// As exact as the value's type, of which float32 is the finest here.
			from, x = float64(float32(from)), float64(float32(x))
		}
		if !c.s.holds(x, from, to) {
			here := c.s
			here.Low, here.High = torch.Of(from), torch.Of(to)
			return &Error{place("element", i, c.shape), fmt.Sprint(x), "it must be " + here.String()}
		}
	}
	return nil
}

// holds says whether a support of numbers with these ends has x.
func (s Support) holds(x, low, high float64) bool {
	if s.Kind == KindPoint {
		return x == low
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return s.Missing && math.IsNaN(x)
	}
	switch s.Kind {
	case KindInterval:
		return low < x && x < high || s.Closed && (x == low || x == high)
	case KindInteger:
		return x == math.Floor(x) && low <= x && x <= high
	case KindBoolean:
		return x == 0 || x == 1
	}
	return true
}

// blocks checks the vectors or matrices in the last n dimensions.
func (c checker) blocks(n int, word string) error {
	outer, inner := c.shape[:len(c.shape)-n], c.shape[len(c.shape)-n:]
	if n == 2 && inner[0] != inner[1] {
		return &Error{"the shape of the value", fmt.Sprint(c.shape), "its matrices must be square"}
	}
	total, err := spread(c.s.High, outer)
	if err != nil {
		return err
	}
	size := inner[0]
	if n == 2 {
		size *= size
	}
	if size == 0 {
		return nil
	}
	for i := 0; i*size < len(c.values); i++ {
		here := c.s
		here.High = torch.Of(total(i))
		block := c.values[i*size : (i+1)*size]
		if why := here.fault(block, inner[0], c.tol); why != "" {
			return &Error{place("the "+word, i, outer), list(block), fmt.Sprintf("it must be %s: %s", here, why)}
		}
	}
	return nil
}

// fault is what is wrong with a vector or a k x k matrix; empty when nothing is.
func (s Support) fault(x []float64, k int, tol float64) string {
	at := func(i int) string { return fmt.Sprintf("element %d is %v", i, x[i]) }
	if len(x) > k {
		at = func(i int) string { return fmt.Sprintf("element [%d %d] is %v", i/k, i%k, x[i]) }
	}
	sum, squares, size := 0.0, 0.0, 0.0
	total, _ := s.High.Number()
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return at(i)
		}
		sum, squares, size = sum+v, squares+v*v, size+math.Abs(v)
	}
	switch s.Kind {
	case KindSimplex, KindCounts:
		for i, v := range x {
			if v < 0 || s.Kind == KindCounts && v != math.Floor(v) {
				return at(i)
			}
		}
		if s.Kind == KindSimplex && math.Abs(sum-1) > tol || s.Kind == KindCounts && sum != total {
			return fmt.Sprintf("its sum is %v", sum)
		}
	case KindOrdered, KindPositiveOrdered:
		for i, v := range x {
			if i == 0 && s.Kind == KindPositiveOrdered && v <= 0 {
				return at(0)
			}
			if i > 0 && v <= x[i-1] {
				return fmt.Sprintf("%s, and %v comes before it", at(i), x[i-1])
			}
		}
	case KindZeroSum:
		if s.Groups != nil {
			return groupFault(x, *s.Groups, tol)
		}
		if math.Abs(sum) > tol*max(1, size) {
			return fmt.Sprintf("its sum is %v", sum)
		}
	case KindUnitVector:
		if math.Abs(squares-1) > tol {
			return fmt.Sprintf("its length is %v", math.Sqrt(squares))
		}
	case KindLowerCholesky, KindCorrCholesky:
		for i := 0; i < k; i++ {
			length := 0.0
			for j, v := range x[i*k : (i+1)*k] {
				if j > i && v != 0 || j == i && v <= 0 {
					return at(i*k + j)
				}
				length += v * v
			}
			if s.Kind == KindCorrCholesky && math.Abs(length-1) > tol {
				return fmt.Sprintf("row %d has length %v", i, math.Sqrt(length))
			}
		}
	case KindPositiveDefinite:
		return indefinite(x, k, tol)
	}
	return ""
}

// groupFault is what is wrong with a vector whose groups have sum 0.
func groupFault(x []float64, groups []int, tol float64) string {
	if len(x) != len(groups) {
		return fmt.Sprintf("it has %d elements, and %d are in groups", len(x), len(groups))
	}
	sums, sizes := map[int]float64{}, map[int]float64{}
	for i, g := range groups {
		sums[g] += x[i]
		sizes[g] += math.Abs(x[i])
	}
	for i, g := range groups {
		if g >= 0 && math.Abs(sums[g]) > tol*max(1, sizes[g]) {
			return fmt.Sprintf("the sum of the group of element %d is %v", i, sums[g])
		}
	}
	return ""
}

// indefinite is what keeps a k x k matrix from being symmetric and positive definite: Cholesky's algorithm finds it.
func indefinite(x []float64, k int, tol float64) string {
	for i := 0; i < k; i++ {
		for j := 0; j < i; j++ {
			a, b := x[i*k+j], x[j*k+i]
			if math.Abs(a-b) > tol*math.Sqrt(math.Abs(x[i*k+i]*x[j*k+j])) {
				return fmt.Sprintf("element [%d %d] is %v and element [%d %d] is %v", i, j, a, j, i, b)
			}
		}
	}
	l := make([]float64, k*k)
	for i := 0; i < k; i++ {
		for j := 0; j <= i; j++ {
			v := x[i*k+j]
			for m := 0; m < j; m++ {
				v -= l[i*k+m] * l[j*k+m]
			}
			if i != j {
				l[i*k+j] = v / l[j*k+j]
				continue
			}
			if v <= 0 {
				return fmt.Sprintf("its leading %d x %d block is not positive definite", i+1, i+1)
			}
			l[i*k+i] = math.Sqrt(v)
		}
	}
	return ""
}

// spread gives the i-th value of a number or tensor that is broadcast to a shape.
func spread(t torch.Tensor, shape []int) (func(i int) float64, error) {
	if c, ok := t.Number(); ok {
		return func(int) float64 { return c }, nil
	}
	var values []float64
	err := torch.Do(func(*torch.Scope) error {
		values = t.Expand(shape...).Values()
		return nil
	})
	if err != nil {
		have, _ := torch.Shape(t)
		return nil, &Error{"the shape of the value", fmt.Sprint(shape), fmt.Sprintf("an end of the support has shape %v, "+
			"which does not broadcast to it", have)}
	}
	return func(i int) float64 { return values[i] }, nil
}

// place names the i-th element of a shape by its index.
func place(word string, i int, shape []int) string {
	if len(shape) == 0 {
		return strings.Replace(word, "element", "the value", 1)
	}
	index := make([]int, len(shape))
	rest := i
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], rest = rest%shape[d], rest/shape[d]
	}
	if word == "element" {
		return fmt.Sprintf("element %v of shape %v", index, shape)
	}
	return fmt.Sprintf("%s at %v of %v", word, index, shape)
}

// list shows the first numbers of a vector.
func list(x []float64) string {
	if len(x) <= 9 {
		return fmt.Sprint(x)
	}
	return strings.TrimSuffix(fmt.Sprint(x[:8]), "]") + fmt.Sprintf(" … %d in all]", len(x))
}

// interval is a KindInterval in words.
func (s Support) interval() string {
	low, high, from, to := s.words()
	switch {
	case from && to && s.Closed:
		return fmt.Sprintf("a number from %s to %s", low, high)
	case from && to:
		return fmt.Sprintf("a number between %s and %s", low, high)
	case from && s.Closed:
		return "a number of at least " + low
	case from:
		return "a number greater than " + low
	case to && s.Closed:
		return "a number of at most " + high
	case to:
		return "a number less than " + high
	}
	return "a real number"
}

// integers is a KindInteger in words.
func (s Support) integers() string {
	low, high, from, to := s.words()
	switch {
	case from && to:
		return fmt.Sprintf("a whole number from %s to %s", low, high)
	case from:
		return "a whole number of at least " + low
	case to:
		return "a whole number of at most " + high
	}
	return "a whole number"
}

// point is a KindPoint in words.
func (s Support) point() string {
	switch {
	case !s.Closed:
		return "a single value"
	}
	return word(s.Low, "its single value")
}

// counts is a KindCounts in words.
func (s Support) counts() string {
	return "a vector of whole numbers from 0 with sum " + word(s.High, "its total")
}

// word is an end as a number, or by name where it is a tensor.
func word(t torch.Tensor, name string) string {
	if c, ok := t.Number(); ok {
		return fmt.Sprint(c)
	}
	return name
}

// words are the ends of a support, and whether there are any.
func (s Support) words() (low, high string, from, to bool) {
	c, ok := s.Low.Number()
	from = !ok || !math.IsInf(c, -1)
	c, ok = s.High.Number()
	to = !ok || !math.IsInf(c, 1)
	return word(s.Low, "its low end"), word(s.High, "its high end"), from, to
}
