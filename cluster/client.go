package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/nats-io/nats.go/jetstream"
)

// client is one call of the door.
type client struct {
	o       Options
	cells   []Cell
	url     string
	server  *host    // of this process; nil for none
	scratch *scratch // its folder, where that is temporary
	link    *link
	bucket  *bucket
	tasks   []task
	results []*outcome
	got     []atomic.Bool // whether there is a result, for who watches
	lost    bool
	saved   [][]int // of each cell, the draws of each chain that Save has
	board   *board
	stop    context.CancelFunc // of the workers of this process
	workers parallel.Group
}

// open starts the server where none was named, and connects.
func (c *client) open(ctx context.Context) (err error) {
	if c.url = c.o.URL; c.url == "" {
		dir := c.o.Dir
		if dir == "" {
			if c.scratch, err = newScratch(serverFolder); err != nil {
				return err
			}
			dir = c.scratch.dir
		}
		if c.server, err = serve("127.0.0.1:0", dir); err != nil {
			return err
		}
		c.url = c.server.ClientURL()
	}
	if c.link, err = connect(ctx, c.url, "kelvin client", false, c.o.NATS); err != nil {
		return err
	}
	if _, err = c.link.tasks(ctx, c.o.Replicas, c.o.AckWait); err != nil {
		return err
	}
	c.bucket, err = c.link.make(ctx, strings.ToLower(rand.Text()[:12]), c.o.Replicas, c.o.MaxObject)
	return err
}

func (c *client) close() {
	if c.stop != nil {
		c.stop()
	}
	c.workers.Wait()
	if c.link != nil {
		c.link.nc.Close()
	}
	if c.server != nil {
		c.server.close()
	}
	c.scratch.remove()
}

