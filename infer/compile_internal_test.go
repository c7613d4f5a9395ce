package infer

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Code is shared by the points of one layout, and freed with it.
func TestCodeEndsWithItsLayout(t *testing.T) {
	first, err := NewLayout(Shapes{"a": {2}})
	require.NoError(t, err)
	second, err := NewLayout(Shapes{"a": {2}})
	require.NoError(t, err)
	before := 0
	count := func() (n int) {
		codeOf.Range(func(any, any) bool { n++; return true })
		return n - before
	}
	before = count()
	code := compiledFor(second)
	assert.NotSame(t, code, compiledFor(first))
	runtime.KeepAlive(first)
	assert.Equal(t, 2, count())
	first = nil
	for range 100 { // cleanups run some time after a collection
		runtime.GC()
		runtime.Gosched()
		if count() == 1 {
			break
		}
	}
	assert.Equal(t, 1, count())
	assert.Same(t, code, compiledFor(second))
}
