package regression

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/regression/internal/formula"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/floats"
)

// process is a Gaussian process by gp.Hilbert, with the means of its functions over the training data, which are the
// intercept's.
type process struct {
	gp.Hilbert
	means []float64
}

// basis are the functions less their means, row by row.
func (f process) basis(z []float64) (flat []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		x, err := torch.FromSlice(z)
		if err != nil {
			return err
		}
		flat, err = torch.ToSlice[float64](f.Basis(x))
		return err
	})
	for i := range flat {
		if k := f.Functions[0]; f.means != nil {
			flat[i] -= f.means[i%k]
		}
	}
	return flat, err
}

// span is the standard deviation of a smooth, a mean over rows, for coefficients of variance 1; of mi also the mean.
type span struct{ mean, sd float64 }

// learnSmooth takes what the default priors of a smooth need, and the functions of a Gaussian process.
func (p *predictor) learnSmooth(s formula.SmoothDesign, z []float64) error {
	span, of := span{sd: 1}, process{}
	switch s.Kind {
	case "s", "t2": // the standard deviation, a mean over rows, for coefficients of variance 1
		span.sd = floats.Norm(z, 2) / math.Sqrt(float64(p.rows.N))
	case "mo":
		_, span.sd = sample.Moments(z)
	case "mi":
		span.mean, span.sd = sample.Moments(present(z))
	case "gp":
		x := make([][]float64, len(z))
		for i, v := range z {
			x[i] = []float64{v}
		}
		var err error
		if of.Hilbert, err = gp.NewHilbert(x, s.K); err != nil {
			return err
		}
		flat, err := of.basis(z)
		if err != nil {
			return err
		}
		for j := range s.K {
			mean, _ := sample.Moments(every(flat, j, s.K))
			of.means = append(of.means, mean)
		}
	}
	p.spans, p.process = append(p.spans, span), append(p.process, of)
	return nil
}

// smooth declares the coefficients of a smooth.
func (p *predictor) smooth(g getter, m *Model, i int, s formula.SmoothDesign) torch.Tensor {
	name, class, scale := s.Name+p.suffix(), "sd_smooth"+p.suffix(), over(2.5*p.scale, []float64{p.spans[i].sd})[0]
	switch s.Kind {
	case "mo":
		return p.monotonic(g, m, s, scale)
	case "mi":
		return m.scalar(g, isCoefficient, element("b"+p.suffix(), s.Name), fmt.Sprintf("Normal(0, %.3g)", scale),
			func() dist.Distribution { return dist.Normal(0, scale) }, "b"+p.suffix())
	}
	sd := m.scalar(g, isSD, "sd_"+name, fmt.Sprintf("HalfNormal(%.3g)", scale),
		func() dist.Distribution { return dist.HalfNormal(scale) }, class)
	n, scales := s.Columns, sd
	if s.Kind == "gp" {
		h := p.process[i]
		n = s.K
		loc, width := math.Log(h.Half[0]/2), 0.7 // from a sixteenth to the whole of the range, with probability 0.95
		length := m.scalar(g, isSD, "length_"+name, fmt.Sprintf("LogNormal(%.3g, %.3g)", loc, width),
			func() dist.Distribution { return dist.LogNormal(loc, width) })
		scales = h.Scales(gp.SquaredExponential{Scale: sd, Length: length})
	}
	m.note(isNeeded, "z_"+name)
	return g.sample("z_"+name, func() dist.Distribution { return dist.Normal(0, 1).Expand(int(n)) }).Mul(scales)
}

// monotonic declares a monotonic effect, and gives that of each level.
func (p *predictor) monotonic(g getter, m *Model, s formula.SmoothDesign, scale float64) torch.Tensor {
	steps := len(s.Levels) - 1
	b := m.scalar(g, isCoefficient, element("b"+p.suffix(), s.Name), fmt.Sprintf("Normal(0, %.3g)", scale),
		func() dist.Distribution { return dist.Normal(0, scale) }, "b"+p.suffix())
	shares := torch.Of(torch.Must(torch.FromSlice([]float64{1})))
	if steps > 1 {
		site := "simplex_" + s.Name + p.suffix()
		r, says := isParameter, strings.Join(s.Levels, " < ")
		if steps > 10 { // too many for a summary
			r, says = isEffect, strings.Join(s.Levels[:5], " < ")+" < …"
		}
		m.note(r, site, s.Levels[1:])
		m.describe(site, "Dirichlet(1), of the steps "+says)
		shares = g.sample(site, func() dist.Distribution {
			return dist.Dirichlet(torch.Must(torch.FromSlice(slices.Repeat([]float64{1}, steps))))
		})
	}
	before := make([]float64, 0, (steps+1)*steps) // D for each step below a level
	for level := range steps + 1 {
		before = append(before, slices.Repeat([]float64{float64(steps)}, level)...)
		before = append(before, make([]float64, steps-level)...)
	}
	return torch.Of(torch.Must(torch.FromSlice(before, int(steps+1), int(steps)))).MatMul(shares).Mul(b)
}

// addSmooth gives the data of a smooth.
func (p *predictor) addSmooth(i int, z []float64, numbers func(key string, x []float64, shape ...int),
	indices func(key string, index []int)) error {
	key, s := p.data("z%d", i), p.design.Smooths()[i]
	switch s.Kind {
	case "mi":
		numbers(key, z)
	case "mo":
		index := make([]int, len(z))
		for i, v := range z {
			index[i] = int(v)
		}
		indices(key, index)
	case "gp":
		h := p.process[i]
		reach := 1.5 * h.Half[0]
		for row, v := range z {
			if math.Abs(v-h.Center[0]) > reach {
				return fmt.Errorf("row %d: %s is %g, and predictions of it reach from %g to %g", row+1, s.Name, v,
					h.Center[0]-reach, h.Center[0]+reach)
			}
		}
		flat, err := h.basis(z)
		if numbers(key, flat, len(z), int(s.K)); err != nil {
			return err
		}
	default:
		numbers(key, z, int(len(z)/s.Columns), int(s.Columns))
	}
	return nil
}
