package grid

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

// Data that differ in one number, in the place of a label, or in where inputs end have fingerprints that differ; the
// same data have the same, whatever machine it is: that of [1 2] with label 1 is a hash of four little-endian numbers.
func TestFingerprint(t *testing.T) {
	var bytes []byte
	for _, v := range []uint64{2, 1, 2, 1} { // the number of inputs, they, and the label
		bytes = binary.LittleEndian.AppendUint64(bytes, v)
	}
	sum := sha256.Sum256(bytes)
	require.Equal(t, hex.EncodeToString(sum[:8]), Fingerprint([]int{1, 2}, []int{1}))
	many := make([]float32, 1<<16+3) // more than a chunk
	changed := slices.Clone(many)
	changed[1<<16+1] = 1
	seen := map[string]bool{}
	for _, print := range []string{Fingerprint([]int{1, 2}, []int{1}), Fingerprint([]int{1, 2}, []int{0}),
		Fingerprint([]int{2, 1}, []int{1}), Fingerprint([]int{1}, []int{2, 1}), Fingerprint([]float32{1, 2}, []int{1}),
		Fingerprint(many, []int{0, 1}), Fingerprint(many, []int{1, 0}), Fingerprint(changed, []int{0, 1})} {
		require.Len(t, print, 16)
		seen[print] = true
	}
	require.Len(t, seen, 8)
	require.Equal(t, Fingerprint(many, []int{1}), Fingerprint(slices.Clone(many), []int{1}))
}

// Cells whose results are on disk do not run again, a cell that failed does, and results that nothing says the settings
// of are refused.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	runs := map[string]int{}
	broken := errors.New("broken")
	cell := func(name string) Cell[int] {
		return Cell[int]{Name: name, Run: func(_ context.Context, dir, identity string, _ infer.Observer) (int, error) {
			require.Equal(t, `{"lr":1}`, identity)
			require.DirExists(t, dir)
			runs[name]++
			if name == "b" && runs[name] == 1 {
				return 0, broken
			}
			return 10 * len(runs), nil
		}}
	}
	g := &Grid[int]{Settings: map[string]int{"lr": 1}, Cells: []Cell[int]{cell("a"), cell("b")}, Dir: dir, Workers: 1}
	_, err := g.Run(context.Background())
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "b: ")
	for range 2 {
		results, err := g.Run(context.Background())
		require.NoError(t, err)
		require.Equal(t, []int{10, 20}, results)
		require.NoDirExists(t, filepath.Join(dir, "running"))
	}
	require.Equal(t, map[string]int{"a": 1, "b": 2}, runs)

	require.NoError(t, os.Remove(filepath.Join(dir, "settings.json")))
	_, err = g.Run(context.Background())
	require.ErrorContains(t, err, "has results and no settings.json")
}
