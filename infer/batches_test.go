package infer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// numbered is a batch whose datum i is i in every tensor, in three types and three shapes.
func numbered(n int) infer.Batch {
	ids, halves, rows := make([]int, n), make([]float32, n), make([]float64, 2*n)
	for i := range n {
		ids[i], halves[i], rows[2*i], rows[2*i+1] = i, float32(i)/2, float64(i), -float64(i)
	}
	return infer.Batch{
		"id":   torch.New(ids),
		"half": torch.New(halves, n, 1, 1),
		"row":  vec(rows, n, 2),
	}
}

// nextIDs takes a batch, checks that the three tensors agree, and returns which data it has.
func nextIDs(t testing.TB, b infer.Batches) []int {
	t.Helper()
	var ids []int
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		batch, err := b.Next()
		require.NoError(t, err)
		ids = torch.Must(torch.ToSlice[int](batch["id"]))
		n := len(ids)
		require.Equal(t, []int{n, 1, 1}, shapeOf(batch["half"]))
		require.Equal(t, []int{n, 2}, shapeOf(batch["row"]))
		require.Equal(t, []gotch.DType{gotch.Int64, gotch.Float, gotch.Double},
			[]gotch.DType{batch["id"].T().DType(), batch["half"].T().DType(), batch["row"].T().DType()})
		halves, rows := floats(batch["half"]), floats(batch["row"])
		for i, id := range ids {
			require.Equal(t, []float64{float64(id) / 2, float64(id), -float64(id)}, []float64{halves[i], rows[2*i], rows[2*i+1]},
				"the tensors are of the same data")
		}
		return nil
	}))
	return ids
}

// epochIDs takes the batches of one epoch.
func epochIDs(t testing.TB, b infer.Batches) [][]int {
	t.Helper()
	var out [][]int
	for epoch := b.Position().Epoch; b.Position().Epoch == epoch; {
		out = append(out, nextIDs(t, b))
	}
	return out
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestFull(t *testing.T) {
	data := numbered(5)
	b := infer.Full(data)
	for i := range 3 {
		assert.Equal(t, infer.Position{Epoch: i}, b.Position())
		got, err := b.Next()
		require.NoError(t, err)
		assert.Same(t, data["row"].T(), got["row"].T(), "all the data, without a copy")
		assert.Len(t, got, 3)
	}
	require.NoError(t, b.Seek(infer.Position{Epoch: 41}))
	assert.Equal(t, infer.Position{Epoch: 41}, b.Position())
}

// Each epoch has every datum exactly once, in batches of the size asked for but for the last; with DropLast in full
// batches only, so that the rest of the division is left out.
func TestMinibatchesCoverTheData(t *testing.T) {
	for _, c := range []struct {
		n, size int
		drop    bool
		sizes   []int
	}{
		{n: 10, size: 3, sizes: []int{3, 3, 3, 1}},
		{n: 10, size: 3, drop: true, sizes: []int{3, 3, 3}},
		{n: 10, size: 5, sizes: []int{5, 5}},
		{n: 10, size: 5, drop: true, sizes: []int{5, 5}},
		{n: 10, size: 10, sizes: []int{10}},
		{n: 10, size: 7, drop: true, sizes: []int{7}},
		{n: 4, size: 1, sizes: []int{1, 1, 1, 1}},
		{n: 1, size: 1, sizes: []int{1}},
	} {
		t.Run(fmt.Sprintf("%d of %d, drop %v", c.size, c.n, c.drop), func(t *testing.T) {
			b := minibatches(t, numbered(c.n), infer.MinibatchOptions{Size: c.size, DropLast: c.drop, Seed: 3})
			for epoch := range 4 {
				assert.Equal(t, infer.Position{Epoch: epoch}, b.Position())
				var sizes []int
				var all []int
				for _, ids := range epochIDs(t, b) {
					sizes = append(sizes, len(ids))
					all = append(all, ids...)
				}
				assert.Equal(t, c.sizes, sizes)
				slices.Sort(all)
				if c.drop && c.n%c.size != 0 {
					assert.Len(t, slices.Compact(all), c.n-c.n%c.size, "no datum twice")
				} else {
					assert.Equal(t, upTo(c.n), all)
				}
			}
		})
	}
}

// What DropLast leaves out is not always the same: over epochs all data are seen.
func TestDropLastSeesAllData(t *testing.T) {
	b := minibatches(t, numbered(10), infer.MinibatchOptions{Size: 7, DropLast: true})
	seen := map[int]bool{}
	for range 20 {
		for _, id := range nextIDs(t, b) {
			seen[id] = true
		}
	}
	assert.Len(t, seen, 10)
}

// The order is a Fisher-Yates shuffle driven by PCG-DXSM, seeded with (seed, epoch). These orders were computed by a
// program in another language that writes both out. If they change, checkpoints of older runs see other data.
func TestMinibatchOrder(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		want [][]int
	}{
		{1, [][]int{{6, 3, 1, 9, 7, 4, 8, 2, 0, 5}, {3, 5, 8, 2, 7, 1, 6, 4, 0, 9}}},
		{7, [][]int{{0, 8, 6, 4, 3, 5, 7, 1, 9, 2}}},
	} {
		// The order does not depend on the size of the batches.
		for _, size := range []int{1, 3, 5, 10} {
			b := minibatches(t, numbered(10), infer.MinibatchOptions{Size: size, Seed: c.seed})
			for epoch, want := range c.want {
				assert.Equal(t, want, slices.Concat(epochIDs(t, b)...), "seed %d, epoch %d, size %d", c.seed, epoch, size)
			}
		}
	}
}

