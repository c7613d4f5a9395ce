// Command cluster kills the workers of a sweep with SIGKILL, again and again, and its NATS server too, and compares the
// draws with those of the local run, bit for bit:
//
//	go run ./examples/cluster -workers 3 -kills 10 -json
//
// The same binary is the worker of any server, with -worker -nats URL. With -nats URL alone it makes the sweep by the
// workers of that server, and kills nothing.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

var (
	worker = flag.Bool("worker", false, "be a worker of the server -nats")
	serve  = flag.String("serve", "", "be a NATS server on this host:port, with its files in -dir")
	dir    = flag.String("dir", "", "folder of the server's files (default: a temporary one)")
	url    = flag.String("nats", os.Getenv("NATS_URL"),
		"URL of a NATS server, for -worker or for a sweep by its workers (default: NATS_URL of the environment)")
	workers = flag.Int("workers", 3, "worker processes")
	kills   = flag.Int("kills", 10, "workers to kill; after every fifth, the server is killed and started again")
	draws   = flag.Int("draws", 20_000, "draws of each chain")
	asJSON  = flag.Bool("json", false, "print JSON")
)

func schools(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Plate("schools", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Normal(0, 1))
		theta := c.Deterministic("theta", mu.Add(tau.Mul(z)))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

// method is the sampler of a cell of the sweep: NUTS at temperature 0, which stands for it, else SGHMC.
func method(temperature float64) infer.Method {
	if temperature == 0 {
		return hmc.NUTS{}
	}
	return sgmcmc.SGHMC{LR: infer.Constant(0.01), Temperature: infer.Constant(temperature)}
}

func register() {
	cluster.Register("schools", func(params []byte, data infer.Batch) (cluster.Spec, error) {
		var temperature float64
		if err := json.Unmarshal(params, &temperature); err != nil {
			return cluster.Spec{}, err
		}
		program, err := ppl.Compile(schools, data)
		return cluster.Spec{Program: program, Method: method(temperature)}, err
	})
}

func program() (infer.Program, error) {
	y := torch.New([]float64{28, 8, -3, 7, -1, 1, 18, 12})
	sigma := torch.New([]float64{15, 10, 16, 11, 9, 11, 10, 18})
	return ppl.Compile(schools, infer.Batch{"y": y, "sigma": sigma})
}

func run(ctx context.Context) error {
	register()
	switch {
	case *worker:
		return cluster.Work(ctx, *url)
	case *serve != "":
		return cluster.Serve(ctx, *serve, *dir, func(url string) { fmt.Println(url) })
	}
	begin := chaos
	if *url != "" {
		begin = outside
	}
	report, err := begin(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	fmt.Printf("identical: %v, after %d kills of workers and %d of the server, in %.1f s\n"+
		"%d updates were made again, at most %d after one death\n", report.Identical, report.Kills, report.ServerKills,
		report.Seconds, report.Repeated, report.Most)
	return nil
}

func main() { command.Main("cluster", run) }
