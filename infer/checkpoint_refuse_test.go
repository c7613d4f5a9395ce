package infer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// stopped is the folder of a run that was cancelled with 8 draws of 3 chains.
func stopped(t testing.TB) (job, string) {
	t.Helper()
	j, dir := jobs()["SGHMC, 3 chains, float32 false"], t.TempDir()
	require.Equal(t, 8, j.cancelAt(t, dir, 46).Draws.MinLen())
	return j, dir
}

// refused resumes, and asserts that this is an error that has nothing done.
func refused(t testing.TB, j job, dir string) error {
	t.Helper()
	r, err := j.run(context.Background(), t, dir, 1000, func(infer.Progress) { t.Error("an update was made") })
	require.ErrorIs(t, err, infer.ErrCheckpoint)
	require.Nil(t, r)
	return err
}

// A checkpoint cut off anywhere is refused with the length that is left; nothing crashes, and no part of it is used.
func TestTruncatedCheckpoint(t *testing.T) {
	j, dir := stopped(t)
	path := filepath.Join(dir, checkpointFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	lengths := []int{0, 1, 19, 20, 21, 27, 28, 29, 59, 60, 61, len(whole) - 33, len(whole) - 32, len(whole) - 31,
		len(whole) - 1}
	for n := 30; n < len(whole); n += 37 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		err := refused(t, j, dir)
		assert.ErrorContains(t, err, "infer.Run: checkpoint in "+dir+": "+path+" is truncated or damaged (")
		assert.ErrorContains(t, err,
			fmt.Sprintf("; %d bytes); remove the folder to start again: checkpoint cannot be used", n))
	}
	// So is one that something was added to, and a file that is not one.
	for _, content := range [][]byte{append(append([]byte{}, whole...), 0), make([]byte, len(whole)),
		[]byte("kelvin checkpoint 2\n" + string(whole[20:]))} {
		require.NoError(t, os.WriteFile(path, content, 0o644))
		assert.ErrorContains(t, refused(t, j, dir), "is truncated or damaged (")
	}
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	sameResult(t, j.whole(t), j.resume(t, dir))
	t.Logf("seen: checkpoint, %d cuts refused", len(lengths))
}

// One flipped bit at any place is noticed: the checksum is SHA-256.
func TestDamagedCheckpoint(t *testing.T) {
	j, dir := stopped(t)
	path := filepath.Join(dir, checkpointFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		at, bit := r.IntN(len(whole)), byte(1)<<r.IntN(8)
		whole[at] ^= bit
		require.NoError(t, os.WriteFile(path, whole, 0o644))
		assert.ErrorContains(t, refused(t, j, dir), "is truncated or damaged (", "byte %d", at)
		whole[at] ^= bit
	}
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	sameResult(t, j.whole(t), j.resume(t, dir))
	t.Log("seen: checkpoint, 150 flips refused")
}

