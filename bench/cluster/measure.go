package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cost is the processor time of an operation: s, and s for a byte of its payload.
type cost struct{ each, perByte float64 }

func (c cost) of(size float64) float64 { return c.each + c.perByte*size }

// costs are of the processor of this machine. The libraries of both ends are in them, so that they are upper bounds.
type costs struct {
	event   cost // published, and delivered to the client
	decode  cost // the client's part of it: delivery and decoding
	beat    cost // AckProgress of a task
	state   cost // a checkpoint: a block written, another removed, a key changed
	perTask cost // a task published, fetched, its result written and read, a key made, acknowledged
}

// sizes of the payload, between which a cost is a straight line, in bytes.
const small, large = 1 << 10, 1 << 20

// measure takes the costs with a server in this process, with connections in this process and files in a temporary
// folder. scale is the number of large operations.
func measure(ctx context.Context, scale int) (c costs, err error) {
	dir, err := os.MkdirTemp("", "kelvin-bench-cluster-*")
	if err != nil {
		return c, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := natsd.NewServer(&natsd.Options{DontListen: true, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		MaxPending: 1 << 30})
	if err != nil {
		return c, err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(30 * time.Second) {
		return c, errors.New("the NATS server of this process was not ready after 30 s")
	}
	b := &bench{ctx: ctx, scale: scale}
	for _, nc := range []**nats.Conn{&b.worker, &b.client} {
		if *nc, err = nats.Connect("", nats.InProcessServer(s)); err != nil {
			return c, err
		}
		defer (*nc).Close()
	}
	if b.js, err = jetstream.New(b.worker); err != nil {
		return c, err
	}
	if err := b.prepare(); err != nil {
		return c, err
	}
	var alone cost
	for _, m := range []struct {
		into *cost
		many int // operations for one large one
		lo   int // the payloads, bytes
		hi   int
		f    func(n, size int) error
	}{
		{&alone, 1000, 200, 4200, func(n, size int) error { return b.publish("nobody", n, size) }},
		{&c.event, 1000, 200, 4200, func(n, size int) error { return b.deliver(n, size, false) }},
		{&c.decode, 1000, 200, 4200, func(n, size int) error { return b.deliver(n, size, true) }},
		{&c.beat, 1000, 0, 0, b.beat},
		{&c.state, 1, small, large, b.state},
		{&c.perTask, 1, small, large, b.perTask},
	} {
		n := m.many * scale
		lo, err := timed(n, func() error { return m.f(n, m.lo) })
		if err != nil {
			return c, err
		}
		m.into.each = lo
		if m.hi > m.lo {
			hi, err := timed(n, func() error { return m.f(n, m.hi) })
			if err != nil {
				return c, err
			}
			m.into.perByte = max(0, (hi-lo)/float64(m.hi-m.lo))
			m.into.each = max(0, lo-m.into.perByte*float64(m.lo))
		}
	}
	c.decode.each = max(0, c.decode.each-alone.each)
	c.decode.perByte = max(0, c.decode.perByte-alone.perByte)
	return c, nil
}

// timed is the processor time of one of n operations: s.
func timed(n int, f func() error) (float64, error) {
	before, err := processor()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := processor()
	return (after - before).Seconds() / float64(n), err
}

type bench struct {
	ctx            context.Context
	scale          int
	worker, client *nats.Conn
	js             jetstream.JetStream
	tasks          jetstream.Consumer
	keys           jetstream.KeyValue
	pile           jetstream.Stream
	number         int
}

func (b *bench) prepare() (err error) {
	s, err := b.js.CreateStream(b.ctx, jetstream.StreamConfig{Name: "TASKS", Subjects: []string{"tasks.>"},
		Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		return err
	}
	if b.tasks, err = s.CreateConsumer(b.ctx, jetstream.ConsumerConfig{Durable: "workers",
		AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		return err
	}
	if b.keys, err = b.js.CreateKeyValue(b.ctx, jetstream.KeyValueConfig{Bucket: "run"}); err != nil {
		return err
	}
	b.pile, err = b.js.CreateStream(b.ctx, jetstream.StreamConfig{Name: "PILE", Subjects: []string{"pile.>"},
		Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, AllowDirect: true})
	return err
}

// publish sends n messages and waits for the server.
func (b *bench) publish(subject string, n, size int) error {
	payload, err := eventOf(size)
	if err != nil {
		return err
	}
	for i := range n {
		if err := b.worker.Publish(subject, payload); err != nil {
			return err
		}
		if i%1000 == 999 { // as many workers do, and no pending bytes without end
			if err := b.worker.Flush(); err != nil {
				return err
			}
		}
	}
	return b.worker.Flush()
}

// deliver sends n messages to the client, which may decode them.
func (b *bench) deliver(n, size int, decode bool) error {
	got, count := make(chan error, 1), 0
	sub, err := b.client.Subscribe("events.run", func(m *nats.Msg) {
		var err error
		if decode {
			var e event
			err = json.Unmarshal(m.Data, &e)
		}
		if count++; err != nil || count == n {
			select {
			case got <- err:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := errors.Join(sub.SetPendingLimits(-1, -1), b.client.Flush(), b.publish("events.run", n, size)); err != nil {
		return err
	}
	select {
	case err := <-got:
		return err
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

func (b *bench) beat(n, _ int) error {
	if _, err := b.js.Publish(b.ctx, "tasks.beat", []byte("{}")); err != nil {
		return err
	}
	m, err := b.tasks.Next()
	if err != nil {
		return err
	}
	for range n {
		if err := m.InProgress(); err != nil {
			return err
		}
	}
	return m.DoubleAck(b.ctx) // after all that are before it
}

func (b *bench) state(n, size int) error {
	payload := make([]byte, size)
	for range n {
		b.number++
		name := fmt.Sprintf("state-%d", b.number)
		if err := b.put(name, payload); err != nil {
			return err
		}
		if _, err := b.keys.Put(b.ctx, "state", []byte(name)); err != nil {
			return err
		}
		if err := b.drop(name); err != nil {
			return err
		}
	}
	return nil
}

// chunk is the size of the messages of a block, as package cluster has it.
const chunk = 512 << 10

func (b *bench) put(name string, block []byte) error {
	i := 0
	for data := range slices.Chunk(block, chunk) {
		if _, err := b.js.Publish(b.ctx, fmt.Sprintf("pile.%s.%d", name, i), data); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (b *bench) get(name string, size int) error {
	for i := range (size + chunk - 1) / chunk {
		if _, err := b.pile.GetLastMsgForSubject(b.ctx, fmt.Sprintf("pile.%s.%d", name, i)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) drop(name string) error {
	return b.pile.Purge(b.ctx, jetstream.WithPurgeSubject("pile."+name+".>"))
}

func (b *bench) perTask(n, size int) error {
	payload := make([]byte, size)
	for range n {
		b.number++
		name := fmt.Sprintf("result-%d", b.number)
		if _, err := b.js.Publish(b.ctx, "tasks."+name, make([]byte, 1000)); err != nil {
			return err
		}
		m, err := b.tasks.Next()
		if err != nil {
			return err
		}
		if err := b.put(name, payload); err != nil {
			return err
		}
		if _, err := b.keys.Create(b.ctx, name, []byte("{}")); err != nil {
			return err
		}
		if err := m.DoubleAck(b.ctx); err != nil {
			return err
		}
		if err := b.get(name, size); err != nil {
			return err
		}
		if err := b.drop(name); err != nil {
			return err
		}
	}
	return nil
}

// event has the fields of what a worker tells.
type event struct {
	Kind, Worker, Model                            string
	Task, Attempt, Step, Steps, Resumed, Gradients int
}

// eventOf is an event of about so many bytes.
func eventOf(size int) ([]byte, error) {
	e := event{Kind: "progress", Worker: "host-12345-ABCDEF", Task: 123, Attempt: 1, Step: 12345, Steps: 200_000,
		Gradients: 1_234_567}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	e.Model = string(bytes.Repeat([]byte("x"), max(0, size-len(text))))
	return json.Marshal(e)
}
