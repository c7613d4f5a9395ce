package curvature

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// problem is a request whose point, batch and options have been checked.
type problem struct {
	p         infer.Params
	b         infer.Batch
	d, n      int // n is the longest tensor of a batch that is unsized
	dtype     gotch.DType
	device    gotch.Device
	bytes     int // of a number
	memory    int
	field     string // that allows the memory
	normalize bool
	tables    *tables // nil for none
	separate  bool    // the outer density has been seen to take each datum alone
	unsized   error   // why the batch has no number of data
}

// solve checks a request and runs f, which may panic with errors that torch.Do returns, in a scope that records
// gradients. What f returns is kept. Where there is an error solve returns as many nils.
func solve(name string, results int, p infer.Params, b infer.Batch, o Options,
	f func(q *problem) []torch.Tensor) ([]torch.Tensor, error) {
	var out []torch.Tensor
	err := torch.Do(func(scope *torch.Scope) error {
		defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
		q := newProblem(p, b, o)
		if len(o.Tables) > 0 {
			if name != "FisherDiag" && name != "GGNDiag" {
				badField("Tables", o.Tables, "it is for FisherDiag and GGNDiag")
			}
			q.tables = newTables(p, b, o.Tables)
		}
		out = f(q)
		scope.Keep(out...)
		return nil
	})
	if err != nil {
		return make([]torch.Tensor, results), fmt.Errorf("curvature.%s: %w", name, err)
	}
	return out, nil
}

// solveOne is solve with one result.
func solveOne(name string, p infer.Params, b infer.Batch, o Options,
	f func(q *problem) torch.Tensor) (torch.Tensor, error) {
	out, err := solve(name, 1, p, b, o, func(q *problem) []torch.Tensor { return []torch.Tensor{f(q)} })
	return out[0], err
}

// badField panics with the error of a field of Options.
func badField(field string, value any, allowed string) {
	try(&infer.FieldError{Type: "curvature.Options", Field: field, Value: value, Allowed: allowed})
}

func newProblem(p infer.Params, b infer.Batch, o Options) *problem {
	if p.Layout == nil {
		fail("the params have no layout: %w", infer.ErrLayout)
	}
	shape, err := torch.Shape(p.Flat)
	if err != nil {
		fail("params: %w", err)
	}
	d := p.Layout.Dim()
	if len(shape) == 2 && shape[1] == d {
		fail("the params have shape %v, a chain axis: curvature is at a single point of shape [%d], so take one chain: %w",
			shape, d, infer.ErrLayout)
	}
	if len(shape) != 1 || shape[0] != d {
		fail("the params have shape %v for the layout %v, expected [%d]: %w", shape, p.Layout, d, infer.ErrLayout)
	}
	q := &problem{p: p, b: b, d: d, memory: o.Memory, field: o.MemoryField, normalize: o.Normalize,
		dtype: torch.Must(torch.DTypeOfTensor(p.Flat)), device: torch.Must(torch.DeviceOf(p.Flat))}
	if q.n, err = b.Size(); err != nil {
		several, longest := unsized(b)
		if !several {
			try(err)
		}
		q.n, q.unsized = longest, err
	}
	if q.dtype != gotch.Double && q.dtype != gotch.Float {
		fail("the params are %v, expected float64 or float32", q.dtype)
	}
	q.bytes = int(q.dtype.Size())
	if q.memory < 0 {
		badField("Memory", o.Memory, "at least 0 bytes, where 0 means 1 GiB")
	}
	if q.memory == 0 {
		q.memory = method.DefaultMemory
	}
	if q.field == "" {
		q.field = "curvature.Options.Memory"
	}
	return q
}

// unsized says that a batch does not count data: it is empty, for a log posterior that holds its data itself, it has a
// tensor of shape [], or its tensors have different first dimensions, as those of two plates have. A log posterior can
// take such a batch, a sum over its data cannot. longest is the largest first dimension.
func unsized(b infer.Batch) (yes bool, longest int) {
	shortest := int(math.MaxInt64)
	for _, t := range b {
		shape, err := torch.Shape(t)
		if err != nil || t == (torch.Tensor{}) {
			return false, 0 // which is another mistake
		}
		if len(shape) == 0 {
			yes = true
			continue
		}
		shortest, longest = min(shortest, shape[0]), max(longest, shape[0])
	}
	return yes || len(b) == 0 || shortest < longest, longest
}

// overData checks a request for a sum over the data: there must be data, and the function that it is of.
func (q *problem) overData(what string, given bool) {
	q.given(what, given)
	try(q.unsized)
}

