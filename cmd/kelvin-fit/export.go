package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// exportFile is the file that kelvin serve takes of a folder.
const exportFile = "model.kelvin"

// export runs `kelvin export`.
func (a *app) export(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	out := flags.String("out", "", "write to `FILE` (default: "+exportFile+" in the folder)")
	dirs, err := a.parse(flags, args, 1, 1)
	if err != nil {
		return err
	}
	f, err := open(dirs[0])
	if err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(dirs[0], exportFile)
	}
	if err := atomicfile.Replace(*out, func(w io.Writer) error {
		return f.model.ExportFitted(w, f.inf.Posterior)
	}); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "wrote %s\n", *out)
	return nil
}
