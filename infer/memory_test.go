package infer_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A run of 60,000 updates keeps its memory: from update 6,000 on, the tensors outside scopes are the same bytes to the
// last one, and resident memory grows by less than one leaked tensor of 100 bytes an update would add. (The collector
// makes some 2 MB more or less, whatever the number of updates.)
func TestRunInFlatMemory(t *testing.T) {
	testkit.Long(t)
	m := newLogistic(64, 3)
	p := pointOf(t, m.layout(t), make([]float64, 4)...)
	b := minibatches(t, m.batch(), infer.MinibatchOptions{Size: 16})
	var bytes, rss int
	r := ran(t, build(t, sgmcmc.SGHMC{LR: infer.Constant(0.05), Temperature: infer.Constant(0.01)}, m.logPosterior), p, b,
		infer.Options{Warmup: 60_000, Draws: infer.None, Observer: infer.ObserverFunc(func(p infer.Progress) {
			if p.Step == 6_000 {
				bytes, rss = unscoped(), testkit.Resident(t)
			}
			if p.Step > 6_000 && p.Step%500 == 0 {
				require.Equal(t, bytes, torch.UnscopedBytes(), "update %d", p.Step)
			}
		})})
	unscoped()
	t.Logf("seen: resident memory grew by %d bytes in 54,000 updates", testkit.Resident(t)-rss)
	testkit.Grown(t, rss, 54_000*100)
	infer.Free(r.State)
	runtime.KeepAlive(p)
	runtime.KeepAlive(b)
}

// A run inside a scope of the caller does not leave a trace of each state in it: Go's heap stays as it is. An update
// that was remembered would take a tensor's Go value and a pointer to it, 32 bytes or more.
func TestRunInAScopeRemembersNothing(t *testing.T) {
	heap := func() int {
		var s runtime.MemStats
		unscoped()
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc)
	}
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0)
	var state infer.State
	before := unscoped()
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		var start int
		r := ran(t, counter{}, p, infer.Full(nil),
			infer.Options{Warmup: 20_000, Draws: infer.None, Observer: infer.ObserverFunc(func(p infer.Progress) {
				if p.Step == 1_000 {
					start = heap()
				}
			})})
		assert.Less(t, heap()-start, int(19_000*16))
		state = r.State
		return nil
	}))
	// The state is the caller's, also after the scope.
	assert.Equal(t, []float64{20_000}, floats(state.Position().Flat))
	infer.Free(state)
	assert.Equal(t, before, unscoped())
	runtime.KeepAlive(p)
}
