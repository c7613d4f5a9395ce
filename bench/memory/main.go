// Command memory shows that gradients do not use up memory: it evaluates the value and gradient of eight schools a
// million times and prints the process's resident memory at the start, after a warm-up, and after each tenth.
//
//	go run ./bench/memory [-n 1000000] [-chains K] [-unscoped] [-tier eager|vm|native]
//
// It exits with 1 when resident memory has grown by more than 50 MB since the start. With -unscoped the results of an
// evaluation belong to no scope, and the garbage collector has to find them. With -tier the gradient is compiled: each
// evaluation is a call, and each hundredth one is another batch.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
)

const (
	warmUp = 10_000 // evaluations before the first reading
	parts  = 10     // readings
	limit  = 50.0   // MB, of 10^6 bytes
)

func main() {
	n := flag.Int("n", 1_000_000, "evaluations of value and gradient")
	chains := flag.Int("chains", 0, "evaluate so many chains at once through vmap; 0: one point, without vmap")
	unscoped := flag.Bool("unscoped", false, "leave the results to the garbage collector")
	tier := flag.String("tier", string(native.Eager), "who evaluates: eager, vm or native")
	flag.Parse()
	command.Main("memory", func(ctx context.Context, _ []string, _ io.Writer) error {
		return watch(ctx, *n, *chains, *unscoped, native.Tier(*tier))
	})
}

// watch evaluates n times and returns an error when memory grows beyond the limit.
func watch(ctx context.Context, n, chains int, unscoped bool, tier native.Tier) error {
	if n < 1 || chains < 0 {
		return fmt.Errorf("-n %d -chains %d: there must be at least one evaluation, and not a negative number of chains",
			n, chains)
	}
	if _, err := resident(); err != nil {
		return err
	}
	m, err := bench.NewSchools(torch.CPU)
	if err != nil {
		return err
	}
	evaluate, shape := torch.ValueAndGrad, []int{bench.SchoolsDim}
	if chains > 0 {
		evaluate, shape = torch.VmapValueAndGrad, []int{chains, bench.SchoolsDim}
	}
	x, err := torch.FromSlice(bench.SchoolsStart(max(1, chains)), shape...)
	if err != nil {
		return err
	}
	once := func() error {
		_, _, err := evaluate(m.LogDensity, x)
		return err
	}
	if tier != native.Eager {
		if once, err = compiled(tier, max(1, chains)); err != nil {
			return err
		}
	} else if !unscoped {
		inner := once
		once = func() error { return torch.Do(func(*torch.Scope) error { return inner() }) }
	}
	times := func(count int) error {
		for range count {
			if err := errors.Join(ctx.Err(), once()); err != nil {
				return err
			}
		}
		return nil
	}

	if err := times(warmUp); err != nil {
		return err
	}
	first, err := resident()
	if err != nil {
		return err
	}
	fmt.Printf("%12s %14s %10s %14s\n", "evaluations", "resident MB", "grown MB", "evaluations/s")
	fmt.Printf("%12d %14.1f %10.1f %14s\n", 0, first, 0.0, "-")
	largest := 0.0
	for done := 0; done < n; {
		count := min(max(1, n/parts), n-done)
		start := time.Now()
		if err := times(count); err != nil {
			return err
		}
		done += count
		now, err := resident()
		if err != nil {
			return err
		}
		largest = max(largest, now-first)
		fmt.Printf("%12d %14.1f %10.1f %14.0f\n", done, now, now-first, float64(count)/time.Since(start).Seconds())
	}
	runtime.KeepAlive(x)
	if largest > limit {
		return fmt.Errorf("resident memory grew by %.1f MB in %d evaluations; at most %.0f MB are allowed", largest, n, limit)
	}
	fmt.Printf("resident memory grew by at most %.1f MB; %.0f MB are allowed\n", largest, limit)
	return nil
}
