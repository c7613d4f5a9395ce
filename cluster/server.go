package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamName = "KELVIN"
	consumer   = "workers"
	subjects   = "kelvin.tasks."
	lost       = 5 * time.Second // a worker that is not heard for so long is dead
	heartbeat  = time.Second
	patience   = 10 * time.Minute // how long the server may be away
)

// Serve runs a NATS server with JetStream and files in folder at an address such as "127.0.0.1:4222", until the context
// ends. It has neither passwords nor TLS: where others reach the address, run nats-server with its own configuration.
func Serve(ctx context.Context, address, folder string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("cluster.Serve: %w", err)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("cluster.Serve: %q is no port: %w", port, infer.ErrConfig)
	}
	s, err := serve(&server.Options{Host: host, Port: n, StoreDir: folder})
	if err != nil {
		return fmt.Errorf("cluster.Serve: %w", err)
	}
	<-ctx.Done()
	stop(s)
	return nil
}

func serve(o *server.Options) (*server.Server, error) {
	o.JetStream, o.NoSigs, o.NoLog = true, true, true
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		stop(s)
		return nil, errors.New("the NATS server does not start: is the address in use, the folder writable?")
	}
	return s, nil
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// link is a connection with the stream of tasks.
type link struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	tasks jetstream.Consumer
}

// connect connects for good: the connection comes back whenever the server does.
func connect(ctx context.Context, url string, options []nats.Option) (*link, error) {
	nc, err := nats.Connect(url, append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond),
		nats.Name("kelvin")}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", url, err)
	}
	l := &link{nc: nc}
	if l.js, err = jetstream.New(nc); err == nil {
		err = persist(ctx, l.declare)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return l, nil
}

// declare makes the stream and its consumer, or finds them.
func (l *link) declare(ctx context.Context) error {
	stream, err := l.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: streamName, Subjects: []string{subjects + ">"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, MaxMsgSize: 1 << 16})
	if err != nil {
		return err
	}
	l.tasks, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumer,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: lost, MaxDeliver: -1, MaxAckPending: maxTasks})
	return err
}

// final are the errors that another try does not mend.
var final = []error{jetstream.ErrBucketNotFound, jetstream.ErrKeyExists, jetstream.ErrKeyNotFound,
	jetstream.ErrObjectNotFound, jetstream.ErrJetStreamNotEnabled, nats.ErrAuthorization, nats.ErrConnectionClosed,
	nats.ErrMaxPayload, infer.ErrConfig}

// persist repeats a request until the server answers.
func persist(ctx context.Context, request func(context.Context) error) error {
	began := time.Now()
	for {
		try, cancel := context.WithTimeout(ctx, time.Minute)
		err := request(try)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		for _, f := range final {
			if errors.Is(err, f) {
				return err
			}
		}
		if time.Since(began) > patience {
			return fmt.Errorf("the NATS server is away for %v: %w", patience, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
