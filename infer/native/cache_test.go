package native

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCache(t *testing.T) {
	var s Cache
	all := make([]*choice, cached+1)
	for i := range all {
		all[i] = &choice{}
	}
	is := func(n int) func(*choice) bool { return func(c *choice) bool { return c == all[n] } }
	for _, c := range all[:cached] {
		s.add(c)
	}
	_, ok := s.find(is(0)) // which is used last now
	assert.True(t, ok)
	s.add(all[cached])
	_, ok = s.find(is(1))
	assert.False(t, ok, "1 was not used for longest")
	for _, n := range []int{0, 2, cached} {
		found, ok := s.find(is(n))
		assert.True(t, ok)
		assert.Same(t, all[n], found)
	}
}