func TestMinibatchSeeds(t *testing.T) {
	take := func(seed uint64, n int) (ids []int) {
		b := minibatches(t, numbered(20), infer.MinibatchOptions{Size: 6, Seed: seed})
		for range n {
			ids = append(ids, nextIDs(t, b)...)
		}
		return ids
	}
	assert.Equal(t, take(5, 13), take(5, 13), "one seed gives one sequence")
	// There are 20! ≈ 2·10¹⁸ orders: a hundred that are independent are all different.
	orders := map[string]bool{}
	for seed := range uint64(10) {
		b := minibatches(t, numbered(20), infer.MinibatchOptions{Size: 20, Seed: seed})
		for range 10 {
			orders[fmt.Sprint(nextIDs(t, b))] = true
		}
	}
	assert.Len(t, orders, 100, "10 seeds and 10 epochs give 100 orders")
}

func TestKeepOrder(t *testing.T) {
	b := minibatches(t, numbered(7), infer.MinibatchOptions{Size: 3, KeepOrder: true, Seed: 8})
	for range 3 {
		assert.Equal(t, [][]int{{0, 1, 2}, {3, 4, 5}, {6}}, epochIDs(t, b))
	}
	_, err := infer.Minibatches(numbered(7), infer.MinibatchOptions{Size: 3, KeepOrder: true, DropLast: true})
	require.ErrorContains(t, err, "the last 1 of 7 data would never be seen")
	b = minibatches(t, numbered(6), infer.MinibatchOptions{Size: 3, KeepOrder: true, DropLast: true})
	assert.Equal(t, [][]int{{0, 1, 2}, {3, 4, 5}}, epochIDs(t, b))
}

// From a position that was remembered, another iterator gives what the first one gave from there on: at every place of
// three epochs, forwards and back.
func TestMinibatchSeek(t *testing.T) {
	for _, o := range []infer.MinibatchOptions{{Size: 4, Seed: 2}, {Size: 4, Seed: 2, DropLast: true},
		{Size: 4, KeepOrder: true}} {
		first := minibatches(t, numbered(10), o)
		var at []infer.Position
		var given [][]int
		for first.Position().Epoch < 3 {
			at = append(at, first.Position())
			given = append(given, nextIDs(t, first))
		}
		assert.Equal(t, infer.Position{}, at[0])
		assert.Equal(t, infer.Position{Index: 1}, at[1])
		second := minibatches(t, numbered(10), o)
		for i := len(at) - 1; i >= 0; i-- {
			require.NoError(t, second.Seek(at[i]))
			assert.Equal(t, at[i], second.Position())
			for j := i; j < len(at); j++ {
				require.Equal(t, given[j], nextIDs(t, second), "%+v: batch %d from batch %d", o, j, i)
			}
		}
	}
}