// submit puts data, starts and tasks on the server.
func (c *client) submit(ctx context.Context) error {
	have := map[string]bool{}
	for i := range c.cells {
		if err := c.submitCell(ctx, i, have); err != nil {
			if len(c.cells) > 1 {
				err = fmt.Errorf("cell %d: %w", i, err)
			}
			return err
		}
	}
	c.results, c.got = make([]*outcome, len(c.tasks)), make([]atomic.Bool, len(c.tasks))
	c.board = newBoard(c)
	if err := c.board.listen(); err != nil {
		return err
	}
	for _, t := range c.tasks {
		text, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if most := c.link.nc.MaxPayload(); len(text) > int(most) {
			return fmt.Errorf("the message of a task has %d bytes, and the server's limit is %d: make "+
				"cluster.Options.Params smaller: %w", len(text), most, infer.ErrConfig)
		}
		err = again(ctx, func(ctx context.Context) error {
			_, err := c.link.js.Publish(ctx, t.subject(), text, jetstream.WithMsgID(t.subject()))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// submitCell makes the tasks of a cell.
func (c *client) submitCell(ctx context.Context, i int, have map[string]bool) error {
	cell, o := c.cells[i], c.o.Options
	params := cell.Params
	if params == nil {
		params = c.o.Params
	}
	text, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("cluster.Options.Params: %w", err)
	}
	want, err := identify(cell.Program, cell.Method, o.Batches)
	if err != nil {
		return err
	}
	packed, err := packBatch(cell.Program.Batch())
	if err != nil {
		return err
	}
	data, err := c.share(ctx, "data", packed, have)
	if err != nil {
		return err
	}
	transform, err := cell.Method.Build(cell.Program.Target())
	if err != nil {
		return err
	}
	chains, group := shape(o, cell.Method, transform)
	start, own, err := startOf(cell.Program, o, chains)
	if err != nil {
		return err
	}
	if own {
		defer torch.Free(start.Flat)
	}
	var at infer.Position
	if o.Batches != nil {
		at = o.Batches.Position()
	}
	for from := 0; from < chains; from += group {
		size := min(group, chains-from)
		packed, object, err := c.sharePart(ctx, start, from, size, have)
		if err != nil {
			return err
		}
		t := task{Run: c.bucket.run, Number: len(c.tasks), Job: c.o.Job, Params: text, Data: data, Start: object,
			Point: packed, Position: at, Want: want, Mixed: c.o.Mixed, Tries: c.o.Tries, Crashes: c.o.Crashes,
			AckWait: int(c.o.AckWait), Limit: c.o.MaxObject, cell: i, from: from, draws: drawsOf(o, cell.Method),
			Streamed: c.o.Discard && c.saver(i) != nil,
			Options: settings{Chains: size, Warmup: o.Warmup, Draws: o.Draws, Thin: o.Thin, Seed: o.Seed,
				FirstChain: o.FirstChain + uint64(from), Cycles: o.Cycles, Discard: o.Discard && c.saver(i) == nil,
				Native: o.Native, Dependent: o.DependentRows}}
		if o.Checkpoint != nil {
			t.Options.Every, t.Options.Model = o.Checkpoint.Every, o.Checkpoint.Model
		}
		c.tasks = append(c.tasks, t)
	}
	return nil
}

// sharePart is some of the chains of a point, or the object that has them where they are large.
func (c *client) sharePart(ctx context.Context, p infer.Params, from, size int, have map[string]bool) (packed []byte,
	object string, err error) {
	packed, err = packPart(p, from, size)
	if err != nil || len(packed) <= min(smallBytes, c.o.MaxObject) {
		return packed, "", err
	}
	object, err = c.share(ctx, "start", packed, have)
	return nil, object, err
}

// share puts an object under its hash, once.
func (c *client) share(ctx context.Context, kind string, data []byte, have map[string]bool) (string, error) {
	sum := sha256.Sum256(data)
	name := kind + "/" + hex.EncodeToString(sum[:16])
	if have[name] {
		return name, nil
	}
	have[name] = true
	return name, c.bucket.put(ctx, name, data)
}

// shape is the number of chains, and how many make a task.
func shape(o infer.Options, m infer.Method, t infer.Transform) (chains, group int) {
	chains = 4
	if d, ok := m.(infer.Defaulter); ok && d.Defaults().Chains > 0 {
		chains = d.Defaults().Chains
	}
	if o.Start.Flat != (torch.Tensor{}) && o.Start.Batched() {
		chains = o.Start.Chains()
	}
	if o.Chains > 0 {
		chains = o.Chains
	}
	if group = o.Group; group < 1 {
		group = chains
		if named, ok := t.(infer.Named); ok && (named.Name() == "hmc.NUTS" || named.Name() == "hmc.HMC") {
			group = 1 // their chains run each by itself in one process too
		}
	}
	return chains, min(group, chains)
}

// startOf is where the chains of a local run would start. own says whether it is to be freed.
func startOf(program infer.Program, o infer.Options, chains int) (p infer.Params, own bool, err error) {
	if p = o.Start; p.Flat == (torch.Tensor{}) {
		if p, err = program.Start(program.Batch(), chains, o.Seed); err != nil {
			return p, false, err
		}
	} else if !p.Layout.Equal(program.Layout()) {
		return p, false, &infer.FieldError{Type: optionsName, Field: "Start", Value: p.Layout,
			Allowed: fmt.Sprintf("its layout must be the program's, %v", program.Layout())}
	}
	if err := p.Check(); err != nil {
		return p, false, err
	}
	if p.Chains() == chains {
		return p, false, nil
	}
	if p.Batched() {
		return p, false, &infer.FieldError{Type: optionsName, Field: "Start",
			Value:   fmt.Sprintf("of %d chains", p.Chains()),
			Allowed: fmt.Sprintf("it must be one point, or one for each of %d chains", chains)}
	}
	p, err = p.Repeat(chains)
	return p, true, err
}

// packPart is some of the chains of a point.
func packPart(p infer.Params, from, size int) (raw []byte, err error) {
	err = torch.Do(func(*torch.Scope) error {
		view := p
		if p.Batched() && size < p.Chains() {
			view.Flat = p.Flat.Slice(0, from, from+size)
		}
		raw, err = packStart(view)
		return err
	})
	return raw, err
}

// local starts the workers of this process.
func (c *client) local(ctx context.Context) <-chan error {
	ctx, c.stop = context.WithCancel(ctx)
	failed := make(chan error, c.o.Workers)
	for range c.o.Workers {
		c.workers.Go(func() {
			if err := Work(ctx, c.url, c.o.NATS...); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	return failed
}
