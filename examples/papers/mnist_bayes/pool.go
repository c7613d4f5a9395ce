package main

import (
	"context"
	"sync"
)

// pool runs functions, a few at a time, until one fails.
type pool struct {
	tokens chan struct{}
	cancel context.CancelCauseFunc
	ctx    context.Context
	group  sync.WaitGroup
}

// newPool makes a pool for n functions at a time; the context that it returns ends with the first error.
func newPool(ctx context.Context, n int) (*pool, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &pool{tokens: make(chan struct{}, max(1, n)), cancel: cancel, ctx: ctx}, ctx
}

// run starts f when there is room, and not at all after an error.
func (p *pool) run(f func() error) {
	select {
	case p.tokens <- struct{}{}:
	case <-p.ctx.Done():
		return
	}
	p.group.Go(func() {
		defer func() { <-p.tokens }()
		if p.ctx.Err() != nil {
			return
		}
		if err := f(); err != nil {
			p.cancel(err)
		}
	})
}

// wait waits for what was started, and returns the first error.
func (p *pool) wait() error {
	p.group.Wait()
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	p.cancel(nil)
	return nil
}
