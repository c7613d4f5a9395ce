package infer

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A logger gets a line when it is due, and none between; without a logger and a terminal a run is silent.
func TestProgressIsLogged(t *testing.T) {
	var b bytes.Buffer
	l := newProgressLog(slog.New(slog.NewTextHandler(&b, nil)), time.Hour)
	defer l.end()
	p := Progress{Method: "hmc.NUTS", Chains: 4, Step: 50, Steps: 200, Divergent: 3, Warming: true}
	l.Observe(p)
	assert.Empty(t, b.String())
	l.due.Store(true)
	require.True(t, watches(l))
	l.Observe(p)
	l.Observe(p)
	assert.Equal(t, 1, bytes.Count(b.Bytes(), []byte("\n")))
	assert.Contains(t, b.String(), `level=INFO msg="hmc.NUTS, 4 chains, warm-up 25 %, 3 divergent`)
	assert.Contains(t, b.String(), "step=50 steps=200")

	// In time it is due by itself.
	b.Reset()
	l = newProgressLog(slog.New(slog.NewTextHandler(&b, nil)), time.Nanosecond)
	defer l.end()
	for b.Len() == 0 {
		l.Observe(p)
	}
	assert.Equal(t, Silent, newProgressLine(nil))
	require.IsType(t, &progressLog{}, newProgressLine(slog.Default()))
}
