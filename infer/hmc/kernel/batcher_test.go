package kernel

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a Gaussian that writes down the rows of each batch.
type recorder struct {
	d       int
	batches [][]float64 // first coordinates
	fail    func(batch int, x []float64) error
}

func (r *recorder) Dim() int { return r.d }

func (r *recorder) ValueAndGrad(x, logp, grad []float64) error {
	var first []float64
	for k := range logp {
		first = append(first, x[k*r.d])
	}
	r.batches = append(r.batches, first)
	if r.fail != nil {
		if err := r.fail(len(r.batches), x); err != nil {
			return err
		}
	}
	return gaussian(make1(r.d)...).ValueAndGrad(x, logp, grad)
}

func make1(d int) []float64 {
	v := make([]float64, d)
	for i := range v {
		v[i] = 1
	}
	return v
}

// goroutines waits until there are no more goroutines than there were.
func goroutines(t *testing.T) func() {
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

// begun is a batcher at work.
func begun(ctx context.Context, d Density, chains int) *batcher {
	b := newBatcher(d, chains)
	b.start(ctx, true)
	return b
}

// Chain k asks for (k+1)·10 gradients at points that name it: batch b holds exactly the chains with more than b
// requests, in the order of their numbers, each gets its own answer, and the counts are sums that can be done by hand.
func TestBatcherOrder(t *testing.T) {
	for range 20 {
		leak := goroutines(t)
		const chains = 7
		d := &recorder{d: 2}
		b := begun(context.Background(), d, chains)
		var all sync.WaitGroup
		for k := range chains {
			all.Go(func() {
				defer b.Leave(k)
				g := b.gradient(k, &cold)
				x, grad := []float64{float64(k), 1}, make([]float64, 2)
				for range 10 * (k + 1) {
					lp, err := g(x, grad)
					if err != nil || lp != -0.5*float64(k*k+1) || grad[0] != -float64(k) || grad[1] != -1 {
						t.Error("chain", k, "got", lp, grad, err)
					}
				}
			})
		}
		all.Wait()
		b.Close()
		leak()
		require.Len(t, d.batches, 10*chains)
		for i, rows := range d.batches {
			var want []float64
			for k := i / 10; k < chains; k++ {
				want = append(want, float64(k))
			}
			require.Equal(t, want, rows)
		}
		s := b.counts()
		require.Equal(t, batchStats{Batches: 70, Rows: 10 * 28}, batchStats{Batches: s.Batches, Rows: s.Rows})
	}
}

// A meeting happens once for all live chains, while those that have left are not waited for, and others' gradients go
// on before it.
func TestBatcherMeet(t *testing.T) {
	leak := goroutines(t)
	d := &recorder{d: 1}
	b := begun(context.Background(), d, 5)
	met, sum := 0, 0
	var all sync.WaitGroup
	for k := range 5 {
		all.Go(func() {
			defer b.Leave(k)
			g := b.gradient(k, &cold)
			for range k { // chain k comes late
				if _, err := g([]float64{1}, []float64{0}); err != nil {
					t.Error(err)
				}
			}
			if k == 4 {
				return
			}
			if err := b.Meet(k, func() error { met++; return nil }); err != nil {
				t.Error(err)
			}
			if met != 1 {
				t.Error("met", met)
			}
			if err := b.Meet(k, func() error { sum++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b.Close()
	leak()
	assert.Equal(t, 1, met)
	assert.Equal(t, 1, sum)
}

// Whatever ends a batcher (a cancelled context, an error or panic of the density, its goroutine's end, a meeting's
// error) ends all its chains, with that error, and leaves no goroutine.
func TestBatcherEnds(t *testing.T) {
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		fail func(int, []float64) error
		meet func() error
		want func(error) bool
	}{
		"cancelled": {want: func(err error) bool { return errors.Is(err, context.Canceled) }},
		"error": {fail: func(int, []float64) error { return bad },
			want: func(err error) bool { return errors.Is(err, bad) }},
		"panic": {fail: func(int, []float64) error { panic(bad) },
			want: func(err error) bool { return errors.Is(err, bad) }},
		"goexit": {fail: func(int, []float64) error { runtime.Goexit(); return nil },
			want: func(err error) bool { return err != nil }},
		"meeting": {meet: func() error { return bad }, want: func(err error) bool { return errors.Is(err, bad) }},
		"meeting, panic": {meet: func() error { panic("no") }, want: func(err error) bool {
			var p *PanicError
			return errors.As(err, &p)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			leak := goroutines(t)
			ctx, cancel := context.WithCancel(context.Background())
			d := &recorder{d: 1}
			d.fail = func(n int, x []float64) error {
				if n < 20 {
					return nil
				}
				if name == "cancelled" {
					cancel()
					return nil
				}
				if c.fail != nil {
					return c.fail(n, x)
				}
				return nil
			}
			b := begun(ctx, d, 4)
			var all sync.WaitGroup
			for k := range 4 {
				all.Go(func() {
					defer b.Leave(k)
					g := b.gradient(k, &cold)
					var err error
					for n := 0; err == nil; n++ {
						if n%7 == 6 && c.meet != nil && n > 40 {
							err = b.Meet(k, c.meet)
						} else {
							_, err = g([]float64{1}, []float64{0})
						}
					}
					if !c.want(err) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			b.Close()
			cancel()
			leak()
			assert.True(t, c.want(b.Err()))
		})
	}
}

// A recoverable error of one row is a NaN of that row alone.
func TestBatcherRecoverable(t *testing.T) {
	d := &recorder{d: 1, fail: func(_ int, x []float64) error {
		for _, e := range x {
			if e == 2 {
				return singular{}
			}
		}
		return nil
	}}
	b := begun(context.Background(), d, 4)
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			defer b.Leave(k)
			grad := []float64{0}
			lp, err := b.gradient(k, &cold)([]float64{float64(k)}, grad)
			if err != nil || k == 2 != math.IsNaN(lp) || k != 2 && (lp != -0.5*float64(k*k) || grad[0] != float64(-k)) {
				t.Error(k, lp, grad, err)
			}
		})
	}
	all.Wait()
	b.Close()
}
