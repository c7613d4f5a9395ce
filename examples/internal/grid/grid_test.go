package grid

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

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
