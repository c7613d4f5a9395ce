package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// twin is another point with the same function: the hidden units of each layer are put in another order, and the
// weights that go into a unit are multiplied by a number c > 0, those that come out divided by it, which ReLU(c s) = c
// ReLU(s) undoes.
func twin(layout *infer.Layout, flat []float64, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := append([]float64(nil), flat...)
	site := func(x []float64, name string) []float64 {
		s, _ := layout.Site(name)
		return x[s.Offset : s.Offset+s.Size]
	}
	for l := range len(layers) - 1 {
		units, in, next := sizes[l+1], sizes[l], sizes[l+2]
		before := append([]float64(nil), out...)
		for to, from := range rng.Perm(units) {
			c := math.Exp(2 * rng.NormFloat64())
			for i := range in {
				site(out, layers[l].Weight)[to*in+i] = c * site(before, layers[l].Weight)[from*in+i]
			}
			site(out, layers[l].Bias)[to] = c * site(before, layers[l].Bias)[from]
			for o := range next {
				site(out, layers[l+1].Weight)[o*units+to] = site(before, layers[l+1].Weight)[o*units+from] / c
			}
		}
	}
	return out
}

// losses are the mean negative log likelihoods of the training data at points of shape [S, d].
func (t *task) losses(p infer.Params) (out []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		z, err := t.model.net.Predict(p, t.train.at, nil)
		if err != nil {
			return err
		}
		out = outer(z.Squeeze(-1), t.data).Mean(1).Neg().Values()
		return nil
	})
	return out, err
}

const stations = 21 // from one member to another, with both ends

// barrier is how much higher the loss gets on the straight line between two members than at the worse end.
func (t *task) barrier(a, b int) (float64, error) {
	var loss []float64
	err := torch.Do(func(*torch.Scope) error {
		from, to := t.members.Flat.T().MustSelect(0, int64(a), false), t.members.Flat.T().MustSelect(0, int64(b), false)
		var line []torch.Tensor
		for i := range stations {
			s := float64(i) / (stations - 1)
			at, err := torch.Combine(torch.Term{Coeff: 1 - s, Tensor: torch.Of(from)},
				torch.Term{Coeff: s, Tensor: torch.Of(to)})
			if err != nil {
				return err
			}
			line = append(line, at)
		}
		var err error
		loss, err = t.losses(infer.Params{Layout: t.members.Layout, Flat: torch.Stack(0, line)})
		return err
	})
	if err != nil {
		return 0, err
	}
	highest := loss[0]
	for _, l := range loss {
		highest = max(highest, l)
	}
	return highest - max(loss[0], loss[stations-1]), nil
}

const claimTwins = "Reordering hidden units and rescaling them leaves the function as it is"

// landscape: there is a barrier between members of the ensemble, and a member has twins.
func (t *task) landscape(map[string]outcome) ([]claim, error) {
	var heights []float64
	higher := 0
	for a := range t.settings.members {
		for b := range a {
			h, err := t.barrier(a, b)
			if err != nil {
				return nil, err
			}
			heights = append(heights, h)
			if h > 0 {
				higher++
			}
		}
	}
	sort.Float64s(heights)
	difference, moved, err := t.twinDifference(20)
	if err != nil {
		return nil, err
	}
	return []claim{
		{"On a straight line between two members of the ensemble the loss is higher than at its ends",
			fmt.Sprintf("for %d of %d pairs; the barrier is %.3f to %.3f nats, in the middle %.3f",
				higher, len(heights), heights[0], heights[len(heights)-1], heights[len(heights)/2]),
			heights[0]},
		{claimTwins, fmt.Sprintf(
			"20 twins of the MAP, at least %.1f away from it: logits differ by at most %.1e of the largest", moved, difference),
			1e-10 - difference},
	}, nil
}

// twinDifference compares the MAP with twins: the greatest difference of the logits of the grid, over the largest
// logit, and the least distance of a twin.
func (t *task) twinDifference(twins int) (difference, distance float64, err error) {
	flat, err := t.mode.Values()
	if err != nil {
		return 0, 0, err
	}
	distance = math.Inf(1)
	all := append([]float64(nil), flat...)
	for s := range twins {
		other := twin(t.mode.Layout, flat, t.seed+uint64(s))
		all = append(all, other...)
		square := 0.0
		for i := range flat {
			square += (flat[i] - other[i]) * (flat[i] - other[i])
		}
		distance = min(distance, math.Sqrt(square))
	}
	p, err := infer.NewParams(t.mode.Layout, all)
	if err != nil {
		return 0, 0, err
	}
	z, err := t.network(p)(t.grid.at)
	if err != nil {
		return 0, 0, err
	}
	largest := 0.0
	for i, v := range z.logits[0] {
		largest = max(largest, math.Abs(v))
		for _, other := range z.logits[1:] {
			difference = max(difference, math.Abs(other[i]-v))
		}
	}
	return difference / largest, distance, nil
}
