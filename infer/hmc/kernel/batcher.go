package kernel

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// batcher evaluates the gradients of K chains, each of them a goroutine with sequential code, in batches. A chain that
// needs a gradient hands over its point and sleeps; when every live chain has done so, one goroutine evaluates all
// points in one call of the density, and wakes them. Nobody waits for another chain's trajectory: the chains of a
// batch are at different draws. A finished chain leaves ([batcher.Leave]) and is no longer waited for.
//
// The rows of a batch are in the order of the chains' numbers, and which chains are in it depends on how many gradients
// each has asked for, never on timing: a run repeats bit for bit.
type batcher struct {
	density Density
	d       int
	unwatch func() bool
	exited  chan struct{}
	work    chan struct{} // holds one: a batch is ready, or the end
	// running counts the live chains that are not at rest, that is asleep in Gradient or Meet. Whoever brings it to
	// zero acts for all (settle); as long as it is not zero nobody touches the seats of the others. Each turn of a
	// chain costs one atomic subtraction, and no lock.
	running atomic.Int64
	stopped atomic.Bool // err is set
	seats   []seat

	mu      sync.Mutex // around what follows
	err     error
	live    int
	warming int // live chains that have not called Sampling
	stats   batchStats

	x, t, logp, grad []float64 // the rows of the batch
	rows             []int     // their chains
}

// seat is the place of one chain: the chain's own while it runs, the settler's or evaluator's while it rests.
type seat struct {
	x, grad  []float64
	logp     float64
	t        float64 // the temperature
	err      error
	asking   bool
	meeting  func() error
	live     bool
	sampling bool
	next     *seat         // whom to wake when this chain comes to rest
	wake     chan struct{} // holds one
}

// sequentialDims is up to how many dimensions the chains between two batches are no work for several processors.
const sequentialDims = 200

// batchStats counts what a batcher has done.
type batchStats struct {
	Batches int // calls of the density
	Rows    int // gradients
	// SamplingBatches, SamplingRows and Full count from when no live chain was in its warm-up any more; full batches
	// hold every chain.
	SamplingBatches, SamplingRows, Full int
}

// newBatcher makes a batcher for chains 0 to K-1, K at least 1.
func newBatcher(density Density, chains int) *batcher {
	d := density.Dim()
	b := &batcher{
		density: density, d: d, work: make(chan struct{}, 1), seats: make([]seat, chains), rows: make([]int, 0, chains),
		x: make([]float64, chains*d), t: make([]float64, chains), logp: make([]float64, chains),
		grad: make([]float64, chains*d),
	}
	for k := range b.seats {
		b.seats[k] = seat{x: make([]float64, d), grad: make([]float64, d), wake: make(chan struct{}, 1)}
	}
	return b
}

// start makes all chains live, and starts the evaluator if they are batched. Each chain must leave once, also after an
// error; the evaluator then ends, and [batcher.Close] waits for that. After it the batcher can be started again. When
// the context ends, so do all calls, with its error; a call of the density that is under way is waited for.
func (b *batcher) start(ctx context.Context, batched bool) {
	select {
	case <-b.work: // of an evaluator that ended early
	default:
	}
	b.err, b.live, b.warming = nil, len(b.seats), len(b.seats)
	b.stopped.Store(false)
	b.running.Store(int64(len(b.seats)))
	for k := range b.seats {
		s := &b.seats[k]
		s.live, s.sampling, s.asking, s.meeting, s.next = true, false, false, nil, nil
	}
	b.unwatch, b.exited = nil, nil
	if ctx.Done() != nil {
		b.unwatch = context.AfterFunc(ctx, func() { b.Fail(ctx.Err()) })
	}
	if batched {
		b.exited = make(chan struct{})
		go b.serve(b.exited)
	}
}

// gradient is chain k's gradient. It copies the point in and the gradient out.
func (b *batcher) gradient(k int, temperature *float64) gradient {
	s := &b.seats[k]
	return func(x, grad []float64) (float64, error) {
		if b.stopped.Load() {
			return math.NaN(), b.Err()
		}
		copy(s.x, x)
		s.t, s.asking = *temperature, true
		b.rest(s)
		<-s.wake
		if s.err != nil {
			return math.NaN(), s.err
		}
		copy(grad, s.grad)
		return s.logp, nil
	}
}

// Meet makes chain k wait until every live chain meets; the last to come calls its f, while all others stand still,
// and then all go on. f must be the same for all. Gradients that others need on their way to the meeting are
// evaluated.
func (b *batcher) Meet(k int, f func() error) error {
	if b.stopped.Load() {
		return b.Err()
	}
	s := &b.seats[k]
	s.meeting = f
	b.rest(s)
	<-s.wake
	return s.err
}

// Sampling says that chain k is past its warm-up, which only the statistics want to know.
func (b *batcher) Sampling(k int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := &b.seats[k]; s.live && !s.sampling {
		s.sampling = true
		b.warming--
	}
}

// Leave says that chain k wants nothing more.
func (b *batcher) Leave(k int) {
	s := &b.seats[k]
	if !s.live {
		return
	}
	s.live = false
	b.mu.Lock()
	b.live--
	if !s.sampling {
		b.warming--
	}
	b.mu.Unlock()
	b.rest(s)
}

// Fail ends all calls with an error, each as soon as its chain comes to the batcher; the first error stays.
func (b *batcher) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		b.stopped.Store(true)
	}
}

