package native

import (
	"cmp"
	"fmt"
	"os"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/linked"
)

// Register makes C functions that are linked into the program known by the digest of their text. The Go files that
// `kelvin compile` writes call it; nothing else needs to. [Compile] uses such a function where the model and the shapes
// of the batch are those that it was written for, and compares it with eager evaluation like all others.
func Register(digest string, prologue, main unsafe.Pointer) { cc.Register(digest, prologue, main) }

// write writes the C of a plan to where the options or the environment ask for it.
func write(p *ir.Plan, o Options) error {
	dir := cmp.Or(o.WriteTo, os.Getenv(linked.Variable))
	if dir == "" {
		return nil
	}
	if err := cc.Write(dir, p); err != nil {
		return fmt.Errorf("native: C to be linked: %w", err)
	}
	return nil
}
