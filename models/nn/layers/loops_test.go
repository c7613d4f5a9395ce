package layers_test

import (
	"math"

	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
)

// gelu is x Φ(x).
func gelu(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }

// rows are the parts of equal length, without copies.
func rows(x nntest.Array, n int) [][]float64 {
	var out [][]float64
	for i := 0; i < len(x.Data); i += len(x.Data) / n {
		out = append(out, x.Data[i:i+len(x.Data)/n])
	}
	return out
}

// meanOf is the mean.
func meanOf(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// meanSquare is the mean square.
func meanSquare(x []float64) (m float64) {
	for _, v := range x {
		m += v * v / float64(len(x))
	}
	return m
}

// perRow is f of the elements of each row, with the row's number.
func perRow(x nntest.Array, n int, f func(i int, row []float64) func(v float64) float64) nntest.Array {
	y := nntest.Zeros(x.Shape...)
	out := rows(y, n)
	for i, row := range rows(x, n) {
		g := f(i, row)
		for j, v := range row {
			out[i][j] = g(v)
		}
	}
	return y
}

// plus is the sum of the elements.
func plus(x, y nntest.Array) nntest.Array {
	z := nntest.Zeros(x.Shape...)
	for i := range z.Data {
		z.Data[i] = x.Data[i] + y.Data[i]
	}
	return z
}

// layerNorm normalises the last axis.
func layerNorm(p map[string]nntest.Array, name string, x nntest.Array) nntest.Array {
	features := x.Shape[len(x.Shape)-1]
	y := nntest.Zeros(x.Shape...)
	for i, v := range x.Data {
		row := x.Data[i/features*features : (i/features+1)*features]
		m := meanOf(row)
		variance := meanSquare(row) - m*m
		y.Data[i] = (v-m)/math.Sqrt(variance+1e-5)*p[name+".scale"].Data[i%features] + p[name+".bias"].Data[i%features]
	}
	return y
}

// attention is a loop over heads, steps and what each step sees.
func attention(p map[string]nntest.Array, name string, x nntest.Array, heads int, causal bool) nntest.Array {
	q, k, v := nntest.Linear(p, name+".query", x), nntest.Linear(p, name+".key", x), nntest.Linear(p, name+".value", x)
	steps, features := x.Shape[0], x.Shape[1]
	size := features / heads
	y := nntest.Zeros(steps, features)
	for h := range heads {
		for t := range steps {
			var total float64
			values := make([]float64, size)
			for s := range steps {
				if causal && s > t {
					continue
				}
				var score float64
				for i := h * size; i < (h+1)*size; i++ {
					score += *q.At(t, i) * *k.At(s, i)
				}
				w := math.Exp(score / math.Sqrt(float64(size)))
				total += w
				for i := range values {
					values[i] += w * *v.At(s, h*size+i)
				}
			}
			for i := range values {
				*y.At(t, h*size+i) = values[i] / total
			}
		}
	}
	return nntest.Linear(p, name+".output", y)
}

// weightNorm is the weight of a direction and a scale.
func weightNorm(p map[string]nntest.Array, name string) nntest.Array {
	v := p[name+".direction"]
	return perRow(v, v.Shape[0], func(i int, row []float64) func(float64) float64 {
		length := math.Sqrt(meanSquare(row) * float64(len(row)))
		return func(x float64) float64 { return x / length * p[name+".scale"].Data[i] }
	})
}

// frn is filter response normalisation of the channels, with its threshold.
func frn(p map[string]nntest.Array, name string, x nntest.Array) nntest.Array {
	return perRow(x, x.Shape[0], func(i int, row []float64) func(float64) float64 {
		size := math.Sqrt(meanSquare(row) + 1e-6)
		return func(v float64) float64 {
			return math.Max(p[name+".scale"].Data[i]*v/size+p[name+".bias"].Data[i], p[name+".threshold"].Data[i])
		}
	})
}

// batchNorm normalises the channels by the sites "mean" and "variance".
func batchNorm(p map[string]nntest.Array, name string, epsilon float64, x nntest.Array) nntest.Array {
	return perRow(x, x.Shape[0], func(i int, _ []float64) func(float64) float64 {
		at := func(site string) float64 { return p[name+"."+site].Data[i] }
		return func(v float64) float64 {
			return (v-at("mean"))/math.Sqrt(at("variance")+epsilon)*at("scale") + at("bias")
		}
	})
}

// batchNormOf normalises the channels by the moments of the batch.
func batchNormOf(p map[string]nntest.Array, name string, epsilon float64, x []nntest.Array) []nntest.Array {
	channels := x[0].Shape[0]
	mean, variance := nntest.Zeros(channels), nntest.Zeros(channels)
	for i := range channels {
		var all []float64
		for _, one := range x {
			all = append(all, rows(one, channels)[i]...)
		}
		mean.Data[i] = meanOf(all)
		for _, v := range all {
			variance.Data[i] += (v - mean.Data[i]) * (v - mean.Data[i]) / float64(len(all))
		}
	}
	own := map[string]nntest.Array{name + ".scale": p[name+".scale"], name + ".bias": p[name+".bias"],
		name + ".mean": mean, name + ".variance": variance}
	return eachOf(x, func(one nntest.Array) nntest.Array { return batchNorm(own, name, epsilon, one) })
}

// eachOf is f of each array.
func eachOf(x []nntest.Array, f func(nntest.Array) nntest.Array) []nntest.Array {
	var out []nntest.Array
	for _, one := range x {
		out = append(out, f(one))
	}
	return out
}
