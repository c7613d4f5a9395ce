package native

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	plans "github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// request is what the choice of a tier depends on besides the plan and the numbers.
type request struct {
	tier     Tier
	cache    string
	compiler string
}

// requested is the request of a call. The environment and the machine may change between two.
func requested(tier Tier, o Options) request {
	r := request{tier: tier, cache: o.CacheDir}
	if tier != VM {
		c, err := cc.Find()
		r.compiler = fmt.Sprint(c, err)
	}
	return r
}

// choice is code that was chosen for a plan.
type choice struct {
	request
	plan   *ir.Plan
	code   *owned
	report Report

	mu      sync.Mutex
	checked map[where]float64 // where it was compared, with the differences seen
}

// where are digests of points and a batch.
type where struct{ points, batch uint64 }

// is says whether code is what a request for a plan gives.
func (m *choice) is(plan *ir.Plan, r request) bool {
	return m.request == r && slices.EqualFunc(m.plan.Inputs, plan.Inputs, ir.Slot.Equal) &&
		slices.EqualFunc(m.plan.Outputs, plan.Outputs, ir.Slot.Equal) && plans.Same(m.plan, plan)
}

// again makes a function of code. Where the code was not compared with eager evaluation at these points on this batch,
// it is now, unless it was right at enough others; a nil function means that it is not right there.
func (m *choice) again(s Source, points [][]float64, o Options, report *Report) (*Func, error) {
	f, err := newFunc(m.plan, m.code)
	if err != nil {
		return nil, err
	}
	at, err := s.digest(points)
	if err != nil {
		return nil, err
	}
	r := m.report
	r.Ops, r.Loops, r.Cached = report.Ops, report.Loops, r.Tier == C && !r.Linked
	seen, ok := m.seen(at)
	if r.Error = seen; !ok {
		eager, err := evaluations(s, points)
		if err != nil {
			return nil, err
		}
		if f.verify(s, points, eager, o, &r) != nil {
			return nil, nil
		}
		m.check(at, r.Error)
	}
	*report = r
	return f, nil
}

// Of all comparisons so many are remembered, and so many on one batch are enough: a run of many chains is compared at
// four of their starts, and a run of one chain each should not cost more.
const mostChecks, enoughChecks = 64, 16

// seen is the largest difference seen at these points, or at enough others on their batch.
func (m *choice) seen(at where) (difference float64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if difference, ok = m.checked[at]; ok {
		return difference, true
	}
	n := 0
	for c, d := range m.checked {
		if c.batch == at.batch {
			difference = max(difference, d)
			n++
		}
	}
	return difference, n >= enoughChecks
}

func (m *choice) check(at where, seen float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.checked) >= mostChecks {
		clear(m.checked)
	}
	m.checked[at] = seen
}

// seed is that of all digests of this process.
var seed = maphash.MakeSeed()

// digest is of points and the batch, which are what a comparison with eager evaluation depends on besides the plan.
func (s Source) digest(points [][]float64) (w where, err error) {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range points {
		for _, v := range p {
			maphash.WriteComparable(&h, math.Float64bits(v))
		}
	}
	w.points = h.Sum64()
	h.Reset()
	for _, name := range slices.Sorted(maps.Keys(s.Batch)) {
		if err := digestTensor(&h, s.Batch[name]); err != nil {
			return w, fmt.Errorf("batch tensor %q: %w", name, err)
		}
	}
	w.batch = h.Sum64()
	return w, nil
}

// digestTensor adds the elements of a contiguous tensor.
func digestTensor(h *maphash.Hash, t torch.Tensor) error {
	shape, err := torch.Shape(t)
	if err != nil {
		return err
	}
	dtype, err := torch.DTypeOfTensor(t)
	if err != nil {
		return err
	}
	n := 1
	for _, k := range shape {
		n *= int(k)
	}
	if n == 0 {
		return nil
	}
	p, err := ts.KelvinData(t.T(), int(dtype.CInt()))
	if err != nil {
		return err
	}
	size := map[gotch.DType]int{gotch.Double: 8, gotch.Float: 4, gotch.Int64: 8, gotch.Uint8: 1, gotch.Bool: 1}[dtype]
	_, err = h.Write(unsafe.Slice((*byte)(p), n*size))
	return err
}
