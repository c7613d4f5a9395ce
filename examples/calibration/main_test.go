package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// 60 replications of the right model have uniform ranks under NUTS, and those of the model with a mistake do not: its
// finding has p < 0.005 for the quantity whose scale is mistaken, which uniform ranks have once in 200 runs; the seeds
// are fixed. The ranks are kept, and drawn.
func TestTheMistakeIsCaught(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []problem{problems[0], problems[3]} {
		path := file(dir, p, ways[0], "ranks.jsonl")
		result, err := calibrate(context.Background(), p, ways[0].method, 60, path)
		require.NoError(t, err)
		report, err := result.Diagnose()
		require.NoError(t, err)
		require.Equal(t, p.wrong, len(report.Findings) > 0, "%s: %s", p.name, report)
		if p.wrong {
			require.Equal(t, "sigma", report.Findings[len(report.Findings)-1].Site)
		}
		again, err := calibrate(context.Background(), p, nil, 60, path) // all are there: no method is needed
		require.NoError(t, err)
		require.Equal(t, result.Ranks, again.Ranks)
		require.NoError(t, draw(file(dir, p, ways[0], "sigma.png"), result, "sigma", ""))
		_, err = os.Stat(filepath.Join(dir, p.name+"-NUTS-sigma.png"))
		require.NoError(t, err)
	}
}