// The draws that the checkpoint covers must be there, to the bit.
func TestDamagedDraws(t *testing.T) {
	j, dir := stopped(t)
	path := filepath.Join(dir, drawsFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	// 8 draws of 3 chains, each of a number, 4 values and 3 statistics of 8 bytes.
	require.Len(t, whole, 8*3*(1+4+3)*8)
	for _, n := range []int{0, 1, 7, 8, 168, len(whole) / 2, len(whole) - 8, len(whole) - 1} {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		assert.ErrorContains(t, refused(t, j, dir), fmt.Sprintf(
			"%s is cut off: the checkpoint covers 24 draws of 64 bytes, the file has %d bytes", path, n))
	}
	for _, at := range []int{0, 500, len(whole) - 1} {
		whole[at] ^= 1
		require.NoError(t, os.WriteFile(path, whole, 0o644))
		assert.ErrorContains(t, refused(t, j, dir), "is damaged: its checksum is not that of the checkpoint")
		whole[at] ^= 1
	}
	require.NoError(t, os.Remove(path))
	_, err = j.run(context.Background(), t, dir, 1000, nil)
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.ErrorContains(t, err, "the file has 0 bytes")
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	sameResult(t, j.whole(t), j.resume(t, dir))
}

// A checkpoint of another run is refused with what differs, its value and this run's. What may differ is Draws.
func TestCheckpointOfAnotherRun(t *testing.T) {
	m := newLogistic(10, 2)
	type args struct {
		method infer.Method
		f      infer.LogPosterior
		p      infer.Params
		data   infer.Batch
		o      infer.MinibatchOptions
		c      infer.Options
		full   bool
	}
	usual := func(dir string) args {
		return args{method: sgmcmc.SGLD{LR: infer.Constant(0.1)}, f: m.logPosterior, p: pointOf(t, m.layout(t), 0, 0, 0),
			data: m.batch(),
			o:    infer.MinibatchOptions{Size: 4}, c: infer.Options{Warmup: 2, Draws: 3, Thin: 2, Chains: 3, Seed: 1,
				Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true, Model: "pima"}}}
	}
	run := func(a args) error {
		var b infer.Batches = infer.Full(a.data)
		if !a.full {
			b = minibatches(t, a.data, a.o)
		}
		_, err := infertest.Run(context.Background(), build(t, a.method, a.f), a.p, b, a.c)
		return err
	}
	dir := filepath.Join(t.TempDir(), "of", "a", "run")
	require.NoError(t, run(usual(dir)))
	before, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	require.NoError(t, err)

	changed := m.batch()
	changed["x"] = scaled(changed["x"], 2)
	two := m.layout(t).Sites
	two[0].Name = "c" // for b
	for name, c := range map[string]struct {
		change func(a *args)
		want   string
	}{
		"model":    {func(a *args) { a.c.Checkpoint.Model = "german" }, "its model is pima, this run's german"},
		"no model": {func(a *args) { a.c.Checkpoint.Model = "" }, "its model is pima, this run's "},
		"method": {func(a *args) { a.method = sgmcmc.SGHMC{LR: infer.Constant(0.1)} },
			"its method is sgmcmc.SGLD, this run's sgmcmc.SGHMC"},
		"another family": {func(a *args) { a.method = optim.SGD{LR: infer.Constant(0.1)} },
			"its method is sgmcmc.SGLD, this run's optim.SGD"},
		"site names": {func(a *args) { a.p.Layout = &infer.Layout{Sites: two} },
			"its sites is b[] w[2], this run's c[] w[2]"},
		"shapes": {func(a *args) { a.p = pointOf(t, layoutOf(t, infer.Shapes{"b": {1}, "w": {2}}), 0, 0, 0) },
			"its sites is b[] w[2], this run's b[1] w[2]"},
		"chains":   {func(a *args) { a.c.Chains = 4 }, "its chains is 3, this run's 4"},
		"seed":     {func(a *args) { a.c.Seed = 7 }, "its seed is 1, this run's 7"},
		"burn-in":  {func(a *args) { a.c.Warmup = 3 }, "its warm-up is 2, this run's 3"},
		"thinning": {func(a *args) { a.c.Thin = 0 }, "its thinning is 2, this run's 1"},
		"no draws": {func(a *args) { a.c.Discard = true }, "its Discard is false, this run's true"},
		"data": {func(a *args) { a.data = changed },
			"its data is minibatches of 4, seed 0, keep order false, drop last false, x[10 2] Double y[10] Double "},
		"fewer data":   {func(a *args) { a.data = newLogistic(9, 2).batch() }, "x[9 2] Double y[9] Double "},
		"batch size":   {func(a *args) { a.o.Size = 5 }, "this run's minibatches of 5, seed 0"},
		"shuffles":     {func(a *args) { a.o.Seed = 5 }, "this run's minibatches of 4, seed 5"},
		"full batches": {func(a *args) { a.full = true }, "this run's full x[10 2] Double y[10] Double "},
		"type":         {func(a *args) { a.p = in32(t, a.p) }, "its point is [3 3] Double, this run's [3 3] Float"},
	} {
		t.Run(name, func(t *testing.T) {
			a := usual(dir)
			c.change(&a)
			err := run(a)
			require.ErrorIs(t, err, infer.ErrCheckpoint)
			assert.ErrorContains(t, err, "infer.Run: checkpoint in "+dir+": it is of another run: ")
			assert.ErrorContains(t, err, c.want)
			after, err := os.ReadFile(filepath.Join(dir, checkpointFile))
			require.NoError(t, err)
			assert.Equal(t, before, after, "the checkpoint is left alone")
		})
	}
	a := usual(dir)
	a.c.Draws = 4
	assert.NoError(t, run(a))
}

