package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/serve"
)

const serveUsage = `usage: kelvin serve FILE [flags]

Puts an exported model, with its draws, behind HTTP: POST /predict, GET /healthz, /readyz, /metrics and /openapi.json.
With -updates it takes new rows with their outcomes too, by POST /update, and predicts from the posterior of all rows.
It needs no libtorch. SIGTERM lets requests in flight end. FILE may be the folder of a fit, as kelvin fit makes it:
then its model.kelvin is served, which kelvin export makes first where it is missing.

`

// serving are the flags of serve.
type serving struct {
	service   serve.Service
	listen    string
	cert, key string
	updates   string
}

func (v *serving) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.StringVar(&v.listen, "listen", "localhost:8080", "serve at `ADDRESS`")
	flags.StringVar(&v.cert, "cert", "", "serve by TLS with the certificate in `FILE`, and -key")
	flags.StringVar(&v.key, "key", "", "the key of -cert is in `FILE`")
	flags.StringVar(&v.updates, "updates", "", "take rows with outcomes by POST /update, and keep them in `FOLDER`")
	flags.IntVar(&v.service.Rows, "rows", 0, "take at most `N` rows in a request (default 1000)")
	flags.Int64Var(&v.service.Bytes, "bytes", 0, "take at most `N` bytes in a request (default 1048576)")
	flags.DurationVar(&v.service.Timeout, "timeout", 0, "end a request after `TIME` (default 10s)")
	flags.Uint64Var(&v.service.Seed, "seed", 0, "take the random numbers of `SEED`")
	return flags
}

// serve runs `kelvin serve`.
func (a *app) serve(ctx context.Context, args []string) int {
	var v serving
	flags := v.flags()
	flags.SetOutput(a.err)
	flags.Usage = func() {
		fmt.Fprint(a.err, serveUsage)
		flags.PrintDefaults()
	}
	var file string
	for len(args) > 0 { // flags may stand before and behind the file
		if err := flags.Parse(args); err != nil {
			if err == flag.ErrHelp {
				return exitOK
			}
			return exitUsage
		}
		if args = flags.Args(); len(args) > 0 {
			if file != "" {
				fmt.Fprintf(a.err, "kelvin: serve takes one file, and got %q and %q\n", file, args[0])
				return exitUsage
			}
			file, args = args[0], args[1:]
		}
	}
	if file == "" {
		fmt.Fprint(a.err, serveUsage)
		return exitUsage
	}
	if err := v.run(ctx, file, a); err != nil {
		return a.fail(fmt.Errorf("serve: %w", err))
	}
	return exitOK
}

// run serves until the context ends.
func (v *serving) run(ctx context.Context, path string, a *app) (err error) {
	if about, err := os.Stat(path); err == nil && about.IsDir() {
		if path, err = a.exported(ctx, path); err != nil {
			return err
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	begin := time.Now()
	v.service.Model, err = serve.Load(file)
	_ = file.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if v.updates != "" {
		if v.service.Online, err = v.service.Model.Online(v.updates, v.service.Seed); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer func() { err = errors.Join(err, v.service.Online.Close()) }()
	}
	v.service.Log = slog.New(slog.NewTextHandler(a.err, nil))
	if _, err := v.service.Handler(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	l, err := net.Listen("tcp", v.listen)
	if err != nil {
		return err
	}
	if v.cert != "" || v.key != "" {
		pair, err := tls.LoadX509KeyPair(v.cert, v.key)
		if err != nil {
			return err
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	fmt.Fprintf(a.err, "serving %d draws at %s, after %.2f s\n", v.service.Model.Posterior().Total(), l.Addr(),
		time.Since(begin).Seconds())
	if u := v.service.Online; u != nil {
		updates, rows := u.Count()
		fmt.Fprintf(a.err, "%s has %d updates of %d rows\n", v.updates, updates, rows)
	}
	return v.service.Serve(ctx, l)
}
