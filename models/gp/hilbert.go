package gp

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Hilbert approximates a stationary process by M functions on a box around the data, the eigenfunctions of the Laplace
// operator (Solin and Särkkä 2020, Statistics and Computing 30, 419–446). In one dimension, with u = x − Center and
// L = Factor·Half,
//
//	φ_j(u) = √(1/L) sin(ω_j (u + L)),  ω_j = π j/(2L),  f = Mean + Σ_j √S(ω_j) φ_j z_j,  z_j ~ N(0, 1)
//
// with the spectral density S of the kernel; in more, all products of such functions. The functions depend on the data
// alone, so that an evaluation costs n·M. The kernel is a [SquaredExponential], a [Matern], or a sum of these.
//
// [Rule] tells how many functions a length needs, and [Hilbert.Shortest] which length is too short for those.
type Hilbert struct {
	Center    []float64 // the middle of the data in each coordinate
	Half      []float64 // half of their range
	Functions []int     // how many functions each coordinate has; M is the product
	Factor    float64   // how far the box reaches beyond the data, at least 1; 0 means 1.5
}

// NewHilbert is the approximation on the box around the rows of x, with a number of functions for each column. New
// inputs for predictions belong to x.
func NewHilbert(x [][]float64, functions ...int) (Hilbert, error) {
	var h Hilbert
	bad := func(what, value, allowed string, args ...any) (Hilbert, error) {
		return Hilbert{}, &dist.Error{
			Distribution: "gp", Parameter: "NewHilbert." + what, Value: value, Allowed: fmt.Sprintf(allowed, args...),
		}
	}
	if len(x) < 2 || len(x[0]) == 0 {
		return bad("x", fmt.Sprintf("%d rows", len(x)), "it needs at least two rows and one column")
	}
	if len(functions) != len(x[0]) {
		return bad("functions", fmt.Sprint(functions), "x has %d columns, each of which needs a number", len(x[0]))
	}
	for d := range x[0] {
		low, high := math.Inf(1), math.Inf(-1)
		for i, row := range x {
			if len(row) != len(x[0]) || math.IsNaN(row[d]) || math.IsInf(row[d], 0) {
				return bad("x", fmt.Sprintf("%v at row %d", row, i), "it must be %d finite numbers", len(x[0]))
			}
			low, high = min(low, row[d]), max(high, row[d])
		}
		if low == high {
			return bad("x", fmt.Sprintf("%v in all of column %d", low, d), "a coordinate must vary")
		}
		h.Center, h.Half = append(h.Center, low+(high-low)/2), append(h.Half, (high-low)/2)
	}
	h.Functions = functions
	_, err := h.checked()
	return h, err
}

const defaultFactor = 1.5

// checked is the approximation with its default.
func (h Hilbert) checked() (Hilbert, error) {
	bad := func(field string, value any, allowed string) (Hilbert, error) {
		return h, &dist.Error{
			Distribution: "gp", Parameter: "Hilbert." + field, Value: fmt.Sprint(value), Allowed: allowed,
		}
	}
	if h.Factor == 0 {
		h.Factor = defaultFactor
	}
	if !(h.Factor >= 1 && !math.IsInf(h.Factor, 0)) {
		return bad("Factor", h.Factor, fmt.Sprintf("it must be finite and at least 1, or 0 for the default of %g",
			defaultFactor))
	}
	d := len(h.Center)
	if d == 0 || len(h.Half) != d || len(h.Functions) != d {
		return bad("Center", fmt.Sprintf("%d numbers, with %d of Half and %d of Functions", d, len(h.Half),
			len(h.Functions)), "there must be one of each for every coordinate")
	}
	total := 1
	for i := range d {
		if !(h.Half[i] > 0) || math.IsInf(h.Half[i], 0) {
			return bad("Half", h.Half[i], "it must be finite and greater than 0")
		}
		if h.Functions[i] < 1 || h.Functions[i] > mostFunctions/total {
			return bad("Functions", h.Functions, fmt.Sprintf(
				"there must be at least 1 for each coordinate, and a product of at most %d", mostFunctions))
		}
		total *= h.Functions[i]
	}
	return h, nil
}

// mostFunctions keeps a box of many coordinates from filling the memory.
const mostFunctions = 1 << 20