// One chain with a chain axis is another point than one without.
func TestCheckpointOfAPointWithoutChains(t *testing.T) {
	l, dir := layoutOf(t, infer.Shapes{"w": {2}}), t.TempDir()
	c := infer.Options{Warmup: infer.None, Draws: 2, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}}
	ran(t, restorable{}, pointOf(t, l, 1, 2), infer.Full(nil), c)
	_, err := infertest.Run(context.Background(), restorable{}, infer.Params{Layout: l, Flat: vec([]float64{1, 2}, 1, 2)},
		infer.Full(nil), c)
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.ErrorContains(t, err, "it is of another run: its point is [2] Double, this run's [1 2] Double")
}

// The other way round: a run without draws cannot be gone on with as one that has them, whose first would be missing.
func TestCheckpointWithoutDraws(t *testing.T) {
	p, dir := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 1), t.TempDir()
	c := infer.Options{Warmup: infer.None, Draws: 2, Discard: true, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}}
	ran(t, restorable{}, p, infer.Full(nil), c)
	c.Draws, c.Discard = 4, false
	_, err := infertest.Run(context.Background(), restorable{}, p, infer.Full(nil), c)
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.ErrorContains(t, err, "it is of another run: its Discard is true, this run's false")
}

// Without Resume a checkpoint is not overwritten by accident.
func TestCheckpointWithoutResume(t *testing.T) {
	p, dir := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 1), t.TempDir()
	c := infer.Options{Warmup: infer.None, Draws: 5, Checkpoint: &infer.Checkpoint{Dir: dir}}
	ran(t, restorable{}, p, infer.Full(nil), c)
	files := func() (out []string) {
		for _, name := range []string{checkpointFile, drawsFile} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			out = append(out, string(b))
		}
		return out
	}
	before := files()
	_, err := infertest.Run(context.Background(), restorable{}, p, infer.Full(nil), c)
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.EqualError(t, err, "infer.Run: checkpoint in "+dir+
		": there is a checkpoint after 5 updates; set Resume to go on from it, or remove the folder: checkpoint cannot be "+
		"used")
	assert.Equal(t, before, files())
}