// given checks that a function is not nil.
func (q *problem) given(what string, given bool) {
	if !given {
		try(errNil(what))
	}
}

// try panics with an error that torch.Do returns as it is.
func try(err error) {
	if err != nil {
		fail("%w", err)
	}
}

func errNil(what string) error { return fmt.Errorf("the %s is nil: %w", what, infer.ErrConfig) }

// like checks a tensor of the user's: its shape, and that it has the type and device of the params.
func (q *problem) like(what string, t torch.Tensor, want ...int) {
	try(like(what, t, want, "the params are", q.dtype, q.device))
}

// alike checks that a tensor has the type and the device of the params.
func (q *problem) alike(what string, t torch.Tensor) {
	try(alike(what, t, "the params are", q.dtype, q.device))
}

// like checks the shape, type and device of a tensor; whose are the type and device, as in "the params are".
func like(what string, t torch.Tensor, want []int, whose string, dtype gotch.DType, device gotch.Device) error {
	if t == (torch.Tensor{}) {
		return fmt.Errorf("%s is nil, expected shape %v", what, want)
	}
	shape, err := torch.Shape(t)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !slices.Equal(shape, want) {
		return fmt.Errorf("%s has shape %v, expected %v", what, shape, want)
	}
	return alike(what, t, whose, dtype, device)
}

func alike(what string, t torch.Tensor, whose string, dtype gotch.DType, device gotch.Device) error {
	if have, err := torch.DTypeOfTensor(t); err != nil {
		return err
	} else if have != dtype {
		return fmt.Errorf("%s is %v and %s %v: they must be of one type", what, have, whose, dtype)
	}
	if have, err := torch.DeviceOf(t); err != nil {
		return err
	} else if have != device {
		return fmt.Errorf("%s is on %v and %s on %v: they must be on one device", what, have, whose, device)
	}
	return nil
}

// returned checks what a function of the user's returned for n data: shape [n, ...], or [n] where flat. It is called
// inside a scope, mapped or not, and panics.
func (q *problem) returned(what string, t torch.Tensor, n int, flat bool) []int {
	shape := t.Shape()
	expected := fmt.Sprintf("[%d, ...]", n)
	if flat {
		expected = fmt.Sprintf("[%d]", n)
	}
	if len(shape) == 0 || shape[0] != n || flat && len(shape) != 1 {
		fail("%s returned shape %v for a batch of %d data, expected %s", what, shape, n, expected)
	}
	q.alike("what "+what+" returned", t)
	return shape
}

// tracked refuses what a function of the user's returned where it does not depend on its inputs.
func tracked(what, inputs string, t torch.Tensor) {
	if !torch.Must(t.T().KelvinDescribe()).RequiresGrad {
		fail("what %s returned %w (%s): it was computed without them, or with gradients switched off", what,
			torch.ErrNoGradient, inputs)
	}
}

// blockOf is the data from to from+rows of the batch.
func (q *problem) blockOf(from, rows int) infer.Batch {
	if rows == q.n {
		return q.b
	}
	b := infer.Batch{}
	for name, t := range q.b {
		b[name] = torch.Of(t.T().MustNarrow(0, int64(from), int64(rows), false))
	}
	return b
}

// at is θ at a flat vector, or a small point where there are tables, with its sites cut apart at once.
func (q *problem) at(flat torch.Tensor) infer.Params {
	layout := q.p.Layout
	if q.tables != nil {
		layout = q.tables.layout
	}
	return torch.Must(infer.Params{Layout: layout, Flat: flat}.Split())
}

// width is the numbers of a row of gradients.
func (q *problem) width() int {
	if q.tables != nil {
		return q.tables.layout.Dim()
	}
	return q.d
}

// addSquares adds Σ_r c_r g_r² to sum, [d], for the gradients of a block; c is 1 when nil.
func (q *problem) addSquares(sum torch.Tensor, g []torch.Tensor, rows int, c torch.Tensor) {
	switch {
	case q.tables != nil:
		q.tables.addSquares(sum, joined(g), rows, c)
	case len(g) == 1:
		addSquares(sum, g[0], rows, c)
	default:
		for i, s := range q.p.Layout.Sites {
			factor := g[i]
			if c != (torch.Tensor{}) {
				factor = factor.Mul(c)
			}
			sum.T().MustNarrow(0, int64(s.Offset), int64(s.Size), false).MustAddcmul_(factor.T(), g[i].T())
		}
	}
}

