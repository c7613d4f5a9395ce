package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model is nearer to the true risks than the counts are, and a picture is written.
func TestMap(t *testing.T) {
	*picture = filepath.Join(t.TempDir(), "map.png")
	require.NoError(t, run(context.Background()))
	b, err := os.ReadFile(*picture)
	require.NoError(t, err)
	m, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, 784, m.Bounds().Dx())
}

// A map of the true risks themselves is off by nothing, one of risks that are all 1 by their spread.
func TestOff(t *testing.T) {
	_, _, risk := simulated(1)
	require.Zero(t, off(risk, risk))
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	require.InDelta(t, 0.3, off(ones, risk), 0.1)
}
