package batch_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// rows are the data of a table: row i of x is (sin i, cos i), of y 2 sin i + noise without structure, of id i.
func rows(n int) (x, y []float64, id []int64) {
	for i := range n {
		s, c := math.Sincos(float64(i))
		x, y, id = append(x, s, c), append(y, 2*s+math.Sin(float64(i*i))), append(id, int64(i))
	}
	return x, y, id
}

// write writes the columns of n rows, and opens them.
func write(t testing.TB, n int) (*large.Table, string) {
	t.Helper()
	dir := t.TempDir()
	x, y, id := rows(n)
	put(t, filepath.Join(dir, "x.npy"), x, 2)
	put(t, filepath.Join(dir, "y.npy"), y)
	put(t, filepath.Join(dir, "id.npy"), id)
	return open(t, dir), dir
}

func put[T large.Value](t testing.TB, path string, values []T, shape ...int) {
	t.Helper()
	w, err := large.Create[T](path, torch.Int64s(shape)...)
	require.NoError(t, err)
	require.NoError(t, w.Write(values...))
	require.NoError(t, w.Close())
}

func open(t testing.TB, dir string) *large.Table {
	t.Helper()
	table, err := large.Open(map[string]string{"x": filepath.Join(dir, "x.npy"), "y": filepath.Join(dir, "y.npy"),
		"id": filepath.Join(dir, "id.npy")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = table.Close() })
	return table
}

func load(t testing.TB, table *large.Table, o batch.LoaderOptions) *batch.Loader {
	t.Helper()
	l, err := batch.NewLoader(table, o)
	require.NoError(t, err)
	return l
}

// next are the ids of the next batch, whose other columns must be of the same rows.
func next(t testing.TB, l infer.Batches) (ids []int) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		b, err := l.Next()
		require.NoError(t, err)
		ids = torch.Must(torch.ToSlice[int](b["id"]))
		x, y := torch.Must(torch.ToSlice[float64](b["x"])), torch.Must(torch.ToSlice[float64](b["y"]))
		allX, allY, _ := rows(slices.Max(ids) + 1)
		for i, id := range ids {
			require.Equal(t, allX[2*id:2*id+2], x[2*i:2*i+2])
			require.Equal(t, allY[id], y[i])
		}
		require.Equal(t, []int{len(ids), 2}, b["x"].Shape())
		return nil
	}))
	return ids
}

// Each epoch has every row once, in an order of its own; batches are the same however many are read ahead, and from
// wherever a run goes on.
func TestBatches(t *testing.T) {
	table, _ := write(t, 103)
	o := batch.LoaderOptions{Size: 10, Seed: 5, Ahead: infer.None}
	l := load(t, table, o)
	var want [][]int
	var at []infer.Position
	for epoch := range 4 {
		var seen []int
		for i := range 11 {
			require.Equal(t, infer.Position{Epoch: epoch, Index: i}, l.Position())
			at = append(at, l.Position())
			want = append(want, next(t, l))
			require.Len(t, want[len(want)-1], 10-7*(i/10))
			seen = append(seen, want[len(want)-1]...)
		}
		require.False(t, slices.IsSorted(seen))
		slices.Sort(seen)
		_, _, ids := rows(103)
		for i, id := range seen {
			require.EqualValues(t, ids[i], id)
		}
	}
	require.NotEqual(t, want[0], want[11])
	for _, ahead := range []int{0, 1, 3, 50} {
		o.Ahead = ahead
		l := load(t, table, o)
		for i, ids := range want {
			require.Equal(t, ids, next(t, l), "ahead %d, batch %d", ahead, i)
		}
		for _, i := range []int{43, 0, 0, 17, 16, 17, 18, 18, 10, 11} { // back by one, the same, on, elsewhere
			require.NoError(t, l.Seek(at[i]))
			require.Equal(t, at[i], l.Position())
			require.Equal(t, want[i], next(t, l), "ahead %d, sought %d", ahead, i)
		}
	}
	o.Seed++
	assert.NotEqual(t, want[0], next(t, load(t, table, o)))

	o.KeepOrder, o.DropLast = true, true
	_, err := batch.NewLoader(table, o)
	require.ErrorContains(t, err, "the last 3 of 103 rows would never be seen")
	o.DropLast = false
	l = load(t, table, o)
	for i := range 10 {
		ids := next(t, l)
		assert.Equal(t, 10*i, ids[0])
		assert.Equal(t, 10*i+9, ids[9])
	}
	assert.Equal(t, []int{100, 101, 102}, next(t, l))
	assert.Equal(t, infer.Position{Epoch: 1}, l.Position())
}

// program is a regression on the first part of the rows, whose plate has n.
func program(t testing.TB, table *large.Table) infer.Program {
	t.Helper()
	part, err := load(t, table, batch.LoaderOptions{Size: 10}).Next()
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 1).Expand(2))
		c.Plate("data", table.Rows(), func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").MatMul(w), 1), c.Data("y"))
		}, ppl.Minibatch)
	}, part)
	require.NoError(t, err)
	return p
}

