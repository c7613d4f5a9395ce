package main

import (
	"context"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// lengths are how long the runs of NUTS are.
type lengths struct{ chains, warmup, draws int }

// sampled is one run of NUTS.
type sampled struct {
	seconds, compiling float64 // of sampling, and of compiling where that is only known now
	ess                float64
	draws              int
	means              map[string]moment
}

// kelvin is Kelvin's side of a posterior.
type kelvin struct {
	posterior
	program *ppl.Program
	f       *native.Func
	tier    string
}

// compile is ppl.Compile and native code in an empty cache, in seconds.
func (k *kelvin) compile() (float64, error) {
	began := time.Now()
	program, err := ppl.Compile(k.model, k.batch)
	if err != nil {
		return 0, err
	}
	k.program = program
	start, err := program.Start(k.batch, 1, 1)
	if err != nil {
		return 0, err
	}
	if start, err = infer.NewParams(start.Layout, firstRow(start)); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "kelvin-peers")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	f, report, err := infer.Compile(program.Target(), start, k.batch, native.Options{CacheDir: dir})
	if err != nil {
		return 0, err
	}
	k.f, k.tier = f, report.String()
	return time.Since(began).Seconds(), nil
}

func firstRow(p infer.Params) []float64 {
	values, err := p.Values()
	if err != nil {
		return nil // which NewParams refuses
	}
	return values[:p.Layout.Dim()]
}

func (k *kelvin) sample(ctx context.Context, l lengths, seed uint64) (sampled, error) {
	began := time.Now()
	d, err := infer.Sample(ctx, k.program, k.method, infer.Options{Chains: l.chains, Warmup: l.warmup, Draws: l.draws,
		Seed: seed, Observer: infer.Silent})
	if err != nil {
		return sampled{}, err
	}
	seconds := time.Since(began).Seconds()
	named := elements(d)
	ess, err := leastESS(named, k.names)
	return sampled{seconds: seconds, ess: ess, draws: l.chains * l.draws, means: moments(named, k.names)}, err
}

// elements are draws by Stan's names.
func elements(d *draws.Draws) map[string][][]float64 {
	out := map[string][][]float64{}
	for _, s := range d.Sites() {
		for i := range s.Size {
			x := make([][]float64, d.Chains())
			for c := range x {
				x[c] = d.Element(c, s.Offset+i)
			}
			out[posteriors.StanName(s, i)] = x
		}
	}
	return out
}

// gradient is the microseconds of value and gradient, as long as it takes.
func (k *kelvin) gradient(seconds float64) (float64, error) {
	program := k.program
	x := make([]float64, program.Layout().Dim())
	grad := make([]float64, len(x))
	call := func() error {
		_, err := k.f.Eval(x, 1/float64(program.Data()), grad)
		return err
	}
	if k.f == nil {
		return 0, nil
	}
	return fastest(seconds, call)
}

// fastest is the least time of a call, in microseconds, over segments of a millisecond.
func fastest(seconds float64, call func() error) (float64, error) {
	n, best := 1, 0.0
	for end := time.Now().Add(time.Duration(seconds * float64(time.Second))); time.Now().Before(end); {
		began := time.Now()
		for range n {
			if err := call(); err != nil {
				return 0, err
			}
		}
		took := time.Since(began)
		if us := float64(took.Nanoseconds()) / 1e3 / float64(n); best == 0 || us < best {
			best = us
		}
		if took < time.Millisecond {
			n *= 2
		}
	}
	return best, nil
}
