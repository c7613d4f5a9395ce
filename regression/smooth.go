package regression

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/models/gp"
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

// span is the standard deviation of a smooth, a mean over rows, for coefficients of variance 1; of products that of
// their values, and for those of mi() alone also the mean, which is taken off.
type span struct{ mean, sd float64 }

// learnSmooth takes what the default priors of a smooth need, and the functions of a Gaussian process.
func (p *predictor) learnSmooth(s formula.SmoothDesign, z []float64) (err error) {
	span, of := span{sd: 1}, process{}
	switch s.Kind {
	case "s", "t2": // the standard deviation, a mean over rows, for coefficients of variance 1
		span.sd = floats.Norm(z, 2) / math.Sqrt(float64(p.rows.N))
	case "product":
		values := make([]float64, p.rows.N)
		for i := range values {
			values[i] = floats.Prod(z[i*s.Columns : (i+1)*s.Columns])
		}
		mean, sd := sample.Moments(present(values))
		if span.sd = sd; !slices.ContainsFunc(s.Factors, func(f formula.Factor) bool { return f.Levels != nil }) {
			span.mean = mean
		}
	case "gp":
		of, err = newProcess(s, z)
	}
	p.spans, p.process = append(p.spans, span), append(p.process, of)
	return err
}

// newProcess has the functions of a Gaussian process, less their means in the rows that it is of: that of a level has
// no constant beside the coefficient of the level, and one that a number multiplies has all of it.
func newProcess(s formula.SmoothDesign, z []float64) (of process, err error) {
	x := make([][]float64, 0, len(z))
	for _, v := range formula.Every(z, 0, s.Columns) {
		x = append(x, []float64{v})
	}
	if of.Hilbert, err = gp.NewHilbert(x, s.K); err != nil || s.By {
		return of, err
	}
	flat, err := of.basis(formula.Every(z, 0, s.Columns))
	for j := range s.K {
		column := formula.Every(flat, j, s.K)
		if s.Columns > 1 {
			for i, here := range formula.Every(z, 1, 2) {
				if here == 0 {
					column[i] = math.NaN()
				}
			}
		}
		mean, _ := sample.Moments(present(column))
		of.means = append(of.means, mean)
	}
	return of, err
}

// smooth declares the coefficients of a smooth, and for each mo() of a product what its levels have.
func (p *predictor) smooth(g getter, m *Model, i int, s formula.SmoothDesign) (w torch.Tensor, steps []torch.Tensor) {
	name, class, scale := s.Name+p.suffix(), "sd_smooth"+p.suffix(), over(2.5*p.scale, []float64{p.spans[i].sd})[0]
	if s.Kind == "product" {
		b := m.scalar(g, isCoefficient, element("b"+p.suffix(), s.Name), fmt.Sprintf("Normal(0, %.3g)", scale),
			func() dist.Distribution { return dist.Normal(0, scale) }, "b"+p.suffix())
		return b, p.monotonic(g, m, s)
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
	return g.sample("z_"+name, func() dist.Distribution { return dist.Normal(0, 1).Expand(n) }).Mul(scales), nil
}

// monotonic declares the shares of the steps of each mo() in a product, and gives the sums before each level, times
// their number.
func (p *predictor) monotonic(g getter, m *Model, s formula.SmoothDesign) (out []torch.Tensor) {
	several := 0
	for _, f := range s.Factors {
		several += min(len(f.Levels), 1)
	}
	for k, f := range s.Factors {
		steps := len(f.Levels) - 1
		if f.Levels == nil {
			out = append(out, torch.Tensor{})
			continue
		}
		shares := torch.Of(torch.Must(torch.FromSlice([]float64{1})))
		if steps > 1 {
			site := "simplex_" + s.Name + p.suffix()
			if several > 1 {
				site = fmt.Sprintf("%s_%d", site, k+1)
			}
			r, says := isParameter, strings.Join(f.Levels, " < ")
			if steps > 10 { // too many for a summary
				r, says = isEffect, strings.Join(f.Levels[:5], " < ")+" < …"
			}
			m.note(r, site, f.Levels[1:])
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
		out = append(out, torch.Of(torch.Must(torch.FromSlice(before, steps+1, steps))).MatMul(shares))
	}
	return out
}
