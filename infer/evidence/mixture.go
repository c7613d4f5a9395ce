package evidence

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// mixture is a mixture of normal laws.
type mixture struct {
	log   []float64 // logarithms of the weights
	parts []*normal
}

// single is one normal law.
func single(g *normal) *mixture { return &mixture{log: []float64{0}, parts: []*normal{g}} }

// fitMixture fits the proposal of a bridge to draws, rows after rows in each chain: one normal law, or a mixture of 2,
// 4, 8, ... of them for as long as it tells the draws better that were kept from its fit, every fourth.
func fitMixture(chains [][]float64, d int, seed uint64) (*mixture, error) {
	one, err := fitNormal(chains, d)
	if err != nil {
		return nil, err
	}
	best := single(one)
	var fitted, kept []float64
	x := slices.Concat(chains...)
	for k := range len(x) / d {
		if row := x[k*d : (k+1)*d]; k%4 == 3 {
			kept = append(kept, row...)
		} else {
			fitted = append(fitted, row...)
		}
	}
	own, err := fitNormal([][]float64{fitted}, d)
	if err != nil {
		return best, nil // too few to compare
	}
	scores := single(own).logDensities(kept)
	rng := rand.New(rand.NewPCG(seed, 0x6d697874757265))
	for k := 2; len(fitted) >= rowsOfPart*d*d*k; k *= 2 {
		m := expectMaximise(own, fitted, d, k, rng)
		if m == nil {
			break
		}
		next := m.logDensities(kept)
		gain := make([]float64, len(next))
		for i := range next {
			gain[i] = next[i] - scores[i]
		}
		mean, v := moments(gain)
		if !(mean > worthwhile && mean > 2*math.Sqrt(v/float64(len(gain)))) {
			break
		}
		best, scores = m, next
	}
	return best, nil
}

const (
	rowsOfPart = 15   // draws for each dimension of a part of a mixture at least
	worthwhile = 0.01 // nats of a draw that a larger mixture must gain
	sweeps     = 30   // of expectation and maximisation
)

// expectMaximise fits k normal laws by expectation and maximisation (Dempster, Laird and Rubin 1977), from draws far
// apart as the first means. A part that loses its draws to others is left out; nil where none is left.
func expectMaximise(own *normal, x []float64, d, k int, rng *rand.Rand) *mixture {
	n := len(x) / d
	m := &mixture{}
	nearest := make([]float64, n) // squared distance to the nearest mean, on the scale of own
	pick := rng.IntN(n)
	for i := range nearest {
		nearest[i] = math.Inf(1)
	}
	for range k {
		center := x[pick*d : (pick+1)*d]
		part := *own
		part.mean = slices.Clone(center)
		m.parts, m.log = append(m.parts, &part), append(m.log, -math.Log(float64(k)))
		sum := 0.0
		for i := range n {
			square := -2 * (part.logDensity(x[i*d:(i+1)*d]) + part.log)
			nearest[i] = math.Min(nearest[i], square)
			sum += nearest[i]
		}
		u := rng.Float64() * sum
		for pick = 0; pick < n-1 && u > nearest[pick]; pick++ {
			u -= nearest[pick]
		}
	}
	share := make([][]float64, k) // of each draw that is of each part
	for p := range share {
		share[p] = make([]float64, n)
	}
	for range sweeps {
		logs := make([]float64, len(m.parts))
		for i := range n {
			for p, g := range m.parts {
				logs[p] = m.log[p] + g.logDensity(x[i*d:(i+1)*d])
			}
			z := sample.LogSumExp(logs)
			for p, l := range logs {
				share[p][i] = math.Exp(l - z)
			}
		}
		var parts []*normal
		var log []float64
		for p := range m.parts {
			if g, weight := weightedNormal(x, share[p], d); g != nil {
				parts, log = append(parts, g), append(log, math.Log(weight/float64(n)))
			}
		}
		if len(parts) == 0 {
			return nil
		}
		z := sample.LogSumExp(log)
		for p := range log {
			log[p] -= z
		}
		m.parts, m.log = parts, log
	}
	return m
}

// weightedNormal has the mean and covariance of draws with weights, its correlations smaller where there are few; nil
// where they are fewer than the dimensions.
func weightedNormal(x, w []float64, d int) (*normal, float64) {
	sum := 0.0
	mean := make([]float64, d)
	for k, v := range w {
		sum += v
		for i := range d {
			mean[i] += v * x[k*d+i]
		}
	}
	if !(sum > float64(d+1)) {
		return nil, 0
	}
	for i := range mean {
		mean[i] /= sum
	}
	rows := mat.NewDense(len(w), d, nil)
	for k, v := range w {
		s := math.Sqrt(v / sum)
		for i := range d {
			rows.Set(k, i, s*(x[k*d+i]-mean[i]))
		}
	}
	var covariance mat.SymDense
	covariance.SymOuterK(1, rows.T())
	for i := range d {
		for j := range i {
			covariance.SetSym(i, j, covariance.At(i, j)*sum/(sum+float64(d)))
		}
	}
	var c mat.Cholesky
	if !c.Factorize(&covariance) {
		return nil, 0
	}
	return (&normal{mean: mean}).factored(&c), sum
}

func (m *mixture) logDensity(x []float64) float64 {
	if len(m.parts) == 1 {
		return m.parts[0].logDensity(x)
	}
	logs := make([]float64, len(m.parts))
	for p, g := range m.parts {
		logs[p] = m.log[p] + g.logDensity(x)
	}
	return sample.LogSumExp(logs)
}

func (m *mixture) logDensities(x []float64) []float64 {
	d := len(m.parts[0].mean)
	out := make([]float64, len(x)/d)
	for k := range out {
		out[k] = m.logDensity(x[k*d : (k+1)*d])
	}
	return out
}

// draw draws n points.
func (m *mixture) draw(n int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 0x6272696467656e))
	var x []float64
	for range n {
		p, u := 0, rng.Float64()
		for ; p < len(m.parts)-1 && u > math.Exp(m.log[p]); p++ {
			u -= math.Exp(m.log[p])
		}
		x = m.parts[p].appendDraw(x, rng)
	}
	return x
}
