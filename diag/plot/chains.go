package plot

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Trace draws the values over the numbers of the draws. Chains that agree lie over each other and have no trend.
func Trace(w io.Writer, x [][]float64, opt Options) error {
	p, err := start(w, &opt, "trace", refuse("a trace", 1, x...))
	if err != nil {
		return err
	}
	p.X.Label.Text, p.Y.Label.Text = "draw", "value"
	for k, chain := range x {
		p.wide(points(chain, 0), translucent(chainColour(k), 170), nil, 0.5)
	}
	return p.write(w, opt)
}

// points are numbers over their places, counted from first.
func points(y []float64, first float64) plotter.XYs {
	xy := make(plotter.XYs, len(y))
	for i, v := range y {
		xy[i] = plotter.XY{X: first + float64(i), Y: v}
	}
	return xy
}

// Rank draws histograms of the ranks of each chain's draws among those of all, as steps. The dashed line is where they
// are on average when the chains agree, and the grey area has 95 % of the counts of independent draws (Vehtari, Gelman,
// Simpson, Carpenter and Bürkner 2021). Those of dependent draws scatter more.
func Rank(w io.Writer, x [][]float64, opt Options) error {
	p, err := start(w, &opt, "ranks", refuse("ranks", 1, x...))
	if err != nil {
		return err
	}
	p.X.Label.Text, p.Y.Label.Text = "rank / draws", "draws of a chain"
	counts := sample.Ranks(x)
	bins, n := float64(len(counts[0])), float64(len(x[0]))
	mean := n / bins
	half := 1.96 * math.Sqrt(mean*(1-1/bins))
	p.area(plotter.XYs{{Y: mean - half}, {X: 1, Y: mean - half}, {X: 1, Y: mean + half},
		{Y: mean + half}}, translucent(grey, 60))
	p.line(plotter.XYs{{Y: mean}, {X: 1, Y: mean}}, grey, dashes)
	for k, row := range counts {
		var steps plotter.XYs
		for b, c := range row {
			steps = append(steps, plotter.XY{X: float64(b) / bins, Y: float64(c)},
				plotter.XY{X: float64(b+1) / bins, Y: float64(c)})
		}
		p.line(steps, chainColour(k), nil)
	}
	p.Y.Min = 0
	return p.write(w, opt)
}

// cells is how many numbers a density is drawn of.
const cells = 120

// view is the stretch of values of what, of which densities are drawn.
func view(what string, x ...[]float64) (low, high float64, err error) {
	low, high, _ = sample.View(x...)
	if !(low < high) {
		return low, high, refuse(what+" that are all equal", 1)
	}
	if width := high - low; math.IsInf(width, 1) || width < 0x1p-1000 {
		return low, high, refuse(fmt.Sprintf("a density of %s from %g to %g, too far apart or too close", what, low, high), 1)
	}
	return low, high, nil
}

// density adds the density of x on [low, high].
func density(x []float64, low, high float64) plotter.XYs {
	var xy plotter.XYs
	for i, v := range sample.Density(x, low, high, cells) {
		xy = append(xy, plotter.XY{X: low + (high-low)*(float64(i)+0.5)/cells, Y: v / (high - low)})
	}
	return xy
}

// Density draws a Gaussian kernel density of each chain, on the range of all draws, without far tails.
func Density(w io.Writer, x [][]float64, opt Options) error {
	p, err := start(w, &opt, "density", refuse("a density", 2, x...))
	if err != nil {
		return err
	}
	low, high, err := view("draws", x...)
	if err != nil {
		return err
	}
	p.X.Label.Text, p.Y.Label.Text, p.Y.Min = "value", "density", 0
	for k, chain := range x {
		p.line(density(chain, low, high), chainColour(k), nil)
	}
	return p.write(w, opt)
}