func TestMinibatchSeekErrors(t *testing.T) {
	b := minibatches(t, numbered(10), infer.MinibatchOptions{Size: 4})
	nextIDs(t, b)
	for p, want := range map[infer.Position]string{
		{Epoch: -1}:          "infer.Minibatches: there is no batch 0 of epoch -1: an epoch has 3 batches",
		{Epoch: 2, Index: 3}: "infer.Minibatches: there is no batch 3 of epoch 2: an epoch has 3 batches",
		{Index: -1}:          "infer.Minibatches: there is no batch -1 of epoch 0: an epoch has 3 batches",
	} {
		assert.EqualError(t, b.Seek(p), want)
	}
	assert.Equal(t, infer.Position{Index: 1}, b.Position(), "what fails changes nothing")
}

func TestMinibatchErrors(t *testing.T) {
	for _, size := range []int{0, -3, 11} {
		_, err := infer.Minibatches(numbered(10), infer.MinibatchOptions{Size: size})
		assert.EqualError(t, err, fmt.Sprintf("infer.MinibatchOptions: Size is %d: it must be from 1 to the 10 data", size))
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
	for want, data := range map[string]infer.Batch{
		"infer.Minibatches: the batch is empty": nil,
		`infer.Minibatches: batch tensor "y" has 2 data, others 3`: {"x": vec(make([]float64, 3)),
			"y": vec(make([]float64, 2))},
		`infer.Minibatches: batch tensor "x" has shape []`: {"x": torch.Tensor{}},
	} {
		_, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 1})
		assert.ErrorContains(t, err, want)
	}

	// Data that are freed while they are in use.
	data := numbered(4)
	b := minibatches(t, data, infer.MinibatchOptions{Size: 2})
	torch.Free(data["row"])
	_, err := b.Next()
	assert.ErrorContains(t, err, `batch tensor "row": libtorch: `)
	assert.ErrorContains(t, err, "a tensor was used after it was freed")
	assert.Equal(t, infer.Position{}, b.Position())
	_, err = b.Fingerprint()
	assert.ErrorContains(t, err, `batch tensor "row": `)
	_, err = infer.Full(data).Fingerprint()
	assert.ErrorContains(t, err, `batch tensor "row": `)
}

// The fingerprint is the same for the same data and options, wherever the iterator stands, and differs when a run would
// see other batches.
func TestFingerprint(t *testing.T) {
	o := infer.MinibatchOptions{Size: 3, Seed: 1}
	make1 := func(change func(infer.Batch)) infer.Batch {
		data := numbered(6)
		change(data)
		return data
	}
	same := func(infer.Batch) {}
	edit := func(name string, i int, v float64) func(infer.Batch) {
		return func(b infer.Batch) {
			values := floats(b[name])
			values[i] = v
			require.NoError(t, torch.CopyFrom(b[name], values))
		}
	}
	prints := map[string]string{}
	for name, b := range map[string]infer.Batches{
		"as it is":       minibatches(t, make1(same), o),
		"full":           infer.Full(make1(same)),
		"another size":   minibatches(t, make1(same), infer.MinibatchOptions{Size: 2, Seed: 1}),
		"another seed":   minibatches(t, make1(same), infer.MinibatchOptions{Size: 3, Seed: 2}),
		"ordered":        minibatches(t, make1(same), infer.MinibatchOptions{Size: 3, Seed: 1, KeepOrder: true}),
		"dropping":       minibatches(t, make1(same), infer.MinibatchOptions{Size: 3, Seed: 1, DropLast: true}),
		"a first value":  minibatches(t, make1(edit("row", 0, 1e-300)), o),
		"a last value":   minibatches(t, make1(edit("row", 11, 0.5)), o),
		"a value of int": minibatches(t, make1(edit("id", 3, 9)), o),
		"a value of f32": minibatches(t, make1(edit("half", 5, 9)), o),
		"fewer data":     minibatches(t, numbered(5), o),
		"another name":   minibatches(t, make1(func(b infer.Batch) { b["rows"] = b["row"]; delete(b, "row") }), o),
		"another shape": minibatches(t, make1(func(b infer.Batch) {
			b["half"] = b["half"].Reshape(6, 1)
		}), o),
		"another type": minibatches(t, make1(func(b infer.Batch) {
			b["half"] = torch.Of(b["half"].T().MustTotype(gotch.Double,
				false))
		}), o),
		"another tensor":  minibatches(t, make1(func(b infer.Batch) { b["more"] = b["id"] }), o),
		"swapped tensors": minibatches(t, make1(func(b infer.Batch) { b["aa"], b["row"] = b["row"], b["id"] }), o),
	} {
		print, err := b.Fingerprint()
		require.NoError(t, err)
		if other, ok := prints[print]; ok {
			t.Errorf("%q and %q have the same fingerprint %s", name, other, print)
		}
		prints[print] = name
	}

	b := minibatches(t, numbered(6), o)
	nextIDs(t, b)
	print, err := b.Fingerprint()
	require.NoError(t, err)
	assert.Equal(t, "as it is", prints[print])
	if diff := cmp.Diff("minibatches of 3, seed 1, keep order false, drop last false, half[6 1 1] Float id[6] Int64 "+
		"row[6 2] Double ", print[:len(print)-16]); diff != "" {
		t.Error(diff)
	}
}

