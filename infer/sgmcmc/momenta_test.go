package sgmcmc_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The initial momenta are independent N(0, Tσ²). For n independent normal numbers of variance v the average has
// standard error √(v/n), the average square v√(2/n), the average fourth power v²√(96/n) around 3v², and the
// average product of two of them v/√n. These are 5 comparisons in each of 4 cases: a right method fails for about
// one seed in 800.
func TestInitialMomentaHaveTheirStationaryLaw(t *testing.T) {
	const chains = 4096
	l := layout(infer.Shapes{"a": {2}, "b": {}})
	for i, c := range []struct{ temperature, sigma float64 }{{1, 0}, {1, 1.7}, {0.25, 1.7}, {4, 0.5}} {
		t.Run(name("T %g, sigma %g", c.temperature, c.sigma), func(t *testing.T) {
			// What counts is the temperature at the first update.
			temperature := infer.Linear(c.temperature, 100, 0, 10)
			transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.1), Sigma: c.sigma, Temperature: temperature},
				newQuartic().logPosterior)
			m := values(begin[sgmcmc.SGHMCState](t, transform, params(l, make([]float64, 3*chains), chains),
				uint64(i)).Momenta.T())
			require.Len(t, m, 3*chains)
			v := c.temperature
			if c.sigma != 0 {
				v *= c.sigma * c.sigma
			}
			n := float64(len(m))
			var mean, square, fourth, sites, neighbours float64
			for k, x := range m {
				mean += x / n
				square += x * x / n
				fourth += x * x * x * x / n
				sites += x * m[k/3*3+(k+1)%3] / n         // of the same chain: each pair of elements once
				neighbours += x * m[(k+3)%(3*chains)] / n // of the next chain
			}
			assert.InDelta(t, 0, mean, 4*math.Sqrt(v/n), "mean")
			assert.InDelta(t, v, square, 4*v*math.Sqrt(2/n), "variance")
			assert.InDelta(t, 3*v*v, fourth, 4*v*v*math.Sqrt(96/n), "fourth moment")
			assert.InDelta(t, 0, sites, 4*v/math.Sqrt(n), "covariance of the elements of a chain")
			assert.InDelta(t, 0, neighbours, 4*v/math.Sqrt(n), "covariance of chains")
		})
	}
}

// Momenta that are not given have the variance of their stationary law at the temperature of the first update: Tσ², T/ℓ
// in SGD's units, and Tm.
func TestInitialMomentaHaveTheirVariance(t *testing.T) {
	l := layout(infer.Shapes{"a": {2}, "b": {}})
	lr, temperature := infer.Constant(0.1), infer.Linear(0.25, 100, 0, 10)
	for i, c := range []struct {
		method   infer.Method
		variance float64
	}{
		{sgmcmc.SGHMC{LR: lr, Sigma: 1.7, Temperature: temperature}, 0.25 * 1.7 * 1.7},
		{sgmcmc.BAOA{LR: lr, Sigma: 1.7, Temperature: temperature}, 0.25 * 1.7 * 1.7},
		{sgmcmc.SGNHT{LR: lr, Sigma: 1.7, Temperature: temperature}, 0.25 * 1.7 * 1.7},
		{sgmcmc.SymplecticSGHMC{LR: lr, Temperature: temperature}, 0.25},
		{sgmcmc.SymplecticSGHMC{LR: lr, Momentum: infer.Constant(0.9), Temperature: temperature}, 0.25 / 0.1},
		{sgmcmc.ATMC{LR: lr, Mass: 3, Temperature: temperature}, 0.25 * 3},
	} {
		hasVariance(t, c.variance, startedBy(t, c.method, l, 4096, uint64(i)), name("%T", c.method))
	}
}

