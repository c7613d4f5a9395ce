package evidence

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
)

// normal is a normal law with a full covariance.
type normal struct {
	mean  []float64
	lower *mat.TriDense // of the covariance
	log   float64       // of its normalizer
}

func fitNormal(chains [][]float64, d int) (*normal, error) {
	x := slices.Concat(chains...)
	n := len(x) / d
	if n < 2*d+2 {
		return nil, fmt.Errorf("the first halves of the chains are %d draws: a normal proposal in %d dimensions needs %d "+
			"at least: draw more: %w", n, d, 2*d+2, infer.ErrConfig)
	}
	g := &normal{mean: make([]float64, d)}
	for k, v := range x {
		g.mean[k%d] += v / float64(n)
	}
	rows := mat.NewDense(n, d, nil)
	for k, v := range x {
		rows.Set(k/d, k%d, (v-g.mean[k%d])/math.Sqrt(float64(n-1)))
	}
	var covariance mat.SymDense
	covariance.SymOuterK(1, rows.T())
	var c mat.Cholesky
	if !c.Factorize(&covariance) {
		return nil, fmt.Errorf("the covariance of the first halves of the chains is not positive definite: a dimension "+
			"does not move, or is a function of others: %w", infer.ErrNonFinite)
	}
	return g.factored(&c), nil
}

// normalOfPrecision is the law with a mean and a precision, of d² numbers, or d where it is diagonal.
func normalOfPrecision(mean, precision []float64) (*normal, error) {
	d := len(mean)
	p := mat.NewSymDense(d, nil)
	for i := range d {
		if len(precision) == d {
			p.SetSym(i, i, precision[i])
			continue
		}
		for j := range i + 1 {
			p.SetSym(i, j, precision[i*d+j])
		}
	}
	var c, of mat.Cholesky
	var covariance mat.SymDense
	if !c.Factorize(p) || c.InverseTo(&covariance) != nil || !of.Factorize(&covariance) {
		return nil, fmt.Errorf("the precision at the mode is not positive definite: %w", infer.ErrNonFinite)
	}
	return (&normal{mean: slices.Clone(mean)}).factored(&of), nil
}

// factored takes over the factor of the covariance.
func (g *normal) factored(c *mat.Cholesky) *normal {
	g.lower = &mat.TriDense{}
	c.LTo(g.lower)
	g.log = 0.5*float64(len(g.mean))*math.Log(2*math.Pi) + 0.5*c.LogDet()
	return g
}

func (g *normal) logDensity(x []float64) float64 {
	lower := g.lower.RawTriangular()
	square := 0.0
	z := make([]float64, len(g.mean))
	for i, m := range g.mean {
		row := lower.Data[i*lower.Stride : i*lower.Stride+i+1]
		v := x[i] - m
		for j, l := range row[:i] {
			v -= l * z[j]
		}
		z[i] = v / row[i]
		square += z[i] * z[i]
	}
	return -0.5*square - g.log
}

// appendDraw appends a draw to x.
func (g *normal) appendDraw(x []float64, rng *rand.Rand) []float64 {
	z := make([]float64, len(g.mean))
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	for i, v := range g.mean {
		for j := range i + 1 {
			v += g.lower.At(i, j) * z[j]
		}
		x = append(x, v)
	}
	return x
}
