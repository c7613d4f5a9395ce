package testkit

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// listener hears of an assertion that fails.
type listener struct {
	testing.TB
	failed bool
}

func (l *listener) Errorf(string, ...any) { l.failed = true }

// Memory that is touched is counted, and found to be too much.
func TestGrown(t *testing.T) {
	before := Resident(t)
	Grown(t, before, 8<<20)
	data := make([]byte, 64<<20)
	for i := range data {
		data[i] = 1
	}
	assert.Greater(t, Resident(t)-before, int(60<<20))
	l := &listener{TB: t}
	Grown(l, before, 8<<20)
	assert.Equal(t, !watched, l.failed)
	runtime.KeepAlive(data)
}

// One round that keeps nothing is enough; a leak of each round is found.
func TestGrownInRounds(t *testing.T) {
	var kept [][]byte
	debug.FreeOSMemory() // else the rounds take what another test left
	round := func(leaks func(i int) bool) func() {
		i := 0
		return func() {
			if i++; leaks(i) {
				data := make([]byte, 32<<20)
				for j := range data {
					data[j] = 1
				}
				kept = append(kept, data)
			}
		}
	}
	GrownInRounds(t, 3, 8<<20, round(func(i int) bool { return i != 2 }))
	l := &listener{TB: t}
	GrownInRounds(l, 3, 8<<20, round(func(int) bool { return true }))
	assert.Equal(t, !watched, l.failed)
	runtime.KeepAlive(kept)
}
