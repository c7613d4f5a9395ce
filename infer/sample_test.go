package infer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
)

// built is a transform as a method.
type built struct{ infer.Transform }

func (b built) Build(infer.Target) (infer.Transform, error) { return b.Transform, nil }

// walker is a method that drives itself: chain k goes k + 1 further in each transition. It says so in bytes that it
// goes on from.
type walker struct {
	counter
	fail int // the transition before which it fails, 0 for none
}

func (walker) Name() string    { return "walker" }
func (walker) Stats() []string { return []string{draws.StatLP, draws.StatDivergent} }

func (w walker) Drive(ctx context.Context, job infer.Job) (any, error) {
	at, err := job.Start.Values()
	if err != nil {
		return nil, err
	}
	first := 0
	if job.Resume != nil {
		if _, err := fmt.Sscan(string(job.Resume), &first); err != nil {
			return nil, err
		}
	}
	d := job.Layout.Dim()
	for i := range job.Warmup + job.Draws*job.Thin {
		if w.fail > 0 && i == w.fail {
			return "failed", errors.New("the walker fell")
		}
		for k := range job.Chains {
			x := at[k*d : (k+1)*d]
			for j := range x {
				x[j] += float64(k+1) + float64(job.FirstChain)
			}
			if i < first {
				continue
			}
			t := infer.Transition{Chain: k, Warmup: i < job.Warmup, X: x, Stats: []float64{-x[0], 0}, Gradients: 3}
			if t.Warmup || (i+1-job.Warmup)%job.Thin == 0 {
				if err := job.Record(t); err != nil {
					return nil, err
				}
			}
		}
		if job.Every > 0 && (i+1)%job.Every == 0 {
			if err := job.Snapshot(fmt.Append(nil, i+1)); err != nil {
				return nil, err
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return "walked", nil
}

func walk(t *testing.T, m infer.Method, o infer.Options) (*infer.Result, error) {
	t.Helper()
	program := infer.Handwritten(infer.Mean(wells, 10), pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0, 100), nil)
	if o.Observer == nil {
		o.Observer = infer.Silent
	}
	return infer.Run(context.Background(), program, m, o)
}

// A method that drives itself has its draws, statistics and details in the result, whatever the groups.
func TestDriver(t *testing.T) {
	var last infer.Progress
	o := infer.Options{Chains: 3, Warmup: 4, Draws: 5, Thin: 2,
		Observer: infer.ObserverFunc(func(p infer.Progress) { last = p })}
	r, err := walk(t, built{walker{}}, o)
	require.NoError(t, err)
	assert.Equal(t, "walked", r.Detail)
	assert.Equal(t, []string{"lp", "divergent"}, r.Draws.Stats())
	for k := range 3 {
		for i := range 5 {
			gone := float64((k + 1) * (4 + 2*(i+1)))
			assert.Equal(t, []float64{gone, 100 + gone}, r.Draws.Row(k, i))
		}
	}
	assert.EqualValues(t, 3*(4+5)*3, r.Gradients)
	assert.EqualValues(t, 27, last.Step)
	assert.EqualValues(t, 27, last.Steps)
	assert.False(t, last.Warming)
	assert.Equal(t, 5, last.Draws)
	assert.Equal(t, "walker", r.Draws.Attrs()[draws.AttrMethod])
	assert.Contains(t, last.String(), "walker, 3 chains, sampling 100 %")

	o.Group = 2
	grouped, err := walk(t, built{walker{}}, o)
	require.NoError(t, err)
	assert.Equal(t, []any{"walked", "walked"}, grouped.Detail)
	assert.Equal(t, r.Draws.Row(0, 4), grouped.Draws.Row(0, 4))
	assert.Equal(t, r.Draws.Row(2, 4), grouped.Draws.Row(2, 4), "chain 2 is the first of its group and has its own number")
	_, err = walk(t, built{walker{}}, infer.Options{Batches: minibatches(t, infer.Batch{"x": vec([]float64{1, 2})},
		infer.MinibatchOptions{Size: 1})})
	assert.ErrorContains(t, err,
		"infer.Options: Batches is given: walker needs all of the data in every update: leave it nil, or give infer.Full")
}

// Snapshots of a method that drives itself are due whenever the user's number of transitions is over; where nobody gave
// one, not so soon after another or after the beginning that short runs are all snapshots.
func TestSnapshotsAreDue(t *testing.T) {
	for _, every := range []int{0, 5} {
		due := []bool{}
		_, err := walk(t, built{asker{due: &due}}, infer.Options{Chains: 1, Warmup: 4, Draws: 20,
			Checkpoint: &infer.Checkpoint{Dir: t.TempDir(), Every: every}})
		require.NoError(t, err)
		assert.Equal(t, []bool{every > 0, every > 0}, due)
	}
}

// asker asks whether a snapshot is due before and after it makes one.
type asker struct {
	walker
	due *[]bool
}

func (a asker) Drive(_ context.Context, job infer.Job) (any, error) {
	*a.due = append(*a.due, job.Due())
	err := job.Snapshot([]byte("1"))
	*a.due = append(*a.due, job.Due())
	return nil, err
}

// A driver that fails leaves its draws; with a checkpoint it goes on where it was, and a sink has every draw once.
func TestDriverResumes(t *testing.T) {
	want, err := walk(t, built{walker{}}, infer.Options{Chains: 2, Warmup: 4, Draws: 20})
	require.NoError(t, err)
	dir := t.TempDir()
	var stored [2][][]float64
	ids := map[string]bool{}
	o := infer.Options{Chains: 2, Warmup: 4, Draws: 20, Checkpoint: &infer.Checkpoint{Dir: dir, Every: 5, Resume: true},
		Save: func(run string, from []int, block *draws.Draws) error {
			ids[run] = true
			for k := range 2 {
				stored[k] = stored[k][:from[k]] // what was written after the last checkpoint comes again
				for i := range block.Len(k) {
					stored[k] = append(stored[k], block.Row(k, i))
				}
			}
			return nil
		}}
	r, err := walk(t, built{walker{fail: 17}}, o)
	require.ErrorContains(t, err, "infer.Run: the walker fell")
	assert.Equal(t, 13, r.Draws.MinLen(), "they are not lost")
	got, err := walk(t, built{walker{}}, o)
	require.NoError(t, err)
	sameDraws(t, want.Draws, got.Draws)
	assert.Len(t, ids, 1)
	assert.NotContains(t, ids, "")
	for k := range 2 {
		require.Len(t, stored[k], 20)
		for i := range 20 {
			assert.Equal(t, want.Draws.Row(k, i), stored[k][i])
		}
	}
}

// A fit is made in the warm-up; its draws come from what was fitted, point i of a block from chain i mod K.
type fitter struct{ counter }

func (fitter) Sample(s infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	values, err := s.Position().Values()
	if err != nil {
		return infer.Params{}, err
	}
	d, k := s.Position().Layout.Dim(), s.Position().Chains()
	var flat []float64
	for i := range n {
		flat = append(flat, values[i%k*d:(i%k+1)*d]...)
	}
	out, err := torch.FromSlice(flat, n, d)
	return infer.Params{Layout: s.Position().Layout, Flat: out}, err
}

// pass is a fit that is one pass over the data, at a mode that another method finds.
type pass struct {
	fitter
	first infer.Method
}

func (pass) Passes() int                              { return 1 }
func (p pass) FindMode() (infer.Method, infer.Target) { return p.first, infer.Mean(wells, 0) }
func (pass) Name() string                             { return "pass" }
func (pass) Notes(s infer.State, run infer.RunSummary) []draws.Note {
	return []draws.Note{{Kind: "test", Text: fmt.Sprintf("%d updates, %d draws", run.Updates, run.Draws.Total())}}
}

func TestDrawsFromAFit(t *testing.T) {
	r, err := walk(t, built{fitter{}}, infer.Options{Chains: 2, Warmup: 7, Draws: 3})
	require.NoError(t, err)
	assert.EqualValues(t, 7, r.Updates)
	assert.Equal(t, [][][]float64{{{7, 107}, {7, 107}, {7, 107}}, {{7, 107}, {7, 107}, {7, 107}}}, valuesOf(t, r, "x"))

	// The mode is looked for in the warm-up: 6 updates of a counter; then the batches are seen once, from there.
	data := infer.Batch{"x": vec([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})}
	o := infer.Options{Chains: 2, Warmup: 6, Draws: 2, Batches: minibatches(t, data, infer.MinibatchOptions{Size: 4})}
	r, err = walk(t, built{pass{first: built{counter{}}}}, o)
	require.NoError(t, err)
	assert.EqualValues(t, 3, r.Updates, "three batches of at most 4 of 10 data")
	assert.Equal(t, []float64{9, 109}, r.Draws.Row(1, 1))
	require.Len(t, r.Draws.Notes(), 1)
	assert.Equal(t, "3 updates, 4 draws", r.Draws.Notes()[0].Text)
}

// noted is a sampler that has something to say of its run at its end.
type noted struct{ restorable }

func (noted) Name() string             { return "noted" }
func (noted) Attrs() map[string]string { return map[string]string{"color": "red"} }
func (noted) Notes(_ infer.State, run infer.RunSummary) []draws.Note {
	return []draws.Note{{Kind: "test", Text: fmt.Sprintf("%d draws", run.Draws.Total())}}
}

// Sinks keep what a run says of itself, also what it says at its end, when its last block is out: the block of 20
// updates is the last one.
func TestSinksHearTheEnd(t *testing.T) {
	for _, every := range []int{0, 5} {
		dir := t.TempDir()
		csv, zarr := &store.CSVSink{Base: filepath.Join(dir, "run")}, &store.ZarrSink{Path: filepath.Join(dir, "run.zarr")}
		o := infer.Options{Chains: 2, Warmup: 5, Draws: 15, SaveEvery: 10, Save: func(run string, from []int,
			block *draws.Draws) error {
			return errors.Join(csv.Save(run, from, block), zarr.Save(run, from, block))
		}}
		if every > 0 {
			o.Checkpoint = &infer.Checkpoint{Dir: filepath.Join(dir, "checkpoint"), Every: every}
		}
		r, err := walk(t, built{noted{}}, o)
		require.NoError(t, err)
		require.NoError(t, csv.Close())
		require.NoError(t, zarr.Close())
		require.Equal(t, "red", r.Draws.Attrs()["color"])
		require.Equal(t, []draws.Note{{Kind: "test", Text: "30 draws"}}, r.Draws.Notes())
		for _, path := range []string{csv.Base + "_*.csv", zarr.Path} {
			have, err := store.Open(path)
			require.NoError(t, err)
			assert.Equal(t, 30, have.Posterior.Total())
			assert.Equal(t, r.Draws.Attrs(), have.Posterior.Attrs(), path)
			assert.Equal(t, r.Draws.Notes(), have.Posterior.Notes(), path)
		}
	}
}

// A run that stands still most of the time is an error, with its draws.
func TestMostUpdatesHeld(t *testing.T) {
	held := counter{diverges: func(update int, _ int) bool { return update > 3 }}
	r, err := walk(t, built{held}, infer.Options{Chains: 2, Warmup: infer.None, Draws: 10})
	assert.ErrorIs(t, err, infer.ErrNonFinite)
	assert.ErrorContains(t, err, "70 % of the updates were held because the log posterior or its gradient was not "+
		"finite: lower the step size of infer_test.counter")
	assert.Equal(t, 10, r.Draws.MinLen())
	assert.EqualValues(t, 14, r.Held)
}

// Two runs must not share a folder: the second is refused and told who has it.
func TestCheckpointIsLocked(t *testing.T) {
	dir := t.TempDir()
	o := infer.Options{Chains: 1, Warmup: infer.None, Draws: 3, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}}
	second := error(nil)
	o.Observer = infer.ObserverFunc(func(p infer.Progress) {
		if p.Step == 2 {
			inner := o
			inner.Observer = nil
			_, second = walk(t, built{restorable{}}, inner)
		}
	})
	_, err := walk(t, built{restorable{}}, o)
	require.NoError(t, err)
	assert.ErrorIs(t, second, infer.ErrCheckpoint)
	assert.ErrorContains(t, second, fmt.Sprintf("it is in use by process %d: choose another folder, or wait", os.Getpid()))
	info, err := os.Stat(filepath.Join(dir, checkpointFile))
	require.NoError(t, err)
	assert.Zero(t, info.Mode().Perm()&0o077, "a checkpoint is its user's alone")
	t.Log("seen: the second run is refused with the first's process number")
}

// Without a start chains begin where density and gradient are finite, each from its own stream.
func TestHandwrittenStart(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"x": {}})
	positive := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		return x.Log().Sub(x), nil
	}
	program := infer.Handwritten(infer.Mean(positive, 0), infer.Params{Layout: l}, nil)
	p, err := program.Start(nil, 8, 1)
	require.NoError(t, err)
	x, err := p.Values()
	require.NoError(t, err)
	seen := map[float64]bool{}
	for _, v := range x {
		assert.Greater(t, v, 0.0)
		assert.Less(t, v, 2.0)
		seen[v] = true
	}
	assert.Len(t, seen, 8)
	nowhere := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return p.Get("x").Mul(math.NaN()), nil }
	_, err = infer.Sample(context.Background(), infer.Handwritten(infer.Mean(nowhere, 0), infer.Params{Layout: l}, nil),
		sgmcmc.SGLD{LR: infer.Constant(0.1)}, infer.Options{})
	assert.ErrorIs(t, err, infer.ErrNonFinite)
	assert.ErrorContains(t, err, "infer.Sample: chain 0: the log density or its gradient is not finite at 100 points "+
		"drawn uniformly from (-2, 2): give a start")
}