func (h Hilbert) must() Hilbert {
	h, err := h.checked()
	if err != nil {
		panic(err)
	}
	return h
}

// inside refuses inputs, [n, d], outside of the box, where the functions repeat themselves, mirrored. Inputs that
// differ between the evaluations of a vmap, and those of an evaluation that is to be fast, are not looked at: Compile
// and predictions see them before.
func (h Hilbert) inside(x torch.Tensor) {
	if mapped := torch.Must(x.T().KelvinDescribe()).Mapped; mapped || !thread.Checks() {
		return
	}
	values := torch.Must(torch.ToSlice[float64](x))
	coordinates := len(h.Center)
	for d, center := range h.Center {
		low, high := math.Inf(1), math.Inf(-1)
		for i := d; i < len(values); i += coordinates {
			low, high = min(low, values[i]), max(high, values[i])
		}
		reach := h.Factor * h.Half[d]
		if low >= center-reach && high <= center+reach {
			continue
		}
		far := max(high-center, center-low)
		fail("X", fmt.Sprintf("from %.6g to %.6g in coordinate %d", low, high, d), "the box reaches from %.6g to %.6g, and "+
			"outside of it the functions are mirror images of those inside: make it with NewHilbert of data and new inputs "+
			"together, or with a Half[%d] of at least %.6g and more Functions", center-reach, center+reach, d, far)
	}
}

// Basis are the functions at x, [n, M]; the last coordinate varies fastest. An input outside of the box is an error.
func (h Hilbert) Basis(x torch.Tensor) torch.Tensor {
	h = h.must()
	x = inputs(x)
	if d := x.Shape()[1]; d != len(h.Center) {
		fail("X", sized(x.Shape()), "the approximation is one of %d coordinates", len(h.Center))
	}
	h.inside(x)
	n := x.Shape()[0]
	out := torch.Of(1).Expand(n, 1)
	for d, m := range h.Functions {
		l := h.Factor * h.Half[d]
		j := make([]float64, m)
		for i := range j {
			j[i] = math.Pi / (2 * l) * float64(i+1)
		}
		phi := x.Slice(1, d, d+1).Add(l - h.Center[d]).Mul(vector(j)).Sin().Mul(1 / math.Sqrt(l))
		out = out.Unsqueeze(2).Mul(phi.Unsqueeze(1)).Reshape(n, -1)
	}
	return out
}

func vector(x []float64) torch.Tensor { return torch.New(x) }

// Scales are the standard deviations √S of the functions' coefficients, [M].
func (h Hilbert) Scales(k Kernel) torch.Tensor {
	h = h.must()
	w2 := [][]float64{{}}
	for d, m := range h.Functions {
		var next [][]float64
		for _, row := range w2 {
			for j := range m {
				w := math.Pi * float64(j+1) / (2 * h.Factor * h.Half[d])
				next = append(next, append(append([]float64{}, row...), w*w))
			}
		}
		w2 = next
	}
	var flat []float64
	for _, row := range w2 {
		flat = append(flat, row...)
	}
	frequencies := torch.New(flat, len(w2), len(h.Functions))
	return logSpectrum(k, frequencies).Mul(0.5).Exp()
}

// Latent declares f at x as a latent variable, as [Process.Latent] does; name_z are its M coefficients. A prediction
// at new inputs is the same model with the new x.
func (h Hilbert) Latent(c *ppl.Ctx, name string, k Kernel, x torch.Tensor, mean any) torch.Tensor {
	basis, scales := h.Basis(x), h.Scales(k)
	z := c.Sample(name+"_z", dist.Normal(0, 1).Expand(scales.Shape()...))
	return c.Deterministic(name, basis.MatMul(z.Mul(scales)).Add(parameter("mean", mean, 0)))
}

// Marginal is the distribution of y = f + noise at x with f integrated out, a normal distribution of low rank. noise
// is a number greater than 0, or [n].
func (h Hilbert) Marginal(k Kernel, x torch.Tensor, mean, noise any) dist.Distribution {
	n := rows(x)
	deviations := Process{X: x}.noise(noise)
	return dist.LowRankMultivariateNormal(parameter("mean", mean, 0).Expand(n), h.Basis(x).Mul(h.Scales(k)),
		deviations.Square().Expand(n))
}