func TestCheckpointFolderErrors(t *testing.T) {
	p, tmp := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 1), t.TempDir()
	run := func(transform infer.Transform, c *infer.Checkpoint, o infer.Observer) (*infer.Result, error) {
		return infertest.Run(context.Background(), transform, p, infer.Full(nil),
			infer.Options{Warmup: infer.None, Draws: 9, Checkpoint: c, Observer: o})
	}
	t.Run("no folder named", func(t *testing.T) {
		_, err := run(restorable{}, &infer.Checkpoint{}, nil)
		assert.EqualError(t, err, `infer.Run: infer.Checkpoint: Dir is "": a folder is required`)
		assert.ErrorIs(t, err, infer.ErrConfig)
	})
	t.Run("below a file", func(t *testing.T) {
		file := filepath.Join(tmp, "file")
		require.NoError(t, os.WriteFile(file, nil, 0o644))
		_, err := run(restorable{}, &infer.Checkpoint{Dir: filepath.Join(file, "run")}, nil)
		assert.ErrorContains(t, err, "infer.Run: checkpoint in "+filepath.Join(file, "run")+": mkdir ")
	})
	t.Run("no permission", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may write everywhere")
		}
		dir := filepath.Join(tmp, "locked")
		require.NoError(t, os.Mkdir(dir, 0o555))
		_, err := run(restorable{}, &infer.Checkpoint{Dir: dir}, nil)
		assert.ErrorIs(t, err, os.ErrPermission)
	})
	t.Run("folders in the way", func(t *testing.T) {
		for name, what := range map[string]string{checkpointFile: "is a directory", drawsFile: "is a folder"} {
			dir := filepath.Join(tmp, "with "+name)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
			r, err := run(restorable{}, &infer.Checkpoint{Dir: dir}, nil)
			assert.Nil(t, r)
			assert.ErrorContains(t, err, name)
			assert.ErrorContains(t, err, what)
		}
	})
	t.Run("gone in mid-run", func(t *testing.T) {
		for then, what := range map[string]string{"": " was removed while", "made anew": " was removed while",
			"of another run": " was replaced by another one while"} {
			dir := filepath.Join(tmp, "gone, "+then)
			r, err := run(restorable{}, &infer.Checkpoint{Dir: dir, Every: 6}, infer.ObserverFunc(func(p infer.Progress) {
				if p.Step != 3 {
					return
				}
				require.NoError(t, os.RemoveAll(dir))
				if then != "" {
					require.NoError(t, os.Mkdir(dir, 0o700))
				}
				if then == "of another run" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, drawsFile), []byte("draws"), 0o600))
				}
			}))
			assert.ErrorContains(t, err, "infer.Run: after 6 of 9 updates: "+filepath.Join(dir, drawsFile)+what)
			require.NotNil(t, r)
			assert.Equal(t, 6, r.Draws.MinLen(), "the draws are not lost")
			assert.NoFileExists(t, filepath.Join(dir, checkpointFile))
			if then == "of another run" {
				have, err := os.ReadFile(filepath.Join(dir, drawsFile))
				require.NoError(t, err)
				assert.Equal(t, "draws", string(have))
			}
		}
	})
	t.Run("gone when cancelled", func(t *testing.T) {
		dir := filepath.Join(tmp, "gone too")
		ctx, cancel := context.WithCancel(context.Background())
		r, err := infertest.Run(ctx, restorable{}, p, infer.Full(nil),
			infer.Options{Warmup: infer.None, Draws: 9,
				Checkpoint: &infer.Checkpoint{Dir: dir}, Observer: infer.ObserverFunc(func(p infer.Progress) {
					require.NoError(t, os.RemoveAll(dir))
					cancel()
				})})
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, os.ErrNotExist)
		assert.ErrorContains(t, err, "infer.Run: after 1 of 9 updates: context canceled; the checkpoint was not saved: "+dir)
		assert.Equal(t, 1, r.Draws.MinLen())
	})
	t.Run("a method without Restore", func(t *testing.T) {
		_, err := run(counter{}, &infer.Checkpoint{Dir: filepath.Join(tmp, "none")}, nil)
		assert.ErrorIs(t, err, infer.ErrCheckpoint)
		assert.ErrorContains(t, err, "the method infer_test.counter cannot be restored from a checkpoint (it has no "+
			"Restore): checkpoint cannot be used")
		assert.NoDirExists(t, filepath.Join(tmp, "none"))
	})
}

// A state with a tensor whose values a checkpoint would not keep exactly is an error when it is saved, not later.
func TestCheckpointOfAnOddTensor(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {}})
	p := infer.Params{Layout: l, Flat: torch.Of(ts.MustOnes([]int64{1}, gotch.Int64, gotch.CPU))}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := infertest.Run(ctx, restorable{}, p, infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 1, Checkpoint: &infer.Checkpoint{Dir: t.TempDir()}})
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.ErrorContains(t, err, "saving params: a tensor of type Int64 cannot be saved")
}
