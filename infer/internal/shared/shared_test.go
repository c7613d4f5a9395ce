package shared

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStore(t *testing.T) {
	var s Store[int]
	is := func(n int) func(int) bool { return func(k int) bool { return k == n } }
	for n := range limit {
		s.Add(n)
	}
	_, ok := s.Find(is(0)) // which is used last now
	assert.True(t, ok)
	s.Add(100)
	_, ok = s.Find(is(1))
	assert.False(t, ok, "1 was not used for longest")
	for _, n := range []int{0, 2, 100} {
		found, ok := s.Find(is(n))
		assert.True(t, ok)
		assert.Equal(t, n, found)
	}
}

func TestStoresEndWithTheirOwners(t *testing.T) {
	var s Stores[[1000]int, int]
	first, second := new([1000]int), new([1000]int)
	s.Of(first).Add(1)
	s.Of(second).Add(2)
	_, ok := s.Of(second).Find(func(n int) bool { return n == 1 })
	assert.False(t, ok)
	runtime.KeepAlive(first)
	count := func() (n int) {
		s.all.Range(func(any, any) bool { n++; return true })
		return n
	}
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
	found, _ := s.Of(second).Find(func(n int) bool { return n == 2 })
	assert.Equal(t, 2, found)
}
