// Command serve measures services of a fitted regression on loopback: `kelvin serve`, a static program, beside
// examples/service, which predicts by libtorch. Both have 4,000 draws of 20 numbers, and are asked for one row at a
// time by many clients, in turns.
//
//	go run ./bench/serve [-clients 64] [-seconds 10] [-turns 3] [-requests 100000]
//	go run ./bench/serve -gradients [-peers [-venv DIR] [-python FILE]]
//
// It prints predictions a second and latencies, resident memory, the size of program and file, and how the memory of
// the static one changes over -requests. Clients run on the same machine as the services. It needs Linux. With
// -gradients it
// compares gradients and runs of NUTS of exported models in Go with those of the library, and with -peers with Stan's
// NUTS, which it installs as bench/peers does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/internal/setup"
)

func main() { command.Main("serve", run) }

// options are what is measured.
type options struct {
	clients, turns, requests int
	seconds                  float64
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	f.IntVar(&o.clients, "clients", 64, "how many `CLIENTS` ask at once")
	f.Float64Var(&o.seconds, "seconds", 10, "how long a turn of a service takes")
	f.IntVar(&o.turns, "turns", 3, "how many turns each service has")
	f.IntVar(&o.requests, "requests", 100_000, "over how many `REQUESTS` memory is watched")
	only := f.Bool("gradients", false, "compare gradients and runs of NUTS in Go with the library's instead")
	peers := f.Bool("peers", false, "with -gradients, Stan's NUTS too")
	venv := f.String("venv", "", "folder of Stan's virtual environment; by default that of bench/peers")
	python := f.String("python", "", "the interpreter that makes it")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kelvin-bench-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *only {
		var beside *stan
		if *peers {
			if beside, err = newStan(ctx, *venv, *python, dir); err != nil {
				return err
			}
		}
		return gradients(ctx, out, beside)
	}
	if o.clients < 1 || o.turns < 1 || o.requests < 1 || !(o.seconds > 0) {
		return errors.New("-clients, -turns and -requests are at least 1, and -seconds above 0")
	}
	body, err := writeFiles(ctx, dir)
	if err != nil {
		return err
	}
	services, err := build(ctx, dir)
	if err != nil {
		return err
	}
	return measure(ctx, out, o, services, body)
}

// service is a program that serves.
type service struct {
	name         string
	program      string
	args         []string
	size         int64 // of the program and what it needs, in bytes
	url          string
	process      *exec.Cmd
	seconds, cpu float64   // of the turns, and of its processor time in them
	latencies    []float64 // ms
	most         float64   // MB, resident
	before, ends float64   // MB, resident, before and after many requests
}

// build builds both, the first without cgo.
func build(ctx context.Context, dir string) ([]*service, error) {
	static := &service{name: "kelvin serve", program: filepath.Join(dir, "kelvin"),
		args: []string{"serve", filepath.Join(dir, "model.kelvin")}}
	torch := &service{name: "examples/service, libtorch", program: filepath.Join(dir, "service"),
		args: []string{"-draws", filepath.Join(dir, "run.zarr"), "-design", filepath.Join(dir, "design.json"), "-state",
			filepath.Join(dir, "state.json")}}
	for _, c := range []struct {
		s           *service
		source, cgo string
		needs       []string
	}{
		{static, "cmd/kelvin", "0", []string{"model.kelvin"}},
		{torch, "examples/service", "1", nil},
	} {
		b := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", c.s.program, setup.Kelvin+"/"+c.source)
		b.Env = append(os.Environ(), "CGO_ENABLED="+c.cgo)
		if text, err := b.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", c.source, err, text)
		}
		for _, name := range append(c.needs, filepath.Base(c.s.program)) {
			about, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			c.s.size += about.Size()
		}
	}
	return []*service{static, torch}, nil
}

// start starts a service at a free port, and waits until it answers.
func (s *service) start(ctx context.Context) error {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	s.url = "http://" + address
	s.process = exec.CommandContext(ctx, s.program, append(s.args, "-listen", address)...)
	var said strings.Builder
	s.process.Stderr = &said
	if err := s.process.Start(); err != nil {
		return err
	}
	for range 600 {
		r, err := http.Get(s.url + "/healthz")
		if err == nil {
			return r.Body.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	s.stop()
	return fmt.Errorf("%s did not answer within a minute: %s", s.name, said.String())
}

// stop ends the process that start has started.
func (s *service) stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// resident is the memory of the service in MB.
func (s *service) resident() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kB, err := strconv.ParseFloat(strings.Fields(rest + " -")[0], 64)
	return kB * 1024 / 1e6, err
}

// processor is the time of processors that the service has used, in s.
func (s *service) processor() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	sum := 0.0
	for _, text := range fields[11:13] { // in user mode, and in the kernel; Linux counts hundredths of a second
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		sum += v / 100
	}
	return sum, nil
}

// turn lets the clients ask a service.
func (s *service) turn(ctx context.Context, o options, body string) error {
	before, err := s.processor()
	if err != nil {
		return err
	}
	began := time.Now()
	took, err := load(ctx, s, o.clients, 0, o.seconds, body)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.seconds += time.Since(began).Seconds()
	s.latencies = append(s.latencies, took...)
	after, err := s.processor()
	if err != nil {
		return err
	}
	s.cpu += after - before
	now, err := s.resident()
	s.most = max(s.most, now)
	return err
}

// measure lets the services take turns.
func measure(ctx context.Context, out io.Writer, o options, services []*service, body string) error {
	for _, s := range services {
		if err := s.start(ctx); err != nil {
			return err
		}
		defer s.stop()
		if _, err := load(ctx, s, o.clients, 4*o.clients, 0, body); err != nil { // first requests compile, and make memory
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for range o.turns {
		for _, s := range services {
			if err := s.turn(ctx, o, body); err != nil {
				return err
			}
		}
	}
	static := services[0]
	var err error
	if static.before, err = static.resident(); err != nil {
		return err
	}
	if _, err = load(ctx, static, o.clients, o.requests, 0, body); err != nil {
		return err
	}
	if static.ends, err = static.resident(); err != nil {
		return err
	}
	return print(out, o, services)
}

// print writes the table.
func print(out io.Writer, o options, services []*service) error {
	var b strings.Builder
	b.WriteString("service  predictions/s  median ms  p99 ms  processor ms each  resident MB  program and file MB\n")
	var rates, cost []float64
	for _, s := range services {
		rate := float64(len(s.latencies)) / s.seconds
		rates, cost = append(rates, rate), append(cost, s.cpu/float64(len(s.latencies)))
		fmt.Fprintf(&b, "%s  %.0f  %.1f  %.1f  %.3f  %.0f  %.1f\n", s.name, rate, bench.Quantile(s.latencies, 0.5),
			bench.Quantile(s.latencies, 0.99), 1e3*s.cpu/float64(len(s.latencies)), s.most, float64(s.size)/1e6)
	}
	fmt.Fprintf(&b, "\n%d clients, %d turns of %g s each: %.1f times the throughput, at %.1f times less processor time.\n",
		o.clients, o.turns, o.seconds, rates[0]/rates[1], cost[1]/cost[0])
	fmt.Fprintf(&b, "Resident memory of kelvin serve was %.0f MB before, and %.0f MB after %d more requests.\n",
		services[0].before, services[0].ends, o.requests)
	b.WriteString("The size of the second leaves libtorch out.\n")
	_, err := io.WriteString(out, b.String())
	return err
}
