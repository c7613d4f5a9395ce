package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// Cell is one run of a sweep.
type Cell struct {
	Program infer.Program // sampled in this cell
	Method  infer.Method  // that samples it
	Params  any           // of the job, made JSON; nil for Options.Params
	// Save gets the draws of the cell; nil for none. See Options. A single cell may leave it to Options.Save.
	Save func(run string, from []int, block *draws.Draws) error
}

// Sample is [infer.Sample] on a cluster: the draws of infer.Sample(ctx, program, method, o.Options), bit for bit, with
// the group of chains that the package comment names. The workers build program and method from the job that they have
// registered; that they are these is compared. Draws of chains whose task failed are missing, and the error says which.
func Sample(ctx context.Context, program infer.Program, method infer.Method, o Options) (*draws.Draws, error) {
	all, err := Sweep(ctx, []Cell{{Program: program, Method: method}}, o)
	if err != nil {
		err = fmt.Errorf("cluster.Sample: %w", err)
	}
	if len(all) == 0 {
		return nil, err
	}
	return all[0], err
}

// Sweep is [Sample] of many cells at once: the same job with different parameters. The draws are in the order of the
// cells; a cell without draws has nil.
func Sweep(ctx context.Context, cells []Cell, o Options) ([]*draws.Draws, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	for i, c := range cells {
		if ctx == nil || c.Program == nil || c.Method == nil || c.Program.Layout() == nil {
			return nil, fmt.Errorf("cell %d: context, program, its layout or method is nil: %w", i, infer.ErrConfig)
		}
	}
	if o.Save != nil && len(cells) > 1 {
		return nil, &infer.FieldError{Type: optionsName, Field: "Save", Value: "given",
			Allowed: fmt.Sprintf("it must be nil for %d cells: give each of them a Save of its own", len(cells))}
	}
	c := &client{o: o, cells: cells}
	defer c.close()
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	if err := c.submit(ctx); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	failed := c.wait(ctx)
	all, err := c.collect()
	return all, errors.Join(failed, err, c.remove())
}
