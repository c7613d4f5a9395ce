package lower

import (
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// lowering goes through a recording.
type lowering struct {
	calc
	rec    *Recording
	images []*image
	inputs []ir.Slot
	dim    int
	op     string // the operation at hand
	site   string // of the model, that the last mark before it names
	origin []origin
}

// origin is where a storage comes from: whether it was first met as an argument, or as a result.
type origin uint8

const (
	unseen origin = iota
	before        // it was there before the evaluation, or was filled without an operation
	made
)

// meet notes the origin of the storages of some tensors.
func (l *lowering) meet(ts []*Tensor, o origin) {
	for _, t := range ts {
		if l.origin[t.Storage] == unseen {
			l.origin[t.Storage] = o
		}
	}
}

// rule lowers one operation whole.
type rule func(l *lowering, c *Call)

// views share the storage of their first argument: the recording of their results says all.
var views = set("alias", "as_strided", "detach", "diagonal", "expand", "expand_as", "lift_fresh", "movedim", "moveaxis",
	"narrow", "permute", "select", "slice", "squeeze", "split", "split_with_sizes", "t", "transpose", "swapaxes",
	"unbind", "unsqueeze", "unfold", "view", "view_as", "chunk", "flatten", "reshape", "_reshape_alias", "ravel",
	"reshape_as", "unflatten", "numpy_T", "mT", "mH", "adjoint", "matrix_H", "_unsafe_view", "unsafe_split",
	"unsafe_chunk", "unsafe_split_with_sizes", "tensor_split", "contiguous", "to", "type_as", "broadcast_to",
	"_conj", "real",
	"resolve_conj", "resolve_neg", "expand_copy", "squeeze_", "unsqueeze_", "detach_", "requires_grad_", "atleast_1d",
	"atleast_2d", "positive", "_autocast_to_full_precision", "double", "diagonal_copy")

// reads take numbers out of tensors.
var reads = set("_local_scalar_dense", "item", "is_nonzero", "nonzero", "nonzero_numpy", "argwhere", "_unique",
	"_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "masked_select", "equal",
	"allclose", "kelvin::read",
	"count_nonzero")

// draws have random results.
var draws = set("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_",
	"bernoulli", "bernoulli_", "uniform_", "random_", "exponential_", "geometric_", "log_normal_", "cauchy_",
	"multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "dropout", "dropout_",
	"native_dropout", "rrelu",
	"kelvin::random", "kelvin::sample")

func set(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// walk lowers a call: as a whole where there is a rule, else by the calls it makes where it is made of them alone.
func (l *lowering) walk(c *Call) {
	name := strings.TrimPrefix(c.Name, "aten::")
	l.op = c.Name
	if at := c.mark(); at != "" {
		l.site, l.g.site = at, at
		return
	}
	l.meet(tensors(c.Args), before)
	defer l.meet(tensors(c.Results), made)
	if !c.Ended {
		refuse("it failed")
	}
	switch {
	case draws[name]:
		refuse("it draws random numbers")
	case reads[name]:
		l.reading(c)
		return
	case name == "resize_" || name == "set_" || name == "result_type":
		return // inside an operation that is not understood; nothing is written
	case name == "_linalg_check_errors":
		return // where libtorch fails because a factor does not exist, a plan has NaN
	case opaque(c.Args) || opaque(c.Results):
		if len(c.Calls) == 0 {
			l.poison(c, "a tensor is "+why(c))
		}
		for _, inner := range c.Calls {
			l.walk(inner)
		}
		return
	case views[name] && shares(c):
		return
	case name == "kelvin::write":
		refuse("it writes numbers into a tensor without an operation")
	}
	f := rules[name]
	if f == nil && strings.HasSuffix(name, "_") {
		f = rules[strings.TrimSuffix(name, "_")]
	}
	if f != nil {
		l.meet(tensors(c.Results), made)
		f(l, c)
		return
	}
	// A step of a backward pass is made of operations alone: libtorch's own, and those of Kelvin's C++.
	step := strings.HasPrefix(c.Name, "autograd::engine::") || strings.HasPrefix(c.Name, "torch::autograd::")
	if !step && (!c.Composite || len(c.Calls) == 0) {
		l.poison(c, "the operation is not understood")
		return
	}
	for _, inner := range c.Calls {
		l.walk(inner)
	}
}

// reading allows to read numbers that are the same in every evaluation, and those that a function in C gets.
func (l *lowering) reading(c *Call) {
	for _, a := range tensors(c.Args) {
		if slices.ContainsFunc(l.rec.Foreign, func(f Foreign) bool { return f.In.Storage == a.Storage }) {
			continue
		}
		for _, e := range l.read(a).cells {
			if e.ref.v.kind != constant || e.ref.ix != nil {
				refuse("it reads a value: what the program does then could depend on the parameters or on the batch")
			}
		}
	}
	if strings.HasPrefix(c.Name, "aten::") {
		l.poison(c, "the operation is not understood")
	}
}

// poison makes what an operation writes unreadable.
func (l *lowering) poison(c *Call, reason string) {
	written := tensors(c.Results)
	if strings.HasSuffix(c.Name, "_") || strings.Contains(c.Overload, "out") || !strings.HasPrefix(c.Name, "aten::") {
		written = append(written, tensors(c.Args)...)
	}
	for _, t := range written {
		l.images[t.Storage] = &image{typ: t.Type, poison: &Refusal{Op: c.Name, Site: l.site, Reason: reason}}
	}
}

// tensors are all tensors in a list of arguments.
func tensors(args []Arg) []*Tensor {
	var out []*Tensor
	for _, a := range args {
		switch a.Kind {
		case TensorKind:
			out = append(out, a.Tensor)
		case List:
			out = append(out, tensors(a.List)...)
		}
	}
	return out
}

func opaque(args []Arg) bool {
	return slices.ContainsFunc(args, func(a Arg) bool { return a.Kind == Opaque || a.Kind == List && opaque(a.List) })
}

// why is what makes a call's first opaque tensor so.
func why(c *Call) string {
	for _, a := range append(slices.Clone(c.Args), c.Results...) {
		if a.Kind == Opaque {
			return a.Text
		}
	}
	return "opaque"
}

// shares says whether every result lies in the storage of the first argument.
func shares(c *Call) bool {
	results := tensors(c.Results)
	if len(results) == 0 || len(c.Args) == 0 || c.Args[0].Kind != TensorKind {
		return false
	}
	for _, r := range results {
		if r.Storage != c.Args[0].Tensor.Storage || r.Type != c.Args[0].Tensor.Type {
			return false
		}
	}
	return true
}

// known is the value of the point (0) or of a tensor of the batch.
func (l *lowering) known(k int) *value {
	if k == 0 {
		return l.g.add(value{kind: point, stage: perPoint, n: l.dim, sizes: []int{l.dim}})
	}
	n := 1
	for _, s := range l.inputs[k-1].Shape {
		n *= int(s)
	}
	return l.g.add(value{kind: input, stage: perRun, n: n, sizes: []int{n}, slot: k - 1, elem: l.inputs[k-1].Elem})
}

// in is argument i as an array: a tensor or a number.
func (l *lowering) in(c *Call, i int) array {
	if i >= len(c.Args) {
		refuse("it has %d arguments", len(c.Args))
	}
	switch a := c.Args[i]; a.Kind {
	case TensorKind:
		return l.read(a.Tensor)
	case Double:
		return l.num(a.Double)
	case Int, Bool:
		return l.num(float64(a.Int))
	default:
		refuse("argument %d is no tensor and no number", i)
	}
	return array{}
}

// exact says whether a plan computes as libtorch does: arithmetic in float32 or in short integers rounds or wraps.
func (t Type) exact() bool { return t == Float64 || t == Int64 || t == Int32 || t == Boolean }

// out gives result i its elements.
func (l *lowering) out(c *Call, i int, a array) {
	t := c.result(i)
	if t == nil {
		return
	}
	if !t.Type.exact() {
		refuse("it computes in %v: an evaluation in float64 is understood", t.Type)
	}
	l.write(t, a)
}

// move is out for what is only moved: any type will do that the argument has too.
func (l *lowering) move(c *Call, a array, from ...*Tensor) {
	t := c.result(0)
	if t == nil {
		return
	}
	for _, f := range from {
		if f.Type != t.Type {
			l.out(c, 0, l.convert(a, f.Type, t.Type))
			return
		}
	}
	l.write(t, a)
}

// result is the tensor that an operation returned.
func (c *Call) result(i int) *Tensor {
	if i >= len(c.Results) || c.Results[i].Kind != TensorKind {
		return nil
	}
	return c.Results[i].Tensor
}

// convert changes the type of elements.
func (l *lowering) convert(a array, from, to Type) array {
	whole := func(t Type) bool { return t <= Int64 }
	switch {
	case to == Boolean && from != Boolean:
		return l.of(ir.Ne, a, l.num(0))
	case whole(to) && (from == Float64 || from == Float32):
		return l.of(ir.Trunc, a)
	}
	return a
}

// Arguments that are numbers.

func (c *Call) has(i int) bool {
	return i < len(c.Args) && c.Args[i].Kind != None && c.Args[i].Kind != Undefined
}

func (c *Call) number(i int, otherwise float64) float64 {
	if !c.has(i) {
		return otherwise
	}
	switch a := c.Args[i]; a.Kind {
	case Double:
		return a.Double
	case Int, Bool:
		return float64(a.Int)
	}
	refuse("argument %d is no number", i)
	return 0
}

func (c *Call) int(i, otherwise int) int {
	if !c.has(i) {
		return otherwise
	}
	if k := c.Args[i].Kind; k != Int && k != Bool {
		refuse("argument %d is no whole number", i)
	}
	return int(c.Args[i].Int)
}

func (c *Call) flag(i int) bool { return c.int(i, 0) != 0 }

// ints is a list of whole numbers, or one; nil for none.
func (c *Call) ints(i int) []int {
	if !c.has(i) {
		return nil
	}
	if c.Args[i].Kind == Int {
		return []int{int(c.Args[i].Int)}
	}
	var out []int
	for _, a := range c.Args[i].List {
		out = append(out, int(a.Int))
	}
	return out
}
