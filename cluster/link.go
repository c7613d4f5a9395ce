package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Streams and subjects on the server. Every run has a bucket of keys, one of objects and two
// piles of its own, which go with it.
const (
	tasksStream   = "KELVIN_TASKS"
	tasksSubject  = "kelvin.tasks."  // and run.number
	eventsSubject = "kelvin.events." // and run; what workers tell
	cancelSubject = "kelvin.cancel." // and run; what workers obey
	consumerName  = "workers"
	bucketPrefix  = "KELVIN_"
)

// link is a connection to a server.
type link struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	secret []byte // the token, which signs results
}

// connect connects. patient connections wait for a server that is not there yet; all come back after it was gone. A
// server that is there and refuses is an error, at once or, where the connection breaks before its reason comes, after
// another try.
func connect(ctx context.Context, url, name string, patient bool, options []nats.Option) (*link, error) {
	all := []nats.Option{nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 100*time.Millisecond), nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2)}
	all = append(all, options...)
	nc, err := nats.Connect(url, all...)
	for try := 0; err != nil && !refuses(err) && (patient || broke(err) && try < 5); try++ {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("NATS server %s: %w: %w", bare(url), ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
			nc, err = nats.Connect(url, all...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("NATS server %s: %w", bare(url), err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &link{nc, js, secretOf(url, nc.Opts)}, nil
}

// refuses says whether an error of a connection comes from credentials or certificates, which another try has too.
func refuses(err error) bool {
	var certificate *tls.CertificateVerificationError
	var alert *net.OpError // as crypto/tls reports what the other side refuses
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrSecureConnRequired) ||
		errors.Is(err, nats.ErrSecureConnWanted) || errors.As(err, &certificate) ||
		errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error")
}

// broke says whether a connection was made and ended at once. What the server refuses ends so at times, before its
// reason is read.
func broke(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// callWait is how long one request waits for its answer before it is made again.
const callWait = 3 * time.Second

// again makes a request until it is answered, also over a server that is down for a while. What the server refuses is
// an error at once.
func again(ctx context.Context, f func(ctx context.Context) error) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		one, cancel := context.WithTimeout(ctx, callWait)
		err := f(one)
		cancel()
		if err == nil || final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// final says whether an error is the server's answer, and not the want of one.
func final(err error) bool {
	for _, e := range []error{jetstream.ErrKeyExists, jetstream.ErrKeyNotFound, jetstream.ErrBucketNotFound,
		jetstream.ErrObjectNotFound, jetstream.ErrStreamNotFound, nats.ErrMaxPayload, nats.ErrAuthorization,
		nats.ErrConnectionClosed, errLimit} {
		if errors.Is(err, e) {
			return true
		}
	}
	var answer jetstream.JetStreamError
	if !errors.As(err, &answer) || answer.APIError() == nil {
		return false
	}
	// These codes are 500 too, and no second request helps.
	hopeless := answer.APIError().ErrorCode == jetstream.ErrorCode(server.JSStreamReplicasNotSupportedErr) ||
		answer.APIError().ErrorCode == jetstream.ErrorCode(server.JSStorageResourcesExceededErr)
	return hopeless || answer.APIError().Code < 500
}

// tasks makes the stream of tasks and its consumer, which all runs and workers share.
func (l *link) tasks(ctx context.Context, replicas int, ackWait time.Duration) (c jetstream.Consumer, err error) {
	err = again(ctx, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, tasksStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = l.js.CreateStream(ctx, jetstream.StreamConfig{Name: tasksStream,
				Subjects: []string{tasksSubject + ">"}, Retention: jetstream.WorkQueuePolicy,
				Storage: jetstream.FileStorage, Replicas: max(replicas, 1)})
		}
		if err != nil {
			return err
		}
		// A worker that came first made it with one copy.
		if have := s.CachedInfo().Config; have.Replicas < replicas {
			have.Replicas = replicas
			if s, err = l.js.UpdateStream(ctx, have); err != nil {
				return err
			}
		}
		c, err = s.Consumer(ctx, consumerName)
		if err == nil && (ackWait == 0 || c.CachedInfo().Config.AckWait == ackWait) {
			return nil
		}
		c, err = s.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumerName,
			AckPolicy: jetstream.AckExplicitPolicy,
			AckWait:   cmp.Or(ackWait, defaultAckWait), MaxAckPending: 100_000, MaxDeliver: -1})
		return err
	})
	return c, err
}

