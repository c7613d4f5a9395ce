// Command cluster says which part of a cluster saturates first, and at how many workers:
//
//	go run ./bench/cluster [-workers 10000] [-state BYTES] [-every 60s] [-result BYTES] [-task 10m]
//
// It measures what a worker says to the server in a real run of one task, and the processor time of each kind of
// message with a NATS server in this process. With these it simulates clusters, by discrete events: workers that send,
// and a network, a server, a disk and a client that serve them one at a time. The sizes and times of checkpoints and
// results, and the rates of network and disk, are assumed: see the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
)

func main() { command.Main("cluster", run) }

// assumed is what is not measured.
type assumed struct {
	state, result         float64       // bytes
	every, task           time.Duration // between checkpoints, and of a task
	diskRate, networkRate float64       // bytes/s
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	var a assumed
	workers := f.Int("workers", 10_000, "the largest cluster")
	f.Float64Var(&a.state, "state", 100_000, "bytes of a checkpoint")
	f.DurationVar(&a.every, "every", time.Minute, "time between two checkpoints of a worker")
	f.Float64Var(&a.result, "result", 1_000_000, "bytes of a result")
	f.DurationVar(&a.task, "task", 10*time.Minute, "time of a task")
	f.Float64Var(&a.diskRate, "disk", 500e6, "bytes/s of the server's disk")
	f.Float64Var(&a.networkRate, "network", 1.25e9, "bytes/s of the server's network")
	seconds := f.Float64("seconds", 10, "simulated seconds of each cluster")
	scale := f.Int("scale", 100, "operations of the expensive kinds that are measured; of messages, a thousand times this")
	heard := f.Int("beats", 10, "heartbeats of the real run after which it is stopped, at least 2")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *workers < 1 || *scale < 1 || *heard < 2 || !(min(*seconds, a.diskRate, a.networkRate) > 0) ||
		min(a.every, a.task) <= 0 || !(min(a.state, a.result) >= 0) {
		return errors.New("-workers, -scale, -seconds, -every, -task, -disk and -network must be positive, " +
			"-state and -result at least 0, -beats at least 2")
	}
	s, err := traffic(ctx, *heard)
	if err != nil {
		return err
	}
	c, err := measure(ctx, *scale)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "measured: event %.0f bytes, %.2f/s; heartbeat %.0f bytes, %.2f/s\n", s.eventBytes, s.eventRate,
		s.beatBytes, s.beatRate)
	for _, m := range []struct {
		name string
		cost
	}{{"event", c.event}, {"event at the client", c.decode}, {"heartbeat", c.beat}, {"checkpoint", c.state},
		{"task with its result", c.perTask}} {
		fmt.Fprintf(out, "processor time, %s: %.1f µs and %.3f ns/byte\n", m.name, 1e6*m.each, 1e9*m.perByte)
	}
	return table(out, classes(s, c, a), *workers, *seconds)
}

// beats is the place of the heartbeats in classes.
const beats = 1

// classes is what a worker sends. All processor time of the server is one queue, as if it had one core.
func classes(s seen, c costs, a assumed) []class {
	all := []class{
		{name: "event", period: 1 / s.eventRate},
		{name: "heartbeat", period: 1 / s.beatRate},
		{name: "checkpoint", period: a.every.Seconds()},
		{name: "result", period: a.task.Seconds()},
	}
	all[0].demand = [stations]float64{2 * s.eventBytes / a.networkRate, c.event.of(s.eventBytes), 0,
		c.decode.of(s.eventBytes)}
	all[1].demand = [stations]float64{s.beatBytes / a.networkRate, c.beat.each, 0, 0}
	all[2].demand = [stations]float64{a.state / a.networkRate, c.state.of(a.state), a.state / a.diskRate, 0}
	// A result goes in and out of the server; the client's share of the processor time is less than the whole.
	all[3].demand = [stations]float64{2 * a.result / a.networkRate, c.perTask.of(a.result), a.result / a.diskRate,
		c.perTask.of(a.result)}
	return all
}

// table prints where each station saturates, by the utilisation law, and simulations.
func table(out io.Writer, all []class, largest int, seconds float64) error {
	for s := range stations {
		fmt.Fprintf(out, "%v: busy %.3g of the time for one worker, saturates at %.0f workers\n", s, load(all, s),
			1/load(all, s))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "workers\tnetwork\tserver\tdisk\tclient\theartbeat, mean ms\t99 %\tlongest\t")
	for _, n := range []int{10, 100, 300, 1000, 2000, 3000, 5000, 10_000} {
		if n >= largest {
			break
		}
		row(w, all, n, seconds)
	}
	row(w, all, largest, seconds)
	return w.Flush()
}

func row(w io.Writer, all []class, workers int, seconds float64) {
	o := system{workers: workers, classes: all, seconds: seconds, seed: 1}.run()
	mean := 0.0
	for _, d := range o.delays[beats] {
		mean += d / float64(len(o.delays[beats]))
	}
	fmt.Fprintf(w, "%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", workers, o.busy[network], o.busy[server],
		o.busy[disk], o.busy[client], 1e3*mean, 1e3*o.quantile(beats, 0.99), 1e3*o.quantile(beats, 1))
}