// eachRow evaluates f at as many copies of θ as a block has data, each with its datum as a batch of one. The
// copies are the rows of a leaf [rows, d], without memory of their own; out has shape [rows, ...]. One row is
// evaluated without a map, and without tables with its sites as leaves.
func (q *problem) eachRow(what string, block infer.Batch, rows int, flat bool,
	f func(infer.Params, infer.Batch) torch.Tensor) (l leaves, out torch.Tensor) {
	if rows == 1 && q.tables == nil && len(q.p.Layout.Sites) > 1 {
		l, out = q.singleRow(f, block)
		q.returned(what, out, 1, flat)
		tracked(what, "the params", out)
		return l, out
	}
	points := q.p.Flat.Expand(rows, q.d)
	if q.tables != nil {
		points, block = q.tables.rows(q.p.Flat, block, rows)
	}
	leaf := torch.Must(torch.Leaf(points))
	if rows == 1 {
		out = f(q.at(leaf.Reshape(q.width())), block)
		q.returned(what, out, 1, flat)
	} else {
		names, parts := ones(block)
		outs := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			z := f(q.at(in[0]), named(names, in[1:])).T()
			q.returned(what, torch.Of(z), 1, flat)
			return []torch.Tensor{torch.Of(z.MustSelect(0, 0, false))}, nil
		}, append([]torch.Tensor{leaf}, parts...), nil))
		out = outs[0]
	}
	tracked(what, "the params", out)
	return leaves{leaf}, out
}

// blocks calls f with one block of data after the other, of at most so many rows, each in a scope of its own. Their
// sizes differ by at most one, so that a block uses the memory of the one before.
func (q *problem) blocks(rows int, f func(from, rows int, b infer.Batch)) {
	from := 0
	for left := (q.n + rows - 1) / rows; left > 0; left-- {
		m := (q.n - from) / left
		inScope(func() { f(from, m, q.blockOf(from, m)) })
		from += m
	}
}

// inScope runs f in a scope of its own, within that of a request.
func inScope(f func()) {
	try(torch.Do(func(*torch.Scope) error {
		f()
		return nil
	}))
}

// zeros is a tensor of zeros in the type and on the device of the params.
func (q *problem) zeros(shape ...int) torch.Tensor {
	return torch.Of(ts.MustZeros(torch.Int64s(shape), q.dtype, q.device))
}

// summed finishes a sum over the data, in place: the mean where that was asked for, and an error where
// it is not finite.
func (q *problem) summed(what string, t torch.Tensor) torch.Tensor {
	if q.normalize {
		t.T().MustDivScalar_(ts.FloatScalar(float64(q.n)))
	}
	return finite(what, t)
}

// own is a tensor that shares no memory with others: a gradient may be a view of what it was made from, such as the
// user's v, or of one number for many.
func own(t torch.Tensor) torch.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: t}))
}

// finite refuses NaN and infinity: the sum of all numbers is finite only where they are, and takes no memory.
func finite(what string, t torch.Tensor) torch.Tensor {
	if sum := torch.Of(t.T().MustSum(t.T().DType(), false)).Item(); math.IsNaN(sum) || math.IsInf(sum, 0) {
		fail("%s is %w", what, infer.ErrNonFinite)
	}
	return t
}

// dense is what to use instead of a d x d matrix.
func dense(diag string) string {
	return "use " + diag + " for the diagonal, or the last layer alone by infer.Subspace"
}

// need refuses what does not fit. The count is a float64 because it may exceed an int64.
func (q *problem) need(what string, numbers float64, instead string) {
	try(method.CheckMemory(what, numbers*float64(q.bytes), q.memory, q.field, instead))
}

// matrix refuses a d x d matrix that does not fit.
func (q *problem) matrix(diag string) {
	q.need(fmt.Sprintf("a matrix of shape [%d, %d]", q.d, q.d), float64(q.d)*float64(q.d), dense(diag))
}

// largestBlock is the size in bytes of the gradients of a block in main memory. Larger ones are slower: the work of a
// row is then moving memory that no longer stays in the processor's caches. On a GPU a block is as large as
// Options.Memory allows.
const largestBlock = 4 << 20

// rows is the number of rows of a block: as many as fit beside what the result holds, at least 1 and at most most. A
// row takes as many numbers as given.
func (q *problem) rows(most int, result, row float64) int {
	fit := min(float64(most), (float64(q.memory)/float64(q.bytes)-result)/row)
	if q.device == torch.CPU {
		fit = min(fit, largestBlock/float64(q.width()*q.bytes))
	}
	return max(1, int(fit))
}
