// Package shared keeps what is expensive to make for as long as something else lives.
package shared

import (
	"runtime"
	"slices"
	"sync"
	"weak"
)

// limit is how many values a store keeps.
const limit = 8

// Store keeps a few values, the one that was used last first. It is safe for concurrent use.
type Store[T any] struct {
	mu    sync.Mutex
	items []T
}

// Find returns the first value that fits, and makes it the one that was used last.
func (s *Store[T]) Find(fits func(T) bool) (found T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.items, fits)
	if i < 0 {
		return found, false
	}
	found = s.items[i]
	s.items = slices.Insert(slices.Delete(s.items, i, i+1), 0, found)
	return found, true
}

// Add keeps a value. Beyond the limit the one that was not used for longest goes.
func (s *Store[T]) Add(x T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = slices.Insert(s.items, 0, x)
	if len(s.items) > limit {
		s.items = slices.Delete(s.items, limit, len(s.items))
	}
}

// Stores are the stores of many owners. An owner's store is freed with it.
type Stores[O, T any] struct{ all sync.Map } // of weak.Pointer[O]

// Of is the store of an owner.
func (s *Stores[O, T]) Of(owner *O) *Store[T] {
	key := weak.Make(owner)
	if store, ok := s.all.Load(key); ok {
		return store.(*Store[T])
	}
	store, loaded := s.all.LoadOrStore(key, &Store[T]{})
	if !loaded {
		runtime.AddCleanup(owner, func(key weak.Pointer[O]) { s.all.Delete(key) }, key)
	}
	return store.(*Store[T])
}
