//go:build slow

package cluster_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

const patients, features = 768, 8

// pima are the standardised features of the Pima Indians data and the diagnoses.
func pima(t *testing.T) infer.Batch {
	t.Helper()
	f, err := os.Open("../examples/internal/pima/pima.csv")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	table, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, table, patients+1)
	x, y := make([]float64, patients*features), make([]float64, patients)
	for j := range features + 1 {
		column := make([]float64, patients)
		for i := range column {
			column[i], err = strconv.ParseFloat(table[i+1][j], 64)
			require.NoError(t, err)
		}
		if j == features {
			y = column
			break
		}
		mean, sd := stat.PopMeanStdDev(column, nil)
		for i, v := range column {
			x[i*features+j] = (v - mean) / sd
		}
	}
	return infer.Batch{"x": torch.New(x, patients, features), "y": torch.New(y)}
}

func logistic(c *ppl.Ctx) {
	w := c.Sample("w", dist.Normal(0, 1).Expand(features))
	b := c.Sample("b", dist.Normal(0, 10))
	c.Plate("patients", patients, func(c *ppl.Ctx) {
		c.Observe("y", dist.BernoulliLogitGLM(c.Data("x"), w, b), c.Data("y"))
	})
}

// network is a network of 8-16-1 on the same data, with its cold posterior's sampler and batches of 64.
func network(data infer.Batch, temperature float64) (cluster.Spec, error) {
	net, err := nn.MLP{Sizes: []int{features, 16, 1}}.Build()
	if err != nil {
		return cluster.Spec{}, err
	}
	prior, err := nn.NewPrior(net, nn.Same(nn.Normal(1)))
	if err != nil {
		return cluster.Spec{}, err
	}
	streams := torch.NewStreams(1, 1)
	start, err := nn.Init(net, nn.PyTorch(), &streams)
	if err != nil {
		return cluster.Spec{}, err
	}
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		logits := net.Forward(p, b.Get("x")).Squeeze(-1)
		return dist.BernoulliLogits(logits).LogProb(b.Get("y")).Mean().Add(prior.LogDensity(p).Div(patients)), nil
	}
	batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 64, Seed: 2})
	return cluster.Spec{Program: infer.Handwritten(infer.Mean(logPosterior, patients), start, data),
		Method:  sgmcmc.SGHMC{LR: infer.Constant(0.01), Temperature: infer.Constant(temperature / patients)},
		Batches: batches}, err
}

func init() {
	cluster.Register("pima", func(_ []byte, data infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(logistic, data)
		return cluster.Spec{Program: program, Method: hmc.NUTS{}}, err
	})
	cluster.Register("network", func(params []byte, data infer.Batch) (cluster.Spec, error) {
		var temperature float64
		if err := json.Unmarshal(params, &temperature); err != nil {
			return cluster.Spec{}, err
		}
		return network(data, temperature)
	})
}

// NUTS on Pima has the draws of the local run with 1, 2 and 5 workers.
func TestPimaIsTheLocalRun(t *testing.T) {
	p, err := ppl.Compile(logistic, pima(t))
	require.NoError(t, err)
	o := infer.Options{Chains: 5, Warmup: 500, Draws: 500, Seed: 9, Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.NoError(t, err)
	for _, workers := range []int{1, 2, 5} {
		got, err := cluster.Sample(t.Context(), p, hmc.NUTS{},
			cluster.Options{Options: o, Job: "pima", Workers: workers})
		require.NoError(t, err)
		identical(t, want, got)
	}
}

// So has SGHMC on a network, with minibatches, at three temperatures: the cells of a sweep of cold posteriors.
func TestColdPosteriorsAreTheLocalRuns(t *testing.T) {
	data := pima(t)
	for _, workers := range []int{1, 2, 5} {
		var cells []cluster.Cell
		o := infer.Options{Chains: 4, Group: 2, Warmup: 1000, Draws: 200, Thin: 5, Seed: 10, Observer: infer.Silent}
		for _, temperature := range []float64{1, 0.1, 0.01} {
			spec, err := network(data, temperature)
			require.NoError(t, err)
			o.Batches = spec.Batches
			cells = append(cells, cluster.Cell{Program: spec.Program, Method: spec.Method, Params: temperature})
		}
		all, err := cluster.Sweep(t.Context(), cells, cluster.Options{Options: o, Job: "network", Workers: workers})
		require.NoError(t, err)
		for i, c := range cells {
			want, err := infer.Sample(t.Context(), c.Program, c.Method, o)
			require.NoError(t, err)
			identical(t, want, all[i])
			spec, err := network(data, 1)
			require.NoError(t, err)
			o.Batches = spec.Batches // where they begin
		}
	}
}