func TestInitialMomentaAtZeroTemperatureAreZero(t *testing.T) {
	q := newQuartic()
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.1), Temperature: zero, Sigma: 2}, q.logPosterior)
	for _, chains := range shapesOfChains {
		start := params(q.layout, spread(max(chains.rows, 1)*q.layout.Dim()), chains.rows)
		s := begin[sgmcmc.SGHMCState](t, transform, start, 1)
		assert.Equal(t, start.Flat.Shape(), s.Momenta.Shape(), chains.name)
		for _, v := range values(s.Momenta.T()) {
			assert.Zero(t, v, chains.name)
		}
	}
}

// withMomenta are the samplers that take momenta to start with.
var withMomenta = map[string]func(torch.Tensor) infer.Method{
	"SGHMC": func(m torch.Tensor) infer.Method { return sgmcmc.SGHMC{LR: infer.Constant(0.1), Momenta: m} },
	"BAOA":  func(m torch.Tensor) infer.Method { return sgmcmc.BAOA{LR: infer.Constant(0.1), Momenta: m} },
	"SGNHT": func(m torch.Tensor) infer.Method { return sgmcmc.SGNHT{LR: infer.Constant(0.1), Momenta: m} },
	"ATMC":  func(m torch.Tensor) infer.Method { return sgmcmc.ATMC{LR: infer.Constant(0.1), Momenta: m} },
	"SymplecticSGHMC": func(m torch.Tensor) infer.Method {
		return sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.1), Momenta: m}
	},
}

// Momenta that are given are taken as they are, for one chain or all, and copied.
func TestGivenMomenta(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	row, all := scaled(3, spread(d)), scaled(2, spread(4*d))
	for _, c := range []struct {
		what  string
		rows  int
		given []int
		from  []float64
		want  []float64
	}{
		{"[d] for one point", 0, []int{d}, row, row},
		{"[1, d] for a chain axis of 1", 1, []int{1, d}, row, row},
		{"[d] for a chain axis of 1", 1, []int{d}, row, row},
		{"[K, d] for K chains", 4, []int{4, d}, all, all},
		{"[d] for K chains", 4, []int{d}, row, slices.Repeat(row, 4)},
	} {
		for what, with := range withMomenta {
			t.Run(what+", "+c.what, func(t *testing.T) {
				given := vector(c.from, c.given...)
				start := params(q.layout, spread(max(c.rows, 1)*d), c.rows)
				s := begin[infer.State](t, build(t, with(torch.Of(given)), q.logPosterior), start, 1).Save()
				momenta := s.Tensors["momenta"]
				assert.Equal(t, start.Flat.Shape(), momenta.Shape())
				identical(t, c.want, values(momenta.T()), "momenta")
				assert.Zero(t, s.Streams.Offset, "nothing is drawn for given momenta")

				// The state has a tensor of its own: a later change of the given one does not reach it.
				require.NoError(t, torch.CopyFrom(torch.Of(given), make([]float64, len(c.from))))
				identical(t, c.want, values(momenta.T()), "momenta after a change of the given tensor")
			})
		}
	}
}

// Given momenta take the type of the point, so that the point keeps it.
func TestGivenMomentaTakeTheTypeOfThePoint(t *testing.T) {
	q := newQuartic()
	momenta := vector(scaled(0.5, spread(q.layout.Dim())))
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.1), Momenta: torch.Of(momenta)}, q.logPosterior)
	start := must(params(q.layout, spread(q.layout.Dim()), 0).To(gotch.CPU, gotch.Float))
	s := begin[sgmcmc.SGHMCState](t, transform, start, 1)
	batch := infer.Batch{"c": must(torch.To(q.batch()["c"], gotch.CPU, gotch.Float))}
	next, _ := update(t, transform, s, batch)
	tensors := infer.Tensors{"momenta": s.Momenta, "theta": next.Params.Flat, "momenta after an update": next.Momenta}
	for what, x := range tensors {
		assert.Equal(t, gotch.Float, must(torch.DTypeOfTensor(x)), what)
	}
}
