// Package command is what the examples' main functions have in common.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/kelvin-ppl/kelvin/torch"
)

// SideBySide calls f for 0 to n-1, one on each processor, with one thread of libtorch for each.
func SideBySide(n int, f func(i int) error) error {
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	failed := make([]error, n)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failed[i] = f(i)
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

// Main parses the flags, runs an example with a context that SIGINT and SIGTERM end, and ends the process: with status
// 2 for arguments that are no flags, and with 1 and a message for an error.
func Main(name string, run func(ctx context.Context) error) {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: %q is no flag: see -help\n", name, flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