// bucket is what the server keeps of one run.
type bucket struct {
	*link
	run                string
	keys               jetstream.KeyValue
	objects            jetstream.ObjectStore
	draws, checkpoints *pile
	limit              int // bytes of an object
}

func (l *link) bucket(run string, limit int) *bucket {
	return &bucket{link: l, run: run, limit: limit, draws: l.pile(run, drawsPile),
		checkpoints: l.pile(run, checkpointsPile)}
}

// make makes the buckets of a run.
func (l *link) make(ctx context.Context, run string, replicas int, limit int) (*bucket, error) {
	b := l.bucket(run, limit)
	err := again(ctx, func(ctx context.Context) (err error) {
		b.keys, err = l.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucketPrefix + run,
			Storage: jetstream.FileStorage, Replicas: replicas})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = again(ctx, func(ctx context.Context) (err error) {
		b.objects, err = l.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucketPrefix + run,
			Storage: jetstream.FileStorage, Replicas: replicas})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := b.draws.make(ctx, replicas); err != nil {
		return nil, err
	}
	return b, b.checkpoints.make(ctx, replicas)
}

// open finds the buckets of a run. A run that is over has no buckets.
func (l *link) open(ctx context.Context, run string, limit int) (*bucket, error) {
	b := l.bucket(run, limit)
	err := again(ctx, func(ctx context.Context) (err error) {
		if b.keys, err = l.js.KeyValue(ctx, bucketPrefix+run); err != nil {
			return err
		}
		b.objects, err = l.js.ObjectStore(ctx, bucketPrefix+run)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := b.draws.open(ctx); err != nil {
		return nil, err
	}
	return b, b.checkpoints.open(ctx)
}

// remove takes a run off the server.
func (b *bucket) remove(ctx context.Context) error {
	ignore := func(err error) error {
		if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	}
	return again(ctx, func(ctx context.Context) error {
		s, err := b.js.Stream(ctx, tasksStream)
		if err == nil {
			err = s.Purge(ctx, jetstream.WithPurgeSubject(tasksSubject+b.run+".>"))
		}
		return errors.Join(err, ignore(b.js.DeleteObjectStore(ctx, bucketPrefix+b.run)),
			ignore(b.js.DeleteStream(ctx, b.draws.name)),
			ignore(b.js.DeleteStream(ctx, b.checkpoints.name)), ignore(b.js.DeleteKeyValue(ctx, bucketPrefix+b.run)))
	})
}

var errLimit = errors.New("object too large")

func (b *bucket) tooLarge(name string, size int) error {
	return fmt.Errorf("%s has %d bytes, and cluster.Options.MaxObject is %d: %w", name, size, b.limit, errLimit)
}

// put writes an object.
func (b *bucket) put(ctx context.Context, name string, data []byte) error {
	if len(data) > b.limit {
		return b.tooLarge(name, len(data))
	}
	return again(ctx, func(ctx context.Context) error {
		// A large object takes longer than one request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx),
			callWait+time.Duration(len(data))*time.Microsecond)
		defer cancel()
		_, err := b.objects.Put(ctx, jetstream.ObjectMeta{Name: name}, bytes.NewReader(data))
		return err
	})
}

// get reads an object.
func (b *bucket) get(ctx context.Context, name string) (data []byte, err error) {
	err = again(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		o, err := b.objects.Get(ctx, name)
		if err != nil {
			return err
		}
		info, err := o.Info()
		if err == nil && int(info.Size) > b.limit {
			err = b.tooLarge(name, int(info.Size))
		}
		if err == nil {
			data, err = io.ReadAll(o)
		}
		return errors.Join(err, o.Close())
	})
	return data, err
}