// The tensors of a batch belong to the scope that is open: when it closes they are gone, and the data are not.
func TestMinibatchesBelongToTheScope(t *testing.T) {
	data := numbered(6)
	before := unscoped()
	b := minibatches(t, data, infer.MinibatchOptions{Size: 2})
	var kept infer.Batch
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		var err error
		kept, err = b.Next()
		assert.Equal(t, 3, s.Owned(), "one for each tensor of the data")
		return err
	}))
	for name, x := range kept {
		assert.True(t, torch.Freed(x), name)
		assert.False(t, torch.Freed(data[name]), name)
	}
	assert.Equal(t, before, torch.UnscopedBytes())
}

// Goroutines that share minibatches see every datum once an epoch between them.
func TestMinibatchesOfManyGoroutines(t *testing.T) {
	const goroutines, epochs = 8, 16
	b := minibatches(t, numbered(10), infer.MinibatchOptions{Size: 3, Seed: 5})
	var mu sync.Mutex
	counts := map[int]int{}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range epochs * 4 / goroutines {
				ids := nextIDs(t, b)
				mu.Lock()
				for _, id := range ids {
					counts[id]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, counts, 10)
	for id, n := range counts {
		assert.Equal(t, epochs, n, "datum %d", id)
	}
	assert.Equal(t, infer.Position{Epoch: epochs}, b.Position())
}

// owned are batches of the user's.
type owned struct{ infer.Batches }

// Batches that a run draws on are refused to a second run until the first has ended. All of the data may be shared, and
// each run counts its own passes.
func TestBatchesOfOneRun(t *testing.T) {
	m := newLogistic(10, 2)
	run := func(b infer.Batches, o infer.Observer) error {
		_, err := infertest.Run(context.Background(), build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, m.logPosterior),
			pointOf(t, m.layout(t), 0, 0, 0), b, infer.Options{Chains: 1, Warmup: 2, Draws: 3, Observer: o})
		return err
	}
	small := func() infer.Batches { return minibatches(t, m.batch(), infer.MinibatchOptions{Size: 4}) }
	for name, c := range map[string]struct {
		b       infer.Batches
		refused bool
	}{"minibatches": {small(), true}, "of the user's": {&owned{small()}, true}, "all": {infer.Full(m.batch()), false}} {
		inner, before := error(nil), c.b.Position()
		require.NoError(t, run(c.b, infer.ObserverFunc(func(p infer.Progress) {
			if p.Step == 2 {
				inner = run(c.b, infer.Silent)
				assert.NoError(t, run(small(), infer.Silent), name)
			}
		})), name)
		if c.refused {
			require.ErrorIs(t, inner, infer.ErrConfig, name)
			require.ErrorContains(t, inner, "Batches is shared: another run is drawing on them", name)
		} else {
			require.NoError(t, inner, name)
			require.Equal(t, before, c.b.Position(), name)
		}
		require.NoError(t, run(c.b, infer.Silent), "%s, after the first run", name)
	}
}
