package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pile is a stream that holds what tasks make and the run does not need for long: draws and checkpoints. They are no
// objects, because of a deleted object a message stays, and with it the part of the server's files that it is in, which
// the server keeps in memory for a while.
type pile struct {
	*link
	name, subject string
	stream        jetstream.Stream
}

const (
	drawsPile       = "DRAWS"
	checkpointsPile = "CHECKPOINTS"
	chunksHeader    = "Kelvin-Chunks" // of how many messages a block is
	chunkBytes      = 512 << 10

	// Workers that are faster than Save would fill the server: a result waits at its worker while this much is there,
	// but not for ever where it does not get less, because what a dead worker left counts too.
	backlogBytes = 32 << 20
	backlogWait  = time.Minute
	dropWait     = 20 * time.Second // for a server that starts again
)

// missingWait is how long a block may be missing on the copies of a stream that are asked.
var missingWait = 5 * time.Second

func (l *link) pile(run, kind string) *pile {
	return &pile{link: l, name: "KELVIN_" + kind + "_" + run, subject: "kelvin.pile." + kind + "." + run + "."}
}

// make makes the stream.
func (p *pile) make(ctx context.Context, replicas int) error {
	return again(ctx, func(ctx context.Context) (err error) {
		p.stream, err = p.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: p.name,
			Subjects: []string{p.subject + ">"}, Storage: jetstream.FileStorage, Replicas: replicas,
			Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, AllowDirect: true})
		return err
	})
}

// open finds the stream.
func (p *pile) open(ctx context.Context) error {
	return again(ctx, func(ctx context.Context) (err error) {
		p.stream, err = p.js.Stream(ctx, p.name)
		return err
	})
}

func (p *pile) chunk(name string, i int) string { return fmt.Sprintf("%s%s.%d", p.subject, name, i) }

// put writes a block, whose name is that of a subject: a.b.c.
func (p *pile) put(ctx context.Context, name string, block []byte) error {
	size := min(chunkBytes, int(p.nc.MaxPayload()/2))
	chunks := slices.Collect(slices.Chunk(block, size))
	if len(chunks) == 0 {
		chunks = [][]byte{{}}
	}
	for i, data := range chunks {
		m := nats.NewMsg(p.chunk(name, i))
		m.Header.Set(chunksHeader, strconv.Itoa(len(chunks)))
		m.Data = data
		err := again(ctx, func(ctx context.Context) error {
			_, err := p.js.PublishMsg(ctx, m)
			if errors.Is(err, jetstream.ErrNoStreamResponse) { // the server is away, or the run is over
				if _, gone := p.js.Stream(ctx, p.name); gone != nil {
					return gone
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// room waits until most of what was put has been taken.
func (p *pile) room(ctx context.Context, size int) error {
	end, least := time.Now().Add(backlogWait), uint64(math.MaxUint64)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		if err := p.open(ctx); err != nil {
			return err
		}
		there := p.stream.CachedInfo().State.Bytes
		if there < least {
			least, end = there, time.Now().Add(backlogWait)
		}
		if there <= uint64(max(backlogBytes, size)) || time.Now().After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// get reads a block.
func (p *pile) get(ctx context.Context, name string) (block []byte, err error) {
	var missing time.Time
	for i, n := 0, 1; i < n; i++ {
		var m *jetstream.RawStreamMsg
		err := again(ctx, func(ctx context.Context) (err error) {
			m, err = p.stream.GetLastMsgForSubject(ctx, p.chunk(name, i))
			if !errors.Is(err, jetstream.ErrMsgNotFound) {
				return err
			}
			if missing.IsZero() {
				missing = time.Now()
			}
			if time.Since(missing) < missingWait {
				return errors.New("the server has no message " + p.chunk(name, i)) // again retries it
			}
			return fmt.Errorf("the server has no message %s: %w", p.chunk(name, i), err)
		})
		if err != nil {
			return nil, err
		}
		if n, err = strconv.Atoi(m.Header.Get(chunksHeader)); err != nil {
			return nil, fmt.Errorf("message %s: %w", p.chunk(name, i), err)
		}
		block = append(block, m.Data...)
	}
	return block, nil
}

// drop deletes blocks, or all those of an attempt or a task, so that the server has neither files nor memory of them.
// Where that fails they stay until the run is removed.
func (p *pile) drop(ctx context.Context, names ...string) {
	ctx, cancel := context.WithTimeout(ctx, dropWait)
	defer cancel()
	for _, name := range names {
		_ = again(ctx, func(ctx context.Context) error {
			return p.stream.Purge(ctx, jetstream.WithPurgeSubject(p.subject+name+".>"))
		})
	}
}