// Err is the error that ended the batcher, if one did.
func (b *batcher) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// counts are the counts so far.
func (b *batcher) counts() batchStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// Close waits until all chains have left and the evaluator has ended.
func (b *batcher) Close() {
	if b.exited != nil {
		<-b.exited
	}
	if b.unwatch != nil {
		b.unwatch()
	}
}

// rest says that one more chain is at rest. It wakes the chain behind it first, if there is one; the last acts for all.
func (b *batcher) rest(s *seat) {
	if next := s.next; next != nil {
		s.next = nil
		next.wake <- struct{}{}
	}
	if b.running.Add(-1) == 0 {
		b.settle()
	}
}

// settle is called when all live chains rest. It ends the evaluator, or wakes all with the error, or holds the
// meeting, or has the batch evaluated.
func (b *batcher) settle() {
	b.mu.Lock()
	err, live := b.err, b.live
	b.mu.Unlock()
	meeting := 0
	var f func() error
	for k := range b.seats {
		if s := &b.seats[k]; s.meeting != nil {
			meeting++
			f = s.meeting
		}
	}
	switch {
	case live > 0 && err != nil:
		b.wake(err)
	case live > 0 && meeting == live:
		if err := b.hold(f); err != nil {
			b.Fail(err)
		}
		b.wake(b.Err())
	default:
		b.work <- struct{}{} // room for one, and nobody else is about
	}
}

// wake wakes all that rest with an error, or all that meet without.
func (b *batcher) wake(err error) {
	n := 0
	for k := range b.seats {
		if s := &b.seats[k]; s.asking || s.meeting != nil {
			n++
		}
	}
	b.running.Add(int64(n)) // before the first of them can come back
	for k := range b.seats {
		if s := &b.seats[k]; s.asking || s.meeting != nil {
			s.asking, s.meeting, s.err = false, nil, err
			s.wake <- struct{}{}
		}
	}
}

// hold calls the function of a meeting.
func (b *batcher) hold(f func() error) (err error) {
	defer caught("checkpoint hook", &err)
	return f()
}

// serve is the evaluator. It ends when no chain is live.
func (b *batcher) serve(exited chan struct{}) {
	defer runtime.UnlockOSThread()
	defer close(exited)
	defer func() { // the density has a recovery of its own
		if v := recover(); v != nil {
			b.Fail(&PanicError{"evaluator", v, string(debug.Stack())})
			b.wake(b.Err())
		}
	}()
	for range b.work {
		b.rows = b.rows[:0]
		for k := range b.seats {
			if s := &b.seats[k]; s.asking {
				copy(b.x[len(b.rows)*b.d:], s.x)
				b.t[len(b.rows)] = s.t
				b.rows = append(b.rows, k)
			}
		}
		n := len(b.rows)
		if n == 0 {
			return
		}
		if err := b.call(n); err != nil {
			b.Fail(err)
			b.wake(b.Err())
			continue
		}
		b.mu.Lock()
		b.stats.Batches++
		b.stats.Rows += n
		if b.warming == 0 {
			b.stats.SamplingBatches++
			b.stats.SamplingRows += n
			if n == len(b.seats) {
				b.stats.Full++
			}
		}
		b.mu.Unlock()
		b.running.Add(int64(n))
		// Chains stand in queues, in which each wakes the one behind it when it comes to rest: that is a switch of
		// goroutines on one thread, and not a round through the scheduler and another processor, which would cost more
		// than a small chain's work.
		queues := 1
		if b.d > sequentialDims {
			queues = min(n, runtime.GOMAXPROCS(0))
		}
		for r, k := range b.rows {
			s := &b.seats[k]
			s.logp, s.err, s.asking = b.logp[r], nil, false
			copy(s.grad, b.grad[r*b.d:(r+1)*b.d])
			if behind := r + queues; behind < n {
				s.next = &b.seats[b.rows[behind]]
			}
		}
		for i := range queues { // no batch begins before the last of these is awake
			b.seats[b.rows[i]].wake <- struct{}{}
		}
	}
}

// call evaluates n rows. A density that ends its goroutine (runtime.Goexit) ends the evaluator, and must not leave the
// chains asleep.
func (b *batcher) call(n int) error {
	returned := false
	defer func() {
		if !returned {
			b.Fail(errors.New("the density ended its goroutine"))
			b.wake(b.Err())
		}
	}()
	err := evaluateRows(b.density, b.x[:n*b.d], b.t[:n], b.logp[:n], b.grad[:n*b.d])
	returned = true
	return err
}

// direct is a gradient that evaluates by itself, in the calling goroutine, and still ends when the batcher does. It is
// for one chain alone, which then pays nothing for batching, and for densities that can be called concurrently. It adds
// its evaluations to count.
func (b *batcher) direct(temperature *float64, count *int) gradient {
	logp, t := make([]float64, 1), make([]float64, 1)
	return func(x, grad []float64) (float64, error) {
		if b.stopped.Load() {
			return math.NaN(), b.Err()
		}
		t[0] = *temperature
		if err := b.one(x, t, logp, grad); err != nil {
			if !recoverable(err) {
				return math.NaN(), err
			}
			logp[0] = math.NaN()
		}
		*count++
		return logp[0], nil
	}
}

// one evaluates one point. A panic becomes an error.
func (b *batcher) one(x, t, logp, grad []float64) (err error) {
	defer caught("density", &err)
	switch d := b.density.(type) {
	case funcDensity:
		logp[0] = d.f(x, grad)
		return nil
	case tempered:
		return d.ValueAndGradAt(x, t, logp, grad)
	default:
		return d.ValueAndGrad(x, logp, grad)
	}
}
