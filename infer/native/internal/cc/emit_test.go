package cc

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/stretchr/testify/require"
)

// compileAll makes functions of many plans with one run of the compiler.
func compileAll(t testing.TB, plans []*ir.Plan) []irtest.Entry {
	t.Helper()
	c, err := Find()
	if err != nil {
		t.Skip(err)
	}
	var text strings.Builder
	text.WriteString(preamble())
	for i, p := range plans {
		require.NoError(t, p.Check(), "plan %d", i)
		body, err := emitPlan(p, suffix(i))
		require.NoError(t, err, "plan %d", i)
		text.WriteString(body)
	}
	object, err := c.object(text.String(), 10*time.Minute)
	require.NoError(t, err)
	program, err := load(object)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	entries := make([]irtest.Entry, len(plans))
	for i := range plans {
		prologue, err := program.symbol("kelvin_prologue" + suffix(i))
		require.NoError(t, err)
		main, err := program.symbol("kelvin_main" + suffix(i))
		require.NoError(t, err)
		entries[i] = irtest.Entry{Prologue: prologue, Main: main, Dense: vm.Dense()}
	}
	return entries
}

// suffix ends the names of a plan's functions; those of the first are as in a text of one plan.
func suffix(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint("_", i)
}

// differential compares cases with ir.Machine: to 1e-11 of each number or of 1, which some hundred terms and
// functions of a few units in the last place stay below.
func differential(t *testing.T, cases []irtest.Case) {
	var plans []*ir.Plan
	for _, c := range cases {
		plans = append(plans, c.Plan)
	}
	for i, e := range compileAll(t, plans) {
		c := cases[i]
		want, err := irtest.Reference(c)
		require.NoError(t, err)
		got, err := irtest.Run(e, c)
		require.NoError(t, err, c.Name)
		if err := irtest.Differ(got, want, 1e-11); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// thin leaves out most steps that apply one operation to one number or row after the other, which take a compiler long.
func thin(c irtest.Case) irtest.Case {
	p := *c.Plan
	p.Steps = nil
	if !strings.HasPrefix(c.Name, "unary") && !strings.HasPrefix(c.Name, "binary") {
		return c
	}
	for i, b := range p.Buffers {
		if b.Kind == ir.Aux {
			zero := []ir.Instr{{Op: ir.Num}, write(ir.Store, 0, i, 0, 1)}
			p.Steps = append(p.Steps, ir.Step{Sizes: []int{b.Len}, Body: zero})
		}
	}
	for i, s := range c.Plan.Steps {
		if i < 2 || i >= len(c.Plan.Steps)-2 || i%17 == 0 {
			p.Steps = append(p.Steps, s)
		}
	}
	c.Plan = &p
	return c
}

var lengths = []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 257, 1000}

// Every operation, form of address, reduction and kind of step gives in C what ir.Machine gives.
func TestCases(t *testing.T) {
	var cases []irtest.Case
	kinds := map[string]int{}
	for _, c := range append(irtest.Cases(), irtest.Divergent()) {
		// A compiler takes long for all lengths and forms; these are one of each kind.
		var n int
		if _, err := fmt.Sscanf(c.Name, "length %d", &n); err == nil && !slices.Contains(lengths, n) {
			continue
		}
		kind, _, _ := strings.Cut(c.Name, " ")
		kinds[kind]++
		if many := map[string]int{"operands": 5, "reductions": 4, "triangles": 3}[kind]; many > 0 && kinds[kind]%many > 0 {
			continue
		}
		cases = append(cases, thin(c))
	}
	differential(t, cases)
}

func TestRandom(t *testing.T) {
	var cases []irtest.Case
	for seed := range uint64(40) {
		cases = append(cases, irtest.Random(seed))
	}
	differential(t, cases)
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "0.0"}, {-1, "(-1.0)"}, {0.1, "0.1"}, {1e300, "1e+300"}, {5e-324, "5e-324"},
		{math.Inf(-1), "(-KELVIN_INF)"}, {math.NaN(), "KELVIN_NAN"}} {
		require.Equal(t, c.want, number(c.v))
	}
}
