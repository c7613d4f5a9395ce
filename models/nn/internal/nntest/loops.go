package nntest

// Linear is W x + b along the last axis.
func Linear(p map[string]Array, name string, x Array) Array {
	w := p[name+".weight"]
	b, biased := p[name+".bias"]
	features, out := w.Shape[1], w.Shape[0]
	rows := len(x.Data) / features
	y := Zeros(append(append([]int{}, x.Shape[:len(x.Shape)-1]...), out)...)
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
func Conv2d(w Array, b []float64, x Array, stride, padding, groups int, sequence bool) Array {
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

// Conv1d is Conv2d of height 1.
func Conv1d(w Array, b []float64, x Array, stride, padding, groups int) Array {
	w2 := New([]int{w.Shape[0], w.Shape[1], 1, w.Shape[2]}, w.Data)
	y := Conv2d(w2, b, New([]int{x.Shape[0], 1, x.Shape[1]}, x.Data), stride, padding, groups, true)
	return New([]int{y.Shape[0], y.Shape[2]}, y.Data)
}
