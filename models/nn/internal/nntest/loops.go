package nntest

import "math"

// Linear is W x + b along the last axis.
func Linear(p map[string]Array, name string, x Array) Array {
	w := p[name+".weight"]
	b, biased := p[name+".bias"]
	features, out := w.Shape[1], w.Shape[0]
	rows := int64(len(x.Data)) / features
	y := Zeros(append(append([]int64{}, x.Shape[:len(x.Shape)-1]...), out)...)
	for r := range rows {
		for o := range out {
			var sum float64
			for i := range features {
				sum += *w.At(o, i) * x.Data[r*features+i]
			}
			if biased {
				sum += *b.At(o)
			}
			y.Data[r*out+o] = sum
		}
	}
	return y
}

// Conv2d correlates [c, h, w]; sequences have height 1 and are padded along the width alone.
func Conv2d(w Array, b []float64, x Array, stride, padding, groups int64, sequence bool) Array {
	out, inGroup, kh, kw := w.Shape[0], w.Shape[1], w.Shape[2], w.Shape[3]
	ph, sh := padding, stride
	if sequence {
		ph, sh = 0, 1
	}
	y := Zeros(out, (x.Shape[1]+2*ph-kh)/sh+1, (x.Shape[2]+2*padding-kw)/stride+1)
	for o := range out {
		group := o / (out / groups)
		for r := range y.Shape[1] {
			for s := range y.Shape[2] {
				var sum float64
				if b != nil {
					sum = b[o]
				}
				for c := range inGroup {
					for i := range kh {
						for j := range kw {
							u, v := r*sh-ph+i, s*stride-padding+j
							if u >= 0 && u < x.Shape[1] && v >= 0 && v < x.Shape[2] {
								sum += *w.At(o, c, i, j) * *x.At(group*inGroup+c, u, v)
							}
						}
					}
				}
				*y.At(o, r, s) = sum
			}
		}
	}
	return y
}

// GELU is x Φ(x).
func GELU(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }

// Rows are the parts of equal length, without copies.
func Rows(x Array, n int) [][]float64 {
	var out [][]float64
	for i := 0; i < len(x.Data); i += len(x.Data) / n {
		out = append(out, x.Data[i:i+len(x.Data)/n])
	}
	return out
}

// Mean is the mean.
func Mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// MeanSquare is the mean square.
func MeanSquare(x []float64) (m float64) {
	for _, v := range x {
		m += v * v / float64(len(x))
	}
	return m
}

// PerRow is f of the elements of each row, with the row's number.
func PerRow(x Array, n int, f func(i int, row []float64) func(v float64) float64) Array {
	y := Zeros(x.Shape...)
	out := Rows(y, n)
	for i, row := range Rows(x, n) {
		g := f(i, row)
		for j, v := range row {
			out[i][j] = g(v)
		}
	}
	return y
}

// Plus is the sum of the elements.
func Plus(x, y Array) Array {
	z := Zeros(x.Shape...)
	for i := range z.Data {
		z.Data[i] = x.Data[i] + y.Data[i]
	}
	return z
}

// LayerNorm normalises the last axis.
func LayerNorm(p map[string]Array, name string, x Array) Array {
	features := int(x.Shape[len(x.Shape)-1])
	y := Zeros(x.Shape...)
	for i, v := range x.Data {
		row := x.Data[i/features*features : (i/features+1)*features]
		m := Mean(row)
		variance := MeanSquare(row) - m*m
		y.Data[i] = (v-m)/math.Sqrt(variance+1e-5)*p[name+".scale"].Data[i%features] + p[name+".bias"].Data[i%features]
	}
	return y
}

// Attention is a loop over heads, steps and what each step sees.
func Attention(p map[string]Array, name string, x Array, heads int64, causal bool) Array {
	q, k, v := Linear(p, name+".query", x), Linear(p, name+".key", x), Linear(p, name+".value", x)
	steps, features := x.Shape[0], x.Shape[1]
	size := features / heads
	y := Zeros(steps, features)
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
					values[i] += w * *v.At(s, h*size+int64(i))
				}
			}
			for i := range values {
				*y.At(t, h*size+int64(i)) = values[i] / total
			}
		}
	}
	return Linear(p, name+".output", y)
}

// WeightNorm is the weight of a direction and a scale.
func WeightNorm(p map[string]Array, name string) Array {
	v := p[name+".direction"]
	return PerRow(v, int(v.Shape[0]), func(i int, row []float64) func(float64) float64 {
		length := math.Sqrt(MeanSquare(row) * float64(len(row)))
		return func(x float64) float64 { return x / length * p[name+".scale"].Data[i] }
	})
}

// FRN is filter response normalisation of the channels, with its threshold.
func FRN(p map[string]Array, name string, x Array) Array {
	return PerRow(x, int(x.Shape[0]), func(i int, row []float64) func(float64) float64 {
		size := math.Sqrt(MeanSquare(row) + 1e-6)
		return func(v float64) float64 {
			return math.Max(p[name+".scale"].Data[i]*v/size+p[name+".bias"].Data[i], p[name+".threshold"].Data[i])
		}
	})
}

// BatchNorm normalises the channels by the sites "mean" and "variance".
func BatchNorm(p map[string]Array, name string, epsilon float64, x Array) Array {
	return PerRow(x, int(x.Shape[0]), func(i int, _ []float64) func(float64) float64 {
		at := func(site string) float64 { return p[name+"."+site].Data[i] }
		return func(v float64) float64 {
			return (v-at("mean"))/math.Sqrt(at("variance")+epsilon)*at("scale") + at("bias")
		}
	})
}

// BatchNormOf normalises the channels by the moments of the batch.
func BatchNormOf(p map[string]Array, name string, epsilon float64, x []Array) []Array {
	channels := int(x[0].Shape[0])
	mean, variance := Zeros(int64(channels)), Zeros(int64(channels))
	for i := range channels {
		var all []float64
		for _, one := range x {
			all = append(all, Rows(one, channels)[i]...)
		}
		mean.Data[i] = Mean(all)
		for _, v := range all {
			variance.Data[i] += (v - mean.Data[i]) * (v - mean.Data[i]) / float64(len(all))
		}
	}
	own := map[string]Array{name + ".scale": p[name+".scale"], name + ".bias": p[name+".bias"], name + ".mean": mean,
		name + ".variance": variance}
	return EachOf(x, func(one Array) Array { return BatchNorm(own, name, epsilon, one) })
}

// EachOf is f of each array.
func EachOf(x []Array, f func(Array) Array) []Array {
	var out []Array
	for _, one := range x {
		out = append(out, f(one))
	}
	return out
}

// Conv1d is Conv2d of height 1.
func Conv1d(w Array, b []float64, x Array, stride, padding, groups int64) Array {
	w2 := New([]int64{w.Shape[0], w.Shape[1], 1, w.Shape[2]}, w.Data)
	y := Conv2d(w2, b, New([]int64{x.Shape[0], 1, x.Shape[1]}, x.Data), stride, padding, groups, true)
	return New([]int64{y.Shape[0], y.Shape[2]}, y.Data)
}
