// Package space says whether draws are named values or points of unconstrained space. The names and sizes of their
// sites do not tell: they are often the same.
package space

// Key is the attribute of draws that says it. Draws without it, as other programs make them, may be either.
const (
	Key           = "space"
	Named         = "named"         // values of the model's variables, as infer.Program.Draws gives them
	Unconstrained = "unconstrained" // points of unconstrained space, as infer.Program.Draws takes them
)

// described are draws; package draws uses this package.
type described interface {
	Attrs() map[string]string
	SetAttr(key, value string)
}

// Of is Named or Unconstrained, or empty where it is not known.
func Of(d described) string { return d.Attrs()[Key] }

// Tell gives named values the attributes of the draws that they were made of, and marks both. Where a program makes
// nothing of its draws they are both: same says so, and neither is marked.
func Tell(unconstrained, named described, same bool) {
	if same {
		named.SetAttr(Key, "")
		return
	}
	unconstrained.SetAttr(Key, Unconstrained)
	for key, value := range unconstrained.Attrs() {
		named.SetAttr(key, value)
	}
	named.SetAttr(Key, Named)
}

// Back maps named draws to unconstrained space: *draws.Draws of the program of an infer.Target, on an infer.Batch, to
// *draws.Draws. It is nil, without an error, for a program that is not of package ppl, which sets this.
var Back = func(program, named, batch any) (any, error) { return nil, nil }