// In the order of the files a run has the draws of the same data in memory, to the bit: by stochastic-gradient MCMC and
// by a variational fit.
func TestRunsAsInMemory(t *testing.T) {
	table, _ := write(t, 103)
	p := program(t, table)
	x, y, id := rows(103)
	memory := infer.Batch{"x": torch.New(x, 103, 2), "y": torch.New(y),
		"id": torch.New(id)}
	for name, method := range map[string]infer.Method{
		"SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.02)},
		"SVI":   svi.SVI{},
	} {
		want, err := infer.Minibatches(memory, infer.MinibatchOptions{Size: 10, KeepOrder: true})
		require.NoError(t, err)
		o := infer.Options{Chains: 2, Warmup: 50, Draws: 60, Seed: 3, Observer: infer.Silent, Batches: want}
		expected, err := infer.Sample(context.Background(), p, method, o)
		require.NoError(t, err, name)
		o.Batches = load(t, table, batch.LoaderOptions{Size: 10, KeepOrder: true})
		have, err := infer.Sample(context.Background(), p, method, o)
		require.NoError(t, err, name)
		for c := range 2 {
			for j := range 2 {
				require.Equal(t, expected.Element(c, j), have.Element(c, j), name)
			}
		}
	}
}

// A run that goes on from a checkpoint has the draws of one that was never stopped. Changed files are refused.
func TestResume(t *testing.T) {
	table, dir := write(t, 103)
	p := program(t, table)
	sample := func(table *large.Table, checkpoint string, draws int) ([]float64, error) {
		o := infer.Options{Chains: 1, Warmup: 30, Draws: draws, Seed: 3, Observer: infer.Silent,
			Batches: load(t, table, batch.LoaderOptions{Size: 10, Seed: 2})}
		if checkpoint != "" {
			o.Checkpoint = &infer.Checkpoint{Dir: checkpoint, Every: 7, Resume: true}
		}
		d, err := infer.Sample(context.Background(), p, sgmcmc.SGHMC{LR: infer.Constant(0.02)}, o)
		if err != nil {
			return nil, err
		}
		return slices.Concat(d.Element(0, 0), d.Element(0, 1)), nil
	}
	want, err := sample(table, "", 60)
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "run")
	_, err = sample(table, folder, 23)
	require.NoError(t, err)
	have, err := sample(open(t, dir), folder, 60)
	require.NoError(t, err)
	require.Equal(t, want, have)

	file := filepath.Join(dir, "y.npy")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	content[len(content)-1] ^= 1
	require.NoError(t, os.WriteFile(file, content, 0o644))
	_, err = sample(open(t, dir), folder, 80)
	require.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.ErrorContains(t, err, "loader of 10")
}

// A file that becomes shorter ends a run with an error that names it, and no goroutine stays.
func TestShrinks(t *testing.T) {
	before := runtime.NumGoroutine()
	table, dir := write(t, 5000)
	p := program(t, table)
	l := load(t, table, batch.LoaderOptions{Size: 100})
	next(t, l)
	file := filepath.Join(dir, "y.npy")
	require.NoError(t, os.Truncate(file, 2000))
	_, err := infer.Sample(context.Background(), p, sgmcmc.SGHMC{LR: infer.Constant(0.01)},
		infer.Options{Observer: infer.Silent, Batches: l})
	require.ErrorContains(t, err, file+`, column "y": it ends at byte`)
	_, err = l.Fingerprint()
	require.ErrorContains(t, err, "it has 2000 bytes, and had")
	for runtime.NumGoroutine() > before { // else the test ends by the limit of go test
		time.Sleep(time.Millisecond)
	}

	table, _ = write(t, 5000)
	l = load(t, table, batch.LoaderOptions{Size: 100})
	require.NoError(t, table.Close())
	at := l.Position()
	_, err = l.Next()
	require.ErrorIs(t, err, os.ErrClosed)
	require.Equal(t, at, l.Position())
}

// Options that cannot be are errors that say what would be right.
func TestErrors(t *testing.T) {
	table, _ := write(t, 10)
	for want, o := range map[string]batch.LoaderOptions{
		"from 1 to the 10 rows": {},
		"Size is 11":            {Size: 11},
		"Size is -1":            {Size: -1},
		"Ahead is -2":           {Size: 1, Ahead: -2},
		"Ahead is 1025":         {Size: 1, Ahead: 1025},
	} {
		_, err := batch.NewLoader(table, o)
		require.ErrorIs(t, err, infer.ErrConfig)
		assert.ErrorContains(t, err, want)
	}
	_, err := batch.NewLoader(nil, batch.LoaderOptions{Size: 1})
	require.ErrorContains(t, err, "the table is empty")
	l := load(t, table, batch.LoaderOptions{Size: 3})
	for _, p := range []infer.Position{{Index: 4}, {Index: -1}, {Epoch: -1}} {
		assert.ErrorContains(t, l.Seek(p), "an epoch has 4 batches")
	}
	var none *batch.Loader
	_, err = none.Next()
	assert.ErrorContains(t, err, "use batch.NewLoader")
	_, err = new(batch.Loader).Fingerprint()
	assert.ErrorContains(t, err, "use batch.NewLoader")
	assert.ErrorContains(t, none.Seek(infer.Position{}), "use batch.NewLoader")
	assert.Zero(t, none.Position())
}
