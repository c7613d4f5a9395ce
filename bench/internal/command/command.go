// Package command is what the main functions of the benchmarks with flags of their own have in common.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// JSON prints a report with -json.
func JSON(out io.Writer, report any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// Choose is those of all whose names are in a list separated by commas; missing is the error of a name that none has.
func Choose[T any](list string, all []T, name func(T) string, missing func(name string) error) ([]T, error) {
	var out []T
	for chosen := range strings.SplitSeq(list, ",") {
		chosen = strings.TrimSpace(chosen)
		i := slices.IndexFunc(all, func(x T) bool { return name(x) == chosen })
		if i < 0 {
			return nil, missing(chosen)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// Main runs a benchmark with the process's arguments and a context that an interrupt ends. An error ends the process
// with a message and status 1; a request for help is none.
func Main(name string, run func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
