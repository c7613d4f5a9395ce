package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

const noise = 0.20 // standard deviation of a point about its moon

// points are labelled points of the plane.
type points struct {
	x     [][2]float64
	label []int
	at    torch.Tensor // the points as a tensor of shape [n, 2]
}

// moons are n points on two half circles of radius 1 that reach into each other, with noise: those of label 0 on (cos
// t, sin t), those of label 1 on (1 − cos t, ½ − sin t), with t evenly spaced from 0 to π. The numbers come from a
// stream of their own.
func moons(n int, seed uint64) (points, error) {
	p := points{x: make([][2]float64, n), label: make([]int, n)}
	var eps []float64
	if err := torch.Do(func(*torch.Scope) error {
		normal, err := torch.NewSource(seed, math.MaxUint64).Normal([]int{2 * n}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		eps, err = torch.ToSlice[float64](normal)
		return err
	}); err != nil {
		return p, err
	}
	first := (n + 1) / 2
	for i := range p.x {
		if i < first {
			t := math.Pi * float64(i) / float64(max(first-1, 1))
			p.x[i] = [2]float64{math.Cos(t), math.Sin(t)}
		} else {
			t := math.Pi * float64(i-first) / float64(max(n-first-1, 1))
			p.x[i], p.label[i] = [2]float64{1 - math.Cos(t), 0.5 - math.Sin(t)}, 1
		}
		p.x[i][0] += noise * eps[2*i]
		p.x[i][1] += noise * eps[2*i+1]
	}
	return p, p.tensor()
}

// The part of the plane that the maps show: the data, and as much again around them.
const left, right, bottom, top = -3.0, 4.0, -3.0, 3.5

// grid is side × side points of the plane in rows from the top, the pixels of a map.
func grid(side int) (points, error) {
	var p points
	for r := range side {
		for c := range side {
			p.x = append(p.x, [2]float64{left + (right-left)*(float64(c)+0.5)/float64(side),
				top - (top-bottom)*(float64(r)+0.5)/float64(side)})
		}
	}
	return p, p.tensor()
}

func (p *points) tensor() (err error) {
	flat := make([]float64, 0, 2*len(p.x))
	for _, x := range p.x {
		flat = append(flat, x[0], x[1])
	}
	p.at, err = torch.FromSlice(flat, len(p.x), 2)
	return err
}

// batch are the points as data of the model: x, and the labels as 0 and 1.
func (p points) batch() (infer.Batch, error) {
	y := make([]float64, len(p.label))
	for i, l := range p.label {
		y[i] = float64(l)
	}
	labels, err := torch.FromSlice(y)
	return infer.Batch{"x": p.at, "y": labels}, err
}

// isOne are the labels as package diag takes them.
func (p points) isOne() []bool {
	out := make([]bool, len(p.label))
	for i, l := range p.label {
		out[i] = l == 1
	}
	return out
}

// farFrom says for each point whether it is further than a distance from all points of another set.
func (p points) farFrom(others points, distance float64) []bool {
	out := make([]bool, len(p.x))
	for i, x := range p.x {
		out[i] = true
		for _, o := range others.x {
			if math.Hypot(x[0]-o[0], x[1]-o[1]) <= distance {
				out[i] = false
				break
			}
		}
	}
	return out
}
