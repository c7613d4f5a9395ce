package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/kernels"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// prior is the prior of networks of ReLU units whose weights have variances σ_w²/fan-in and whose biases have σ_b²,
// with a number of hidden layers and a linear output: as the layers grow wide, the outputs become a Gaussian process
// (Neal 1996; Lee et al. 2018).
type prior struct {
	weightVariance, biasVariance float64 // σ_w² and σ_b²
	hidden                       int
}

var wide = prior{weightVariance: 1.6, biasVariance: 0.1, hidden: 3}

// pair are the variances of two numbers of mean 0 and their covariance.
type pair struct{ aa, bb, ab float64 }

// first is the law of a unit of the first layer at two inputs: σ_b² + σ_w² x·x'/d.
func (p prior) first(a, b [2]float64) pair {
	k := func(x, y [2]float64) float64 {
		return p.biasVariance + p.weightVariance*(x[0]*y[0]+x[1]*y[1])/2
	}
	return pair{k(a, a), k(b, b), k(a, b)}
}

// next is the law of a unit of the next layer, given the mean products of the ReLUs of this one.
func (p prior) next(m pair) pair {
	return pair{p.biasVariance + p.weightVariance*m.aa, p.biasVariance + p.weightVariance*m.bb,
		p.biasVariance + p.weightVariance*m.ab}
}

// dense is the network of the kernels.
func (p prior) dense() kernels.Dense {
	return kernels.Dense{Hidden: p.hidden, WeightVariance: p.weightVariance, BiasVariance: p.biasVariance}
}

// kernel is the covariance of the outputs at two inputs in the limit of wide layers.
func (p prior) kernel(a, b [2]float64) (pair, error) {
	k, err := p.dense().NNGP([][]float64{a[:], b[:]}, nil)
	if err != nil {
		return pair{}, err
	}
	return pair{k.At(0, 0), k.At(1, 1), k.At(0, 1)}, nil
}

// excessKurtosis is that of the output at an input for networks of one width. Given the layer before, the units of a
// layer are independent normals whose variance q is itself random, with
//
//	E[q'|q] = σ_b² + σ_w² q/2,   Var[q'|q] = σ_w⁴ (5/4) q²/width
//
// The first is linear in q: the variance of the output is that of the limit at every width, and what width changes is
// the shape.
func (p prior) excessKurtosis(a [2]float64, width int) float64 {
	q := p.first(a, a).aa
	square := q * q
	for range p.hidden {
		w, b := p.weightVariance, p.biasVariance
		q, square = b+w*q/2, b*b+b*w*q+w*w*square/4+w*w*1.25*square/float64(width)
	}
	return 3*square/(q*q) - 3
}

// outputs draws networks of one width and evaluates them at two inputs. Given the layer before, the units of a layer at
// the two inputs are independent pairs of normal numbers, so that no weights need be drawn: the law of the outputs is
// exactly that of the networks.
func (p prior) outputs(a, b [2]float64, width, draws int, seed uint64) (fa, fb []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		source := torch.NewSource(seed, uint64(width))
		for range draws {
			k := p.first(a, b)
			for layer := range p.hidden + 1 {
				units := width
				if layer == p.hidden {
					units = 1
				}
				normal, err := source.Normal([]int{2 * units}, gotch.Double, torch.CPU)
				if err != nil {
					return err
				}
				root := math.Sqrt(k.aa)
				slope := k.ab / root
				rest := math.Sqrt(max(0, k.bb-slope*slope))
				var m pair
				err = torch.View(normal, func(z []float64) error {
					for i := range units {
						u, v := root*z[2*i], slope*z[2*i]+rest*z[2*i+1]
						if units == 1 {
							fa, fb = append(fa, u), append(fb, v)
						}
						u, v = max(u, 0), max(v, 0)
						m.aa, m.bb, m.ab = m.aa+u*u, m.bb+v*v, m.ab+u*v
					}
					return nil
				})
				if err != nil {
					return err
				}
				torch.Free(normal)
				n := float64(units)
				k = p.next(pair{m.aa / n, m.bb / n, m.ab / n})
			}
		}
		return nil
	})
	return fa, fb, err
}

// scheme is the prior as a scheme of package nn.
func (p prior) scheme() nn.Scheme {
	return nn.EachSite(func(s nn.Site) nn.Law {
		if s.Bias {
			return nn.Normal(math.Sqrt(p.biasVariance))
		}
		return nn.Normal(math.Sqrt(p.weightVariance / float64(s.FanIn)))
	})
}

// meanError is the mean of independent numbers with its standard error.
func meanError(x []float64) (m, se float64) {
	m = mean(x)
	n := float64(len(x))
	for _, v := range x {
		se += (v - m) * (v - m) / (n * (n - 1))
	}
	return m, math.Sqrt(se)
}

// products are x y, one by one.
func products(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] * y[i]
	}
	return out
}

// sampleExcessKurtosis is that of numbers of mean 0.
func sampleExcessKurtosis(x []float64) float64 {
	second, fourth := 0.0, 0.0
	for _, v := range x {
		second += v * v
		fourth += v * v * v * v
	}
	n := float64(len(x))
	return fourth/n/(second/n*second/n) - 3
}
