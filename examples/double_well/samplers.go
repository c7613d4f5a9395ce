package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/stat"
)

// The settings of the figure: step size, friction, and updates of each chain.
const (
	stepSize = 0.05
	friction = 1.0
	updates  = 10_000
)

// sampler is one way to draw from the double well.
type sampler struct {
	name   string // in the JSON output
	title  string
	method infer.Method
	serial bool // one chain that keeps every state, in the place of many that keep the last
	// the configurational temperature to be expected: 1, 0 for optimisation, or with the bias of the step size
	heat float64
}

// samplers are the three of the figure, and the last of them with an integrator whose bias is of second order.
//
// The recursion of SGHMC is too wide by an amount of first order in the step. In its stationary law E[x'²] = E[x²],
// E[x'm'] = E[xm], E[m'²] = E[m²] and E[log p(x')] = E[log p(x)], from which, with c = E[−(log p)″] in the target and σ
// = T = 1,
//
//	E[−x (log p)′] = 1 + εc/α + O(ε²),
//
// where the target has 1.
func samplers() []sampler {
	step, alpha := infer.Constant(stepSize), infer.Constant(friction)
	hot := 1 + stepSize*exact().Curvature/friction
	return []sampler{
		{name: "deep_ensemble", title: "Deep ensemble (T = 0)",
			method: sgmcmc.SGHMC{LR: step, Alpha: alpha, Temperature: infer.Constant(0)}},
		{name: "serial_sghmc", title: "Serial SGHMC",
			method: sgmcmc.SGHMC{LR: step, Alpha: alpha}, serial: true, heat: hot},
		{name: "parallel_sghmc", title: "Parallel SGHMC", method: sgmcmc.SGHMC{LR: step, Alpha: alpha}, heat: hot},
		{name: "parallel_baoa", title: "Parallel BAOA", method: sgmcmc.BAOA{LR: step, Alpha: alpha}, heat: 1},
	}
}

// start is where chains start: at the mode (√5, √5) if there is one, else at points of N(0, I), which leaves the four
// modes alike.
func (s sampler) start(chains int, seed uint64) (infer.Params, error) {
	layout, err := infer.NewLayout(infer.Shapes{"x": {dim}})
	if err != nil {
		return infer.Params{}, err
	}
	if s.serial {
		return infer.NewParams(layout, []float64{mode, mode})
	}
	// The chains have the streams 0 to chains − 1.
	flat, err := torch.NewSource(seed, uint64(chains)).Normal([]int{chains, dim}, gotch.Double, torch.CPU)
	return infer.Params{Layout: layout, Flat: flat}, err
}

// outcome is what a sampler drew.
type outcome struct {
	sampler sampler
	chains  [][][]float64 // chains, draws, coordinates
	seconds float64
}

// run draws every state of the serial chain, and the last of each of the others.
func (s sampler) run(ctx context.Context, steps int, chains int, seed uint64) (outcome, error) {
	start, err := s.start(chains, seed)
	if err != nil {
		return outcome{}, err
	}
	o := infer.Options{Chains: chains, Warmup: steps - 1, Draws: 1, Thin: 1, Seed: seed}
	if s.serial {
		o.Chains, o.Warmup, o.Draws, o.Thin = 1, infer.None, steps, 1
	}
	if o.Warmup == 0 {
		o.Warmup = infer.None
	}
	began := time.Now()
	d, err := infer.Sample(ctx, infer.Handwritten(infer.Sum(logPosterior, 1), start, nil), s.method, o)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{sampler: s, seconds: time.Since(began).Seconds()}
	out.chains, err = d.Values("x")
	return out, err
}

// facts are what a sampler's draws are like. Errors are Monte-Carlo standard errors: of independent draws for parallel
// chains, of the autocorrelated draws for the serial one.
type facts struct {
	Name      string     `json:"name"`
	Chains    int        `json:"chains"`
	Draws     int        `json:"draws"`
	Quadrants [4]float64 `json:"quadrants"` // shares of the draws with signs ++, −+, −−, +−
	// Switches are the moves of the chains from mode to mode; between draws, so that they are 0 where a chain has one.
	Switches      int     `json:"switches"`
	Square        float64 `json:"mean_x2"` // E[x²], of both coordinates
	SquareSE      float64 `json:"mean_x2_se"`
	Within        float64 `json:"sd_within"` // standard deviation of |x|
	Heat          float64 `json:"heat"`      // E[−x·(log p)′], the configurational temperature
	HeatSE        float64 `json:"heat_se"`
	HeatExpected  float64 `json:"heat_expected"`
	FarthestModes float64 `json:"farthest_from_mode"` // the greatest distance of a coordinate from ±√5
	Seconds       float64 `json:"seconds"`
}

func (o outcome) facts() facts {
	f := facts{Name: o.sampler.name, Chains: len(o.chains), HeatExpected: o.sampler.heat, Seconds: o.seconds}
	square, heat := make([][]float64, len(o.chains)), make([][]float64, len(o.chains))
	meanAbs := 0.0
	for k, chain := range o.chains {
		f.Switches += switches(chain)
		for _, x := range chain {
			f.Draws++
			f.Quadrants[quadrant(x)]++
			a, s, h := 0.0, 0.0, 0.0
			for _, v := range x {
				a += math.Abs(v) / dim
				s += v * v / dim
				h += v * (0.4*v*v*v - 2*v) / dim
				f.FarthestModes = math.Max(f.FarthestModes, math.Abs(math.Abs(v)-mode))
			}
			meanAbs += a
			square[k], heat[k] = append(square[k], s), append(heat[k], h)
		}
	}
	n := float64(f.Draws)
	for i := range f.Quadrants {
		f.Quadrants[i] /= n
	}
	f.Square, f.SquareSE = meanAndError(square)
	f.Heat, f.HeatSE = meanAndError(heat)
	f.Within = math.Sqrt(math.Max(0, f.Square-meanAbs*meanAbs/(n*n)))
	return f
}

// meanAndError is the mean of draws of one quantity and its standard error.
func meanAndError(x [][]float64) (mean, se float64) {
	pooled := slices.Concat(x...)
	mean, sd := stat.MeanStdDev(pooled, nil)
	if len(pooled) == len(x) { // one draw of each chain
		return mean, sd / math.Sqrt(float64(len(pooled)))
	}
	return mean, diag.MCSEMean(x)
}

// quadrant numbers the modes against the clock, from (√5, √5).
func quadrant(x []float64) int {
	switch {
	case x[1] >= 0 && x[0] >= 0:
		return 0
	case x[1] >= 0:
		return 1
	case x[0] < 0:
		return 2
	}
	return 3
}

// switches counts how often a chain moves from mode to mode. A coordinate has left its mode when it is beyond 1 on the
// other side: a chain that turns round at the barrier has not.
func switches(chain [][]float64) int {
	n := 0
	var side [dim]float64
	for _, x := range chain {
		for j, v := range x {
			if math.Abs(v) < 1 {
				continue
			}
			now := math.Copysign(1, v)
			if side[j] == -now {
				n++
			}
			side[j] = now
		}
	}
	return n
}
