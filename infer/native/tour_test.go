package native_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

var update = flag.Bool("update", false, "write the stages of docs/native.md anew")

// logPosterior is that of one mean: the prior is N(0, 1), the data are N(x, 1), both without their constants.
func logPosterior(x, y torch.Tensor) torch.Tensor {
	return y.Sub(x).Square().Sum().Add(x.Square().Sum()).Mul(-0.5)
}

// The stages of docs/native.md are those of this example. `go test ./infer/native -run TestTour -update` writes them.
func TestTour(t *testing.T) {
	y := torch.New(make([]float64, 100))
	source := lower.Source{Dim: 1, Batch: []lower.Named{{Name: "y", Tensor: y.T()}},
		Evaluate: func(x *ts.Tensor, batch []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			value, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				return logPosterior(x, torch.Of(batch[0]))
			}, torch.Of(x))
			return []*ts.Tensor{value.T()}, []*ts.Tensor{grad.T()}, nil, err
		}}
	recording, err := lower.Record(source, []float64{0.5})
	require.NoError(t, err)
	plan, err := lower.Compile(source, []float64{0.5}, []float64{-1.5}, lower.Options{})
	require.NoError(t, err)
	c, err := cc.Emit(plan)
	require.NoError(t, err)

	const path, main = "../../docs/native.md", "static KELVIN_BODY int main_body"
	read, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(read)
	for stage, text := range map[string]string{
		"recording": printedRecording(recording), "plan": printedPlan(t, plan),
		"C": wrapped(c[strings.Index(c, main):]),
	} {
		from := strings.Index(page, "<!-- "+stage+" -->")
		require.GreaterOrEqual(t, from, 0, stage)
		from += strings.Index(page[from:], "```")
		from += strings.Index(page[from:], "\n") + 1
		to := from + strings.Index(page[from:], "```")
		if !*update {
			if stage == "recording" { // the backward passes of other versions of libtorch give the same plan
				text, _, _ = strings.Cut(text, "autograd")
				to = from + strings.Index(page[from:], "autograd")
			}
			require.Equal(t, text, page[from:to], "go test ./infer/native -run TestTour -update writes docs/native.md")
		}
		if *update {
			page = page[:from] + text + page[to:]
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
}

// wrapped is C with lines of at most 100 characters.
func wrapped(c string) string {
	lines := strings.Split(c, "\n")
	for i, line := range lines {
		for len(line) > 100 {
			at := strings.LastIndex(line[:100], ", ") + 1
			lines[i] = lines[i][:len(lines[i])-len(line)+at] + "\n   " + line[at:]
			line = "   " + line[at:]
		}
	}
	return strings.Join(lines, "\n")
}

// printedRecording are the operations that no other made, and the tensors that they read and wrote, by their storages.
func printedRecording(r *lower.Recording) string {
	names := map[int]string{r.Known[0].Storage: "x", r.Known[1].Storage: "y"}
	var word func(a lower.Arg) string
	word = func(a lower.Arg) string {
		switch a.Kind {
		case lower.TensorKind:
			if names[a.Tensor.Storage] == "" {
				names[a.Tensor.Storage] = fmt.Sprintf("t%d", len(names)-1)
			}
			return names[a.Tensor.Storage] + strings.ReplaceAll(fmt.Sprint(a.Tensor.Sizes), " ", ",")
		case lower.Int, lower.Bool:
			return fmt.Sprint(a.Int)
		case lower.Double:
			return fmt.Sprint(a.Double)
		case lower.List:
			return "[" + words(a.List, word) + "]"
		}
		return "-"
	}
	var out strings.Builder
	var write func(calls []*lower.Call, depth int)
	write = func(calls []*lower.Call, depth int) {
		for _, c := range calls {
			args := words(c.Args, word)
			line := strings.Repeat("  ", depth) + strings.TrimPrefix(c.Name, "aten::") + "(" + args + ")"
			if results := words(c.Results, word); results != "" {
				line += " -> " + results
			}
			fmt.Fprintf(&out, "%s\n", line)
			if strings.HasPrefix(c.Name, "autograd::") || strings.HasPrefix(c.Name, "torch::autograd::") {
				write(c.Calls, depth+1)
			}
		}
	}
	write(r.Calls, 0)
	fmt.Fprintf(&out, "value: %s, gradient: %s\n", word(lower.Arg{Kind: lower.TensorKind, Tensor: &r.Outputs[0]}),
		word(lower.Arg{Kind: lower.TensorKind, Tensor: &r.Outputs[1]}))
	return out.String()
}

func words(args []lower.Arg, word func(lower.Arg) string) string {
	var out []string
	for _, a := range args {
		out = append(out, word(a))
	}
	return strings.Join(out, ", ")
}

// printedPlan are the buffers and the loops of a plan.
func printedPlan(t *testing.T, p *ir.Plan) string {
	kinds := map[ir.Kind]string{ir.X: "x", ir.Grad: "gradient", ir.Value: "value", ir.Const: "const", ir.Input: "input",
		ir.Prepared: "prepared", ir.Work: "work"}
	ops := map[ir.Op]string{ir.Load: "load", ir.Store: "store", ir.Sum: "sum", ir.Num: "num", ir.Add: "add", ir.Sub: "sub",
		ir.Mul: "mul", ir.Neg: "neg"}
	var out strings.Builder
	for i, b := range p.Buffers {
		fmt.Fprintf(&out, "b%d: %s[%d]\n", i, kinds[b.Kind], b.Len)
	}
	for _, part := range []struct {
		name  string
		steps []ir.Step
	}{{"prologue", p.Prologue}, {"main", p.Steps}} {
		for _, s := range part.steps {
			require.Equal(t, ir.Loop, s.Kind)
			fmt.Fprintf(&out, "%s: loop %v\n", part.name, s.Sizes)
			for k, in := range s.Body {
				require.Contains(t, ops, in.Op)
				fmt.Fprintf(&out, "  %d: %s", k, ops[in.Op])
				for _, operand := range in.Operands() {
					fmt.Fprintf(&out, " %d", operand)
				}
				switch {
				case in.Op == ir.Num:
					fmt.Fprintf(&out, " %v", in.Num)
				case in.Op == ir.Load:
					fmt.Fprintf(&out, " b%d[%s]", in.At.Buf, index(in.At))
				case in.Op.Writes():
					fmt.Fprintf(&out, " -> b%d[%s]", in.At.Buf, index(in.At))
				}
				fmt.Fprintln(&out)
			}
		}
	}
	return out.String()
}

// index is the element that an address names, in the coordinate i of a loop of one dimension.
func index(a ir.Address) string {
	if len(a.Strides) > 0 && a.Strides[0] != 0 {
		return fmt.Sprintf("%d+%di", a.Off, a.Strides[0])
	}
	return fmt.Sprint(a.Off)
}
