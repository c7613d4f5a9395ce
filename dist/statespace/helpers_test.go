package statespace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/torch"
)

func tensor(x []float64, shape ...int) torch.Tensor {
	return torch.New(x, shape...)
}

// do runs a function inside a scope.
func do(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error { f(); return nil }))
}

// joint is the normal distribution of all states and all observations of a system, one long vector, made without a
// filter: every state is a linear map of independent numbers.
type joint struct {
	m, p, steps int
	mean        *mat.VecDense // states of all times, then observations
	cov         *mat.SymDense
}

func step(x torch.Tensor, t int) torch.Tensor {
	if len(x.Shape()) == 3 {
		return x.At(t)
	}
	return x
}

func dense(x torch.Tensor) *mat.Dense {
	shape := x.Shape()
	return mat.NewDense(shape[0], shape[1], x.Values())
}

// jointOf is the joint distribution of a system whose matrices are all there, with noise h, [T][p].
func jointOf(s statespace.System, h [][]float64) joint {
	j := joint{steps: len(h), p: len(h[0]), m: s.Spread.Shape()[0]}
	if len(s.Design.Shape()) == 1 {
		s.Design = s.Design.Unsqueeze(0)
	}
	r := step(s.Noise, 0).Shape()[1]
	k := s.Spread.Shape()[1]
	sources := k + (j.steps-1)*r + j.steps*j.p
	total := j.steps * (j.m + j.p)
	loads := mat.NewDense(total, sources, nil)
	j.mean = mat.NewVecDense(total, nil)
	x := mat.NewDense(j.m, sources, nil)
	x.Slice(0, j.m, 0, k).(*mat.Dense).Copy(dense(s.Spread))
	mean := mat.NewVecDense(j.m, nil)
	if s.Mean != nil {
		copy(mean.RawVector().Data, torch.Of(s.Mean).Expand(j.m).Values())
	}
	for t := range j.steps {
		loads.Slice(t*j.m, (t+1)*j.m, 0, sources).(*mat.Dense).Copy(x)
		at := j.steps*j.m + t*j.p
		out := loads.Slice(at, at+j.p, 0, sources).(*mat.Dense)
		design := dense(step(s.Design, t))
		out.Mul(design, x)
		var signal mat.VecDense
		signal.MulVec(design, mean)
		for i := range j.m {
			j.mean.SetVec(t*j.m+i, mean.AtVec(i))
		}
		for i := range j.p {
			j.mean.SetVec(at+i, signal.AtVec(i))
			out.Set(i, k+(j.steps-1)*r+t*j.p+i, h[t][i])
		}
		if t < j.steps-1 {
			a := dense(step(s.Transition, t))
			var next mat.Dense
			next.Mul(a, x)
			g := dense(step(s.Noise, t))
			for i := range j.m {
				for c := range r {
					next.Set(i, k+t*r+c, next.At(i, k+t*r+c)+g.At(i, c))
				}
			}
			x = &next
			var m2 mat.VecDense
			m2.MulVec(a, mean)
			mean = &m2
		}
	}
	j.cov = mat.NewSymDense(total, nil)
	j.cov.SymOuterK(1, loads)
	return j
}

// split are the places of the observations that are there, and y at them.
func (j joint) split(y []float64) (places []int, seen []float64) {
	for i, v := range y {
		if !math.IsNaN(v) {
			places, seen = append(places, j.steps*j.m+i), append(seen, v)
		}
	}
	return places, seen
}

func (j joint) block(rows, columns []int) *mat.Dense {
	out := mat.NewDense(len(rows), len(columns), nil)
	for a, r := range rows {
		for b, c := range columns {
			out.Set(a, b, j.cov.At(r, c))
		}
	}
	return out
}

// logp is the log density of a dense multivariate normal distribution at the numbers that are there.
func (j joint) logp(y []float64) float64 {
	places, seen := j.split(y)
	n := len(places)
	if n == 0 {
		return 0
	}
	cov := mat.NewSymDense(n, nil)
	off := mat.NewVecDense(n, nil)
	for a, r := range places {
		off.SetVec(a, seen[a]-j.mean.AtVec(r))
		for b, c := range places {
			cov.SetSym(a, b, j.cov.At(r, c))
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(cov) {
		panic("not positive definite")
	}
	var solved mat.VecDense
	if err := factor.SolveVecTo(&solved, off); err != nil {
		panic(err)
	}
	return -(mat.Dot(&solved, off) + factor.LogDet() + float64(n)*math.Log(2*math.Pi)) / 2
}

// given is the mean and the covariance of some of the vector given the numbers that are there.
func (j joint) given(y []float64, of []int) (mean []float64, cov *mat.Dense) {
	places, seen := j.split(y)
	cov = j.block(of, of)
	mean = make([]float64, len(of))
	for i, at := range of {
		mean[i] = j.mean.AtVec(at)
	}
	if len(places) == 0 {
		return mean, cov
	}
	off := mat.NewVecDense(len(places), nil)
	for a, r := range places {
		off.SetVec(a, seen[a]-j.mean.AtVec(r))
	}
	across := j.block(of, places)
	var gain, less mat.Dense
	if err := gain.Solve(j.block(places, places), across.T()); err != nil {
		panic(err)
	}
	var move mat.VecDense
	move.MulVec(gain.T(), off)
	for i := range mean {
		mean[i] += move.AtVec(i)
	}
	less.Mul(across, &gain)
	cov.Sub(cov, &less)
	return mean, cov
}

func span(from, to int) []int {
	out := []int{}
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}
