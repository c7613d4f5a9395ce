package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats-server/v2/server"
)

// Serve runs a NATS server with JetStream in this process until the context ends, with its files in dir. addr is
// "host:port", and port 0 is any free one. ready, if not nil, is called once with its URL. It has neither TLS nor
// accounts: servers for several machines are better run as NATS documents it.
func Serve(ctx context.Context, addr, dir string, ready func(url string)) error {
	if ctx == nil {
		return fmt.Errorf("cluster.Serve: the context is nil: context.Background() never ends: %w", infer.ErrConfig)
	}
	s, err := serve(addr, dir)
	if err != nil {
		return err
	}
	if ready != nil {
		ready(s.ClientURL())
	}
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// startWait is how long a server may take to read its files.
const startWait = 30 * time.Second

func serve(addr, dir string) (*server.Server, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cluster.Serve: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("cluster.Serve: port %q of %q is not a number", text, addr)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster.Serve: %w", err)
	}
	s, err := server.NewServer(&server.Options{ServerName: "kelvin", Host: host, Port: port, JetStream: true,
		StoreDir: dir, NoSigs: true, NoLog: true, DisableJetStreamBanner: true})
	if err != nil {
		return nil, fmt.Errorf("cluster.Serve: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startWait) {
		s.Shutdown()
		return nil, fmt.Errorf("cluster.Serve: the NATS server on %s was not ready after %v: is the port taken, or %s "+
			"not writable?", addr, startWait, dir)
	}
	return s, nil
}
