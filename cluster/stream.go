package cluster

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// saver is what gets the draws of a cell; nil for none.
func (c *client) saver(cell int) func(run string, from []int, block *draws.Draws) error {
	if save := c.cells[cell].Save; save != nil {
		return save
	}
	return c.o.Save
}

// stream hands the draws of a task to Save, block by block.
func (c *client) stream(ctx context.Context, t task, o *outcome) error {
	save := c.saver(t.cell)
	if save == nil || o.Draws == "" {
		return nil
	}
	if err := c.saveTask(ctx, save, t, o); err != nil {
		return fmt.Errorf("the draws of task %d: %w", t.Number, err)
	}
	return nil
}

func (c *client) saveTask(ctx context.Context, save func(string, []int, *draws.Draws) error, t task,
	o *outcome) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &infer.PanicError{In: "function Save", Value: v, Stack: string(debug.Stack())}
		}
	}()
	program := c.cells[t.cell].Program
	if c.saved == nil {
		c.saved = make([][]int, len(c.cells))
	}
	if c.saved[t.cell] == nil {
		c.saved[t.cell] = make([]int, c.chains(t.cell))
	}
	saved := c.saved[t.cell]
	var block *draws.Draws
	flush := func() error {
		if block == nil || block.Total() == 0 {
			return nil
		}
		annotate(block, t, o)
		values, err := named(program, block)
		if err != nil {
			return err
		}
		from := slices.Clone(saved)
		for k := range saved {
			saved[k] += block.Len(k)
		}
		block = nil
		return save("", from, values)
	}
	next := c.blocks(ctx, o)
	err = unpackRows(t.from, program.Layout().Dim(), o, func() ([]byte, error) {
		if err := flush(); err != nil {
			return nil, err
		}
		return next()
	}, func(chain int, x, stats []float64) error {
		if block == nil {
			var err error
			if block, err = draws.New(program.Layout().Sites, o.Stats, len(saved)); err != nil {
				return err
			}
		}
		return block.AppendChain(chain, x, stats)
	})
	if err == nil {
		err = flush()
	}
	if err != nil || !c.o.Discard {
		return err
	}
	o.Small = nil
	c.bucket.draws.drop(ctx, t.name())
	return nil
}
