package resident

import (
	"runtime"
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
	before := Bytes(t)
	Grown(t, before, 8<<20)
	data := make([]byte, 64<<20)
	for i := range data {
		data[i] = 1
	}
	assert.Greater(t, Bytes(t)-before, int64(60<<20))
	l := &listener{TB: t}
	Grown(l, before, 8<<20)
	assert.Equal(t, !watched, l.failed)
	runtime.KeepAlive(data)
}
