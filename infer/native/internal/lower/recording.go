// Package lower records an evaluation ([Record]) and turns the recording into a plan ([Compile]): it gives every
// storage a value in single static assignment, looks through views, copies, concatenations and paddings, folds
// constants, and fuses what has one iteration space. It runs nothing: plans are for packages cc and vm.
package lower

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/thread"
)

// Recording is what one thread asked of libtorch during an evaluation.
type Recording struct {
	Calls    []*Call   // those that no other made, in order
	Storages []Storage // by number
	Known    []Tensor  // the point, then the batch
	Outputs  []Tensor  // values, gradients, aux
	Foreign  []Foreign
}

// Foreign is a call of a function in C, with one tensor that goes in and one that comes out. No operation writes
// either of them.
type Foreign struct {
	In, Out Tensor
	Address [2]float64 // whose bits are the addresses of the function, and of what it belongs to
}

// Call is one operation with those that it made itself.
type Call struct {
	Name, Overload string // "aten::add", "Tensor"
	Composite      bool   // written in terms of other operations alone, for autograd too
	Args, Results  []Arg
	Calls          []*Call
	Ended          bool // a call that failed has no results
}

// Storage is memory that tensors share.
type Storage struct {
	Bytes    int
	External bool   // it was there before the recording, or filled without an operation
	Data     []byte // the contents of an external one, unless it is that of a known tensor
	at       int    // where they are in the bytes of the recording
	used     bool   // the plan depends on them
}

// Kind is the type of an argument or result.
type Kind uint8

// What an Arg may be.
const (
	None Kind = iota
	Int
	Double
	Bool
	String
	TensorKind
	Undefined
	List
	Opaque // a tensor whose elements cannot be named; Text says why
	Other  // anything else; Text is its type
)

// Arg is an argument or a result.
type Arg struct {
	Kind   Kind
	Int    int64 // also of a Bool
	Double float64
	Text   string
	Tensor *Tensor
	List   []Arg
}

// Tensor says which elements of a storage a tensor has.
type Tensor struct {
	Storage, Offset int // in elements
	Type            Type
	Device          int // 0 is main memory
	Wrapped         bool
	Sizes, Strides  []int
}

// Type is libtorch's number of an element type.
type Type int

// The element types that a plan can hold.
const (
	Uint8   Type = 0
	Int8    Type = 1
	Int16   Type = 2
	Int32   Type = 3
	Int64   Type = 4
	Float32 Type = 6
	Float64 Type = 7
	Boolean Type = 11
)

// String is the name of the type.
func (t Type) String() string {
	names := map[Type]string{
		Uint8: "uint8", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64", 5: "float16",
		Float32: "float32", Float64: "float64", 8: "complex32", 9: "complex64", 10: "complex128", Boolean: "bool",
		15: "bfloat16",
	}
	if n, ok := names[t]; ok {
		return n
	}
	return fmt.Sprintf("type %d", int(t))
}

// size is the number of bytes of an element; 0 for a type that a plan cannot hold.
func (t Type) size() int {
	switch t {
	case Uint8, Int8, Boolean:
		return 1
	case Int16:
		return 2
	case Int32, Float32:
		return 4
	case Int64, Float64:
		return 8
	}
	return 0
}

// Refusal is why an evaluation is no plan.
type Refusal struct {
	Op     string // the operation, where there is one
	Site   string // of the model, where that is known
	Reason string
}

// Error names the operation and the reason.
func (r *Refusal) Error() string {
	at := strings.TrimPrefix(r.Op, "aten::")
	if r.Site != "" {
		at = strings.TrimPrefix(at+" "+r.Site, " ")
	}
	if at == "" {
		return r.Reason
	}
	return at + ": " + r.Reason
}

// mark is the text of a mark that a recording passes; "" where the call is none.
func (c *Call) mark() string {
	if c.Name != "aten::empty" || len(c.Args) == 0 {
		return ""
	}
	sizes := c.Args[0].List
	if len(sizes) != 3 || sizes[0].Int != thread.MarkSize || sizes[1].Int != 0 {
		return ""
	}
	return thread.Marked(int64(sizes[2].Int))
}

// refuse ends the lowering; the exported functions return the error.
func refuse(format string, args ...any) { panic(&Refusal{Reason: fmt.Sprintf(format, args...)}) }

// recovered turns a refusal into an error.
func recovered(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Refusal:
		*err = r
	default:
		panic(r)
	}
}
