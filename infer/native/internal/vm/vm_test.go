package vm

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/require"
)

func compile(t testing.TB, variant string, c irtest.Case) (*Program, irtest.Entry) {
	p, err := CompileFor(variant, c.Plan)
	require.NoError(t, err, c.Name)
	t.Cleanup(p.Close)
	return p, irtest.Entry{Prologue: p.Prologue(), Main: p.Main(), Self: p.Self(), Extra: p.Work()}
}

// agree runs a case on every variant, twice, and compares with ir.Machine. The last bits of sums of up to 1e5
// terms of size 1 differ, and the machine's own functions have errors of some 1e-14.
func agree(t *testing.T, c irtest.Case) {
	want, err := irtest.Reference(c)
	require.NoError(t, err, c.Name)
	for _, v := range Variants() {
		_, e := compile(t, v, c)
		got, err := irtest.Run(e, c)
		require.NoError(t, err, "%s, %s", c.Name, v)
		require.NoError(t, irtest.Differ(got, want, 2e-11), "%s, %s", c.Name, v)
		again, err := irtest.Run(e, c)
		require.NoError(t, err)
		require.NoError(t, irtest.Differ(again, got, 0), "%s, %s", c.Name, v)
	}
}

func TestCases(t *testing.T) {
	for _, c := range append(irtest.Cases(), irtest.Divergent()) {
		t.Run(c.Name, func(t *testing.T) { agree(t, c) })
	}
}

func TestRandom(t *testing.T) {
	for seed := range uint64(400) {
		agree(t, irtest.Random(seed))
	}
}

func FuzzPlans(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { agree(t, irtest.Random(seed)) })
}