// Autocorrelation draws the autocorrelation of each chain up to a lag; 0 is a tenth of the draws, at most 100. The grey
// area has 95 % of those of independent draws.
func Autocorrelation(w io.Writer, x [][]float64, lag int, opt Options) error {
	p, err := start(w, &opt, "autocorrelation", refuse("autocorrelations", 3, x...))
	if err != nil {
		return err
	}
	n := len(slices.MinFunc(x, func(a, b []float64) int { return len(a) - len(b) }))
	if lag == 0 {
		lag = max(1, min(100, n/10))
	}
	if lag < 1 || lag >= n {
		return refuse(fmt.Sprintf("autocorrelations up to the lag %d of %d draws", lag, n), 1)
	}
	p.X.Label.Text, p.Y.Label.Text = "lag", "autocorrelation"
	half := 1.96 / math.Sqrt(float64(n))
	p.area(plotter.XYs{{Y: -half}, {X: float64(lag), Y: -half}, {X: float64(lag), Y: half},
		{Y: half}}, translucent(grey, 60))
	for k, chain := range x {
		rho := diag.Autocorrelation(chain)[:lag+1]
		if math.IsNaN(rho[0]) {
			return refuse(fmt.Sprintf("chain %d, which never moved", k), 1)
		}
		p.line(points(rho, 0), chainColour(k), nil)
	}
	p.Y.Max = 1
	return p.write(w, opt)
}

// Growth draws the effective sample size of the first draws of all chains over their number, at twenty places: in blue
// that of the bulk, in orange that of the tails. Both grow in proportion where more draws help. The dashed line is 100
// for each chain, below which no diagnostic is to be trusted.
func Growth(w io.Writer, x [][]float64, opt Options) error {
	p, err := start(w, &opt, "effective draws: bulk and tails", nil)
	if err != nil {
		return err
	}
	const places = 20
	if err := refuse("effective draws", 2*places, x...); err != nil {
		return err
	}
	n := len(slices.MinFunc(x, func(a, b []float64) int { return len(a) - len(b) }))
	p.X.Label.Text, p.Y.Label.Text = "draws", "effective draws"
	var bulk, tail plotter.XYs
	for i := range places {
		m := (i + 1) * n / places
		first := make([][]float64, len(x))
		for k := range x {
			first[k] = x[k][:m]
		}
		all := float64(m * len(x))
		if v := diag.ESSBulk(first); !math.IsNaN(v) {
			bulk = append(bulk, plotter.XY{X: all, Y: v})
		}
		if v := diag.ESSTail(first); !math.IsNaN(v) {
			tail = append(tail, plotter.XY{X: all, Y: v})
		}
	}
	if len(bulk) == 0 || len(tail) == 0 {
		return refuse("effective draws of chains that never moved", 1)
	}
	least := 100 * float64(len(x))
	p.line(plotter.XYs{{Y: least}, {X: float64(n * len(x)), Y: least}}, grey,
		dashes)
	p.line(bulk, blue, nil)
	p.points(bulk, blue)
	p.line(tail, orange, nil)
	p.points(tail, orange)
	p.Y.Min = 0
	return p.write(w, opt)
}

// Energy draws the density of the energies of Hamiltonian chains, less their mean, in blue, and of the changes from
// draw to draw in orange. Where the changes are much narrower, the chains explore the energies slowly (Betancourt
// 2016); the title has the least E-BFMI, which then is below 0.3.
func Energy(w io.Writer, energies [][]float64, opt Options) error {
	p, err := start(w, &opt, "", refuse("energies", 3, energies...))
	if err != nil {
		return err
	}
	least := math.Inf(1)
	for _, e := range energies {
		least = math.Min(least, diag.EBFMI(e))
	}
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("energies and changes, E-BFMI %.2f", least)
	}
	marginal, change := sample.Energies(energies)
	low, high, err := view("energies", marginal, change)
	if err != nil {
		return err
	}
	p.X.Label.Text, p.Y.Label.Text, p.Y.Min = "energy − mean, change of energy", "density", 0
	p.line(density(marginal, low, high), blue, nil)
	p.line(density(change, low, high), orange, nil)
	return p.write(w, opt)
}
