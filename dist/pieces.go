package dist

import (
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What is left of a computation over many numbers stays until the scope around it ends: a hundred temporaries of a
// million numbers are 0.8 GB. Functions with many are computed by pieces, each in a scope of its own.

// pieceSize is the numbers of a piece: few, so that its temporaries stay in the cache, and many beside the time that an
// operation takes on nothing.
const pieceSize = 1 << 12

// inPieces is f of d at numbers that broadcast against its batch, and of the shape of both. Within vmap, in a
// recording, where gradients are wanted, and where d cannot be divided, it is f at once.
func inPieces[D Distribution](d D, f func(d D, x ...torch.Tensor) torch.Tensor, x ...torch.Tensor) torch.Tensor {
	batch := d.BatchShape()
	shapes := [][]int{batch}
	for _, v := range x {
		shapes = append(shapes, v.Shape())
	}
	shape := broadcast(d.Name(), shapes...)
	longest, size := 0, 1
	for i, n := range shape {
		size *= n
		if n > shape[longest] {
			longest = i
		}
	}
	if size <= pieceSize || undivided() {
		return f(d, x...)
	}
	p := part{back: len(shape) - longest, n: max(1, pieceSize*shape[longest]/size)}
	var whole *ts.Tensor // made before the pieces, between whose temporaries no piece then stays
	for ; p.from < shape[longest]; p.from += p.n {
		p.n = min(p.n, shape[longest]-p.from)
		of, ok := partOf(Distribution(d), p).(D)
		if !ok {
			return f(d, x...)
		}
		y := tidy(func() torch.Tensor {
			some := make([]torch.Tensor, len(x))
			for i, v := range x {
				some[i] = p.of(v)
			}
			return f(of, some...)
		})
		if whole == nil {
			if torch.Must(foreign.RequiresGrad(y.T())) {
				return f(d, x...)
			}
			whole = ts.MustEmpty(torch.Int64s(shape), y.T().DType(), torch.Must(torch.DeviceOf(y)))
		}
		place := whole.MustNarrow(int64(longest), int64(p.from), int64(p.n), false)
		place.Copy_(y.T())
		torch.Free(torch.Of(place), y)
	}
	return torch.Of(whole)
}

// byPieces is what f gives of two arguments that broadcast, by pieces.
func byPieces(family string, a, t torch.Tensor, f func(a, t torch.Tensor) []torch.Tensor) []torch.Tensor {
	shape := broadcast(family, a.Shape(), t.Shape())
	n := int(count64(shape))
	if n <= pieceSize || undivided() {
		return f(a, t)
	}
	flat := func(v torch.Tensor) torch.Tensor {
		switch {
		case operand.IsNumber(v):
			return v
		case v.Numel() == 1:
			return v.Reshape(1)
		}
		return expandTo(v, shape).Reshape(n)
	}
	a, t = flat(a), flat(t)
	p := part{back: 1, n: pieceSize}
	var pieces []torch.Tensor
	for ; p.from < n; p.from += p.n {
		p.n = min(p.n, n-p.from)
		pieces = append(pieces, tidy(func() torch.Tensor { return torch.Stack(0, f(p.of(a), p.of(t))) }))
	}
	whole := together(pieces, 1)
	var out []torch.Tensor
	for i := range whole.Shape()[0] {
		out = append(out, whole.At(i).Reshape(shape...))
	}
	return out
}

// undivided says that a computation is not divided: within vmap no shape is all, and a recording would hold all parts.
func undivided() bool { return ts.KelvinRecorded() || len(thread.Levels()) > 0 }

// together puts pieces together, and frees them.
func together(all []torch.Tensor, dim int) torch.Tensor {
	whole := torch.Cat(dim, all)
	torch.Free(all...)
	return whole
}

// tidy is f in a scope of its own.
func tidy(f func() torch.Tensor) (y torch.Tensor) {
	torch.Must(0, torch.Do(func(s *torch.Scope) error {
		y = f()
		s.Keep(y)
		return nil
	}))
	return y
}

// inRows is what f draws in a shape, by parts of the first dimension; each takes a number of uniform numbers that is a
// multiple of four, so that they are those of all at once. each is how many a draw takes.
func inRows(sample, batch []int, each int, f func(sample []int) torch.Tensor) torch.Tensor {
	if len(sample) == 0 || undivided() {
		return f(sample)
	}
	for _, n := range join(sample[1:], batch) {
		each *= n
	}
	rows := (pieceSize/max(each, 1) + 4) / 4 * 4
	if sample[0] <= rows {
		return f(sample)
	}
	all := []torch.Tensor{}
	for from := 0; from < sample[0]; from += rows {
		some := join([]int{min(rows, sample[0]-from)}, sample[1:])
		all = append(all, tidy(func() torch.Tensor { return f(some) }))
	}
	return together(all, 0)
}

// part is n numbers of a dimension that is counted from the end: in a row, or at an index. The zero value is all.
type part struct {
	back    int
	from, n int
	index   torch.Tensor
}

// of is a part of a tensor; the whole of one that is a single number there.
func (p part) of(v torch.Tensor) torch.Tensor {
	if operand.IsNumber(v) || p.back == 0 {
		return v
	}
	shape := v.Shape()
	if len(shape) < p.back || shape[len(shape)-p.back] == 1 {
		return v
	}
	if !operand.IsNumber(p.index) {
		return v.IndexSelect(-p.back, p.index)
	}
	return torch.Of(v.T().MustNarrow(int64(-p.back), int64(p.from), int64(p.n), false))
}

func (p part) base(b base) base {
	if at := len(b.batch) - p.back; at >= 0 && b.batch[at] > 1 {
		b.batch = b.BatchShape()
		b.batch[at] = p.n
	}
	return b
}

// mixing is a part of the batch of the choice of a component, whose weights have one more dimension.
func (p part) mixing(d categoricalDist) categoricalDist {
	d.base = p.base(d.base)
	p.back++
	d.probs, d.logits = p.of(d.probs), p.of(d.logits)
	return d
}

// partOf is a part of a distribution's batch; d where the batch does not have that dimension; nil where d cannot be
// divided.
func partOf(d Distribution, p part) Distribution {
	batch := d.BatchShape()
	if at := len(batch) - p.back; p.back == 0 || at < 0 || batch[at] == 1 {
		return d
	}
	switch d := d.(type) {
	case normalDist, logNormalDist, halfNormalDist, cauchyDist, halfCauchyDist, laplaceDist, logisticDist,
		exponentialDist, gammaDist, inverseGammaDist, chi2Dist, weibullDist, paretoDist, gumbelDist, studentTDist,
		inverseGaussianDist, truncatedNormalDist, uniformDist:
		return d.(interface{ divide(p part) Distribution }).divide(p)
	case interface{ part(p part) Distribution }:
		return d.part(p)
	}
	return nil
}

// divide is a part of a distribution of single numbers that is its parameters and nothing else.
func (b base) divide(p part) Distribution {
	values := make([]torch.Tensor, len(b.values))
	for i, v := range b.values {
		values[i] = p.of(v)
	}
	return p.base(b).with(values...)
}

func (d truncatedDist) part(p part) Distribution {
	of := partOf(d.of, p)
	if of == nil {
		return nil
	}
	return truncatedDist{p.base(d.base), of, p.of(d.low), p.of(d.high)}
}

func (d mixtureDist) part(p part) Distribution {
	out := mixtureDist{p.base(d.base), p.mixing(d.mixing), nil, d.support}
	for _, c := range d.components {
		of := partOf(c, p)
		if of == nil {
			return nil
		}
		out.components = append(out.components, of)
	}
	out.support.Low, out.support.High = p.of(d.support.Low), p.of(d.support.High)
	return out
}

func (d mixtureSameFamilyDist) part(p part) Distribution {
	out := mixtureSameFamilyDist{p.base(d.base), p.mixing(d.mixing), nil, d.support}
	out.support.Low, out.support.High = p.of(d.support.Low), p.of(d.support.High)
	p.back++
	if out.components = partOf(d.components, p); out.components == nil {
		return nil
	}
	return out
}
