// Package command is what the examples' main functions have in common.
package command

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

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
