package ppl

import (
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// memo keeps what one site computes from its data alone, for later evaluations on the same batch.
type memo struct {
	entries atomic.Pointer[map[memoKey]memoEntry]
}

type memoKey struct {
	data torch.Tensor
	name string
}

// memoEntry belongs to one version of the data: each change in place makes another. Parts is nil while the data were
// seen only once, so that nothing is kept of data that do not come again.
type memoEntry struct {
	version int
	parts   []torch.Tensor
}

// memoSize is how many entries a site keeps before it forgets them all. Only few data come again.
const memoSize = 16

// known is what a site knows when it sums its log density.
func (m *memo) known(s *Site, batch infer.Batch, alone bool) dist.Known {
	keep := func(x torch.Tensor, name string, f func() []torch.Tensor) []torch.Tensor {
		t := x.T()
		if m == nil || !isData(batch, torch.Of(t)) {
			return f()
		}
		return m.keep(memoKey{torch.Of(t), name}, f)
	}
	return dist.Known{Inside: !s.Observed, Alone: alone, Keep: keep}
}

// isData says whether a tensor is one of a batch, and a constant.
func isData(batch infer.Batch, t torch.Tensor) bool {
	for _, b := range batch {
		if b == t {
			return !t.T().MustRequiresGrad()
		}
	}
	return false
}

func (m *memo) keep(key memoKey, f func() []torch.Tensor) []torch.Tensor {
	old := m.entries.Load()
	version := key.data.T().Must_Version(false)
	seen := false
	if old != nil {
		e, ok := (*old)[key]
		if seen = ok && e.version == int(version); seen && e.parts != nil {
			return e.parts
		}
	}
	parts := f()
	entry := memoEntry{version: int(version)}
	if seen {
		entry.parts = parts
		for _, t := range parts {
			torch.Detach(t)
		}
	}
	next := map[memoKey]memoEntry{}
	if old != nil && len(*old) < memoSize {
		for k, e := range *old {
			next[k] = e
		}
	}
	next[key] = entry
	m.entries.CompareAndSwap(old, &next) // another goroutine's entries are as good
	return parts
}