// A target at temperature T is exp(N·LogPosterior/T)·|J|: what the weights of an evaluation add up to.
func TestTargetDensity(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"x": {}})
	const n = 5
	prior := func(x torch.Tensor) torch.Tensor { return scaled(x.Square(), -0.5) }
	likelihood := func(x torch.Tensor) torch.Tensor { return scaled(x, 3) }
	jacobian := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return p.Get("x").Mul(7), nil }
	apart := infer.FromParts(func(p infer.Params, _ infer.Batch) (torch.Tensor, torch.Tensor) {
		x := p.Get("x").T()
		return prior(torch.Of(x)), likelihood(torch.Of(x))
	}, n)
	apart.LogJacobian = jacobian
	sum := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x").T()
		return prior(torch.Of(x)).Add(likelihood(torch.Of(x))), nil
	}, n)
	sum.LogJacobian = jacobian
	const x = 1.25
	for name, target := range map[string]infer.Target{"parts": apart, "sum": sum} {
		g, err := infer.NewGradient(target)
		require.NoError(t, err)
		for _, temperature := range []float64{0, 0.25, 1, 4} {
			e, err := g.ValueAndGrad(pointOf(t, l, x), nil, temperature/n)
			require.NoError(t, err)
			assert.InDelta(t, (-0.5*x*x+3*x)/n+temperature/n*7*x, e.Values[0], 1e-14, name)
			assert.InDelta(t, (-x+3)/n+temperature/n*7, floats(e.Grad)[0], 1e-14, name)
		}
	}
	// Tempering a part leaves a Jacobian of one's own as it is.
	half, err := infer.TemperLikelihood(apart, 2)
	require.NoError(t, err)
	g, err := infer.NewGradient(half)
	require.NoError(t, err)
	e, err := g.ValueAndGrad(pointOf(t, l, x), nil, 1.0/n)
	require.NoError(t, err)
	assert.InDelta(t, (-0.5*x*x+1.5*x+7*x)/n, e.Values[0], 1e-14)
	_, err = infer.NewGradient(infer.Target{LogPosterior: wells, Data: -1})
	assert.ErrorContains(t, err, "infer.Target: Data is -1: it must be the number of data, or 0")
}
