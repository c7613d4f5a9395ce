package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/nats-io/nats-server/v2/server"
)

// Serve runs a NATS server with JetStream in this process until the context ends, with its files in dir. addr is
// "host:port" or "token@host:port", and port 0 is any free one. ready, if not nil, is called once with the URL, which
// has the token: who has it may give the workers tasks, and nobody else can connect. Without one in addr the server
// takes that of the file "token" in dir, and makes it where it is missing, so that it has the same URL when it starts
// again. Nothing is encrypted and there are no accounts: servers for several machines are better run as NATS documents
// it. A folder that vanishes ends JetStream, which clients report.
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
	s.close()
	return nil
}

// startWait is how long a server may take to read its files.
const startWait = 30 * time.Second

// host is a server of this process.
type host struct {
	*server.Server
	token string
	end   context.CancelFunc
	watch parallel.Group
}

// ClientURL is the server's address, with its token.
func (h *host) ClientURL() string {
	return strings.Replace(h.Server.ClientURL(), "://", "://"+url.User(h.token).String()+"@", 1)
}

func (h *host) close() {
	h.end()
	h.watch.Wait()
	h.Shutdown()
	h.WaitForShutdown()
}

func serve(addr, dir string) (*host, error) {
	token, at, given := strings.Cut(addr, "@")
	if !given {
		token, at = "", addr
	}
	name, text, err := net.SplitHostPort(at)
	if err != nil {
		return nil, fmt.Errorf("cluster.Serve: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("cluster.Serve: port %q of %q is not a number", text, at)
	}
	port = cmp.Or(port, server.RANDOM_PORT)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster.Serve: %w", err)
	}
	if token == "" {
		if token, err = tokenIn(dir); err != nil {
			return nil, fmt.Errorf("cluster.Serve: %w", err)
		}
	}
	s, err := server.NewServer(&server.Options{ServerName: "kelvin", Host: name, Port: port, JetStream: true,
		StoreDir: dir, Authorization: token, NoSigs: true, NoLog: true, DisableJetStreamBanner: true})
	if err != nil {
		return nil, fmt.Errorf("cluster.Serve: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startWait) {
		s.Shutdown()
		return nil, fmt.Errorf("cluster.Serve: the NATS server on %s was not ready after %v: is the port taken, or %s "+
			"not writable?", at, startWait, dir)
	}
	h := &host{Server: s, token: token}
	var ctx context.Context
	ctx, h.end = context.WithCancel(context.Background())
	h.watch.Go(func() { h.mind(ctx, filepath.Join(dir, server.JetStreamStoreDir)) })
	return h, nil
}

// mind stops JetStream when its folder is gone: it would go on for a while with files that nobody can open again.
func (h *host) mind(ctx context.Context, folder string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	every(ctx, nil, time.Second, func() {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			_ = h.DisableJetStream()
			cancel()
		}
	})
}

// tokenIn is the token that is kept in a folder. It is made where there is none.
func tokenIn(dir string) (string, error) {
	path := filepath.Join(dir, "token")
	text, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(text)) != "" {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token := rand.Text()
	return token, atomicfile.Write(path, []byte(token), 0o600)
}
