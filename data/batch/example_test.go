package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A regression on files: y = 2x + noise, 10,000 rows, of which a run sees 100 at a time.
func Example() {
	err := func() (err error) {
		dir, err := os.MkdirTemp("", "loader")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		files := map[string]string{"x": filepath.Join(dir, "x.npy"), "y": filepath.Join(dir, "y.npy")}
		if err := simulate(files); err != nil {
			return err
		}

		table, err := large.Open(files)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, table.Close()) }()
		batches, err := batch.NewLoader(table, batch.LoaderOptions{Size: 100, Seed: 1})
		if err != nil {
			return err
		}
		// The model is compiled on a batch; its plate has all rows.
		first, err := batches.Next()
		if err != nil {
			return err
		}
		program, err := ppl.Compile(func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 10))
			c.Plate("rows", table.Rows(), func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Data("x").Mul(w), 1), c.Data("y"))
			}, ppl.Minibatch)
		}, first)
		if err != nil {
			return err
		}
		posterior, err := infer.Sample(context.Background(), program, sgmcmc.SGHMC{LR: infer.Constant(0.02)},
			infer.Options{Chains: 2, Draws: 2000, Seed: 1, Batches: batches, Observer: infer.Silent})
		if err != nil {
			return err
		}
		w, err := posterior.Mean("w")
		if err != nil {
			return err
		}
		fmt.Printf("%.1f\n", w[0])
		return nil
	}()
	fmt.Println(err)
	// Output:
	// 2.0
	// <nil>
}

// simulate writes the files row by row.
func simulate(files map[string]string) error {
	x, err := large.Create[float64](files["x"])
	if err != nil {
		return err
	}
	y, err := large.Create[float64](files["y"])
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		v := rng.NormFloat64()
		if err := errors.Join(x.Write(v), y.Write(2*v+rng.NormFloat64())); err != nil {
			return err
		}
	}
	return errors.Join(x.Close(), y.Close())
}
