package native

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// planOf records a density at two points and makes a plan of it.
func planOf(s Source, x, y []float64, o Options) (*ir.Plan, error) {
	names := slices.Sorted(maps.Keys(s.Batch))
	source := lower.Source{Dim: s.Dim}
	for _, name := range names {
		source.Batch = append(source.Batch, lower.Named{Name: name, Tensor: s.Batch[name].T()})
	}
	source.Evaluate = func(x *ts.Tensor, tensors []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named,
		err error) {
		batch := make(map[string]torch.Tensor, len(names))
		for i, name := range names {
			batch[name] = torch.Of(tensors[i])
		}
		v, g, more, err := s.Evaluate(torch.Of(x), batch)
		for _, name := range slices.Sorted(maps.Keys(more)) {
			aux = append(aux, lower.Named{Name: name, Tensor: more[name].T()})
		}
		return raw.Pointers(v), raw.Pointers(g), aux, err
	}
	plan, err := lower.Compile(source, x, y, lower.Options{GradientOnly: o.ValueFree, ValueOnly: o.GradientFree})
	var r *lower.Refusal
	if errors.As(err, &r) {
		return nil, &refusal{r.Error()}
	}
	return plan, err
}

// compiled is a plan as C.
func compiled(p *ir.Plan, o Options, r *Report) (code, error) {
	program, info, err := cc.Compile(p, cc.Options{CacheDir: o.CacheDir})
	if n := cc.Registered(); errors.Is(err, cc.ErrNoCompiler) && n > 0 {
		err = fmt.Errorf("%w; none of the %d functions that are linked is of this model and these shapes", err, n)
	}
	if err != nil {
		return code{}, err
	}
	r.Compiler, r.Cached, r.Linked = info.Compiler.Version, info.Cached, info.Linked
	return code{prologue: program.Prologue, main: program.Main, close: func() { _ = program.Close() }}, nil
}

// interpreted is a plan on the virtual machine.
func interpreted(p *ir.Plan, _ Options, r *Report) (code, error) {
	program, err := vm.Compile(p)
	if err != nil {
		return code{}, err
	}
	r.Compiler, r.Linked = program.Variant(), false
	return code{prologue: program.Prologue(), main: program.Main(), self: program.Self(), work: program.Work(),
		close: program.Close}, nil
}

// Register makes C functions that are linked into the program known by the digest of their text. The Go files that
// `kelvin compile` writes call it; nothing else needs to. [Compile] uses such a function where the model and the shapes
// of the batch are those that it was written for, and compares it with eager evaluation like all others.
func Register(digest string, prologue, main unsafe.Pointer) { cc.Register(digest, prologue, main) }

// write writes the C of a plan to where the options or the environment ask for it.
func write(p *ir.Plan, o Options) error {
	dir := cmp.Or(o.WriteTo, os.Getenv(ccompiler.Variable))
	if dir == "" {
		return nil
	}
	if err := cc.Write(dir, p); err != nil {
		return fmt.Errorf("native: C to be linked: %w", err)
	}
	return nil
}
