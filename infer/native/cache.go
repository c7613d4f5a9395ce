package native

import (
	"slices"
	"sync"
)

// cached is how many functions a [Cache] keeps.
const cached = 8

// Cache keeps the code of a few densities, that used last first. The zero value is an empty one. It is safe for
// concurrent use.
type Cache struct {
	mu      sync.Mutex
	choices []*choice
}

// find returns the first choice that fits, and makes it the one that was used last.
func (s *Cache) find(fits func(*choice) bool) (found *choice, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.choices, fits)
	if i < 0 {
		return nil, false
	}
	found = s.choices[i]
	s.choices = slices.Insert(slices.Delete(s.choices, i, i+1), 0, found)
	return found, true
}

// add keeps a choice. Beyond the limit the one that was not used for longest goes.
func (s *Cache) add(c *choice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices = slices.Insert(s.choices, 0, c)
	if len(s.choices) > cached {
		s.choices = slices.Delete(s.choices, cached, len(s.choices))
	}
}
