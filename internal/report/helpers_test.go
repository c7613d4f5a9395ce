package report

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
)

// keep lets a person look at the pages: go test ./internal/report -keep DIR
var keep = flag.String("keep", "", "write the pages that the tests make into this folder")

// render is the page of some draws.
func render(t *testing.T, name string, d *draws.Draws, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Report(&b, d, o); err != nil {
		t.Fatal(err)
	}
	if *keep != "" {
		if err := os.WriteFile(filepath.Join(*keep, name+".html"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// container makes draws from a function of chain, draw and the chain's random numbers.
func container(t *testing.T, sites []draws.Site, stats []string, lengths []int,
	draw func(c, i int, r *rand.Rand) (x, stats []float64)) *draws.Draws {
	t.Helper()
	d, err := draws.New(sites, stats, len(lengths))
	if err != nil {
		t.Fatal(err)
	}
	for c, n := range lengths {
		r := rand.New(rand.NewPCG(7, uint64(c)))
		for i := range n {
			x, s := draw(c, i, r)
			if err := d.AppendChain(c, x, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

func scalar(name string, offset int) draws.Site {
	return draws.Site{Name: name, Offset: offset, Size: 1}
}

// funnel is like eight schools: mu, log_tau and theta[8] by a walk that sticks, diverging where tau is small.
func funnel(t *testing.T, chains, n int) *draws.Draws {
	sites := []draws.Site{scalar("mu", 0), scalar("log_tau", 1), {Name: "theta", Shape: []int{8}, Offset: 2, Size: 8}}
	state := make([][2]float64, chains)
	stats := []string{"lp", "divergent", "tree_depth", "step_size", "accept", "energy", "n_leapfrog"}
	lengths := make([]int, chains)
	for c := range lengths {
		lengths[c] = n
	}
	return container(t, sites, stats, lengths, func(c, _ int, r *rand.Rand) ([]float64, []float64) {
		s := &state[c]
		s[0] = 0.6*s[0] + 0.8*r.NormFloat64()
		s[1] = 0.93*s[1] + 0.36*r.NormFloat64()
		x := []float64{4 + 3*s[0], s[1]}
		lp := -s[0]*s[0]/2 - s[1]*s[1]/2
		for range 8 {
			z := r.NormFloat64()
			x = append(x, x[0]+math.Exp(s[1])*z)
			lp -= z * z / 2
		}
		diverged := 0.0
		if s[1] < -1.1 && r.Float64() < 0.25 {
			diverged = 1
		}
		return x, []float64{lp, diverged, float64(2 + r.IntN(3)), 0.31, 0.8 + 0.1*r.Float64(), -lp + r.ExpFloat64() - 3*s[1],
			7}
	})
}

// plain is chains of independent normal draws of a vector theta.
func plain(t *testing.T, chains, n, dim int) *draws.Draws {
	lengths := make([]int, chains)
	for c := range lengths {
		lengths[c] = n
	}
	sites := []draws.Site{{Name: "theta", Shape: []int{dim}, Size: dim}}
	return container(t, sites, nil, lengths, func(_, _ int, r *rand.Rand) ([]float64, []float64) {
		x := make([]float64, dim)
		for k := range x {
			x[k] = float64(k) + r.NormFloat64()
		}
		return x, nil
	})
}

// odd is all that can be unusual about draws at once, in elements of their own.
func odd(t *testing.T, lengths ...int) *draws.Draws {
	names := []string{"normal", "constant", "nan", "inf", "allnan", "huge", "tiny", "cauchy", "coin", "stuck", "offset",
		"<script>alert(1)</script>", `"quoted' & more`, "naïve site 名前 \u2028x"}
	var sites []draws.Site
	for k, n := range names {
		sites = append(sites, scalar(n, k))
	}
	return container(t, sites, []string{"energy", "<b>stat"}, lengths,
		func(c, i int, r *rand.Rand) ([]float64, []float64) {
			z := r.NormFloat64
			x := []float64{z(), 2.5, z(), z(), math.NaN(), 1e308 * math.Tanh(z()), 1e-300 * z(), z() / z(), float64(r.IntN(2)),
				z(), 1e9 + z(), z(), z(), z()}
			if i%50 == 7 {
				x[2] = math.NaN()
			}
			if i%60 == 9 {
				x[3] = math.Inf(1)
			}
			if c == 1 {
				x[9] = 0.25
			}
			return x, []float64{z(), math.NaN()}
		})
}

// many is a large run: elements 0 to dim-1, of which every 97th has chains that disagree.
func many(t *testing.T, chains, n, dim int) *draws.Draws {
	sites := []draws.Site{{Name: "beta", Shape: []int{dim}, Size: dim}}
	lengths := make([]int, chains)
	for c := range lengths {
		lengths[c] = n
	}
	return container(t, sites, []string{"divergent", "energy"}, lengths,
		func(c, i int, r *rand.Rand) ([]float64, []float64) {
			x := make([]float64, dim)
			e := 0.0
			for k := range x {
				x[k] = r.NormFloat64()
				e += x[k] * x[k] / 2
				if k%97 == 5 && c == 0 {
					x[k] += 0.4
				}
			}
			diverged := 0.0
			if r.IntN(500) == 0 {
				diverged = 1
			}
			return x, []float64{diverged, e + r.ExpFloat64()}
		})
}
