package ppl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// InferDiscrete finds the discrete variables of a program that [Compile] has summed out, given draws of the others: for
// each draw their exact conditional posterior. Its methods take draws of the posterior and return draws of the same
// chains, with a site for each discrete variable, of the shape of its plates. A step of a Markov is a site: "z[3]".
//
// The tables are those of the sums, so the cost of a draw is about that of one eager gradient.
type InferDiscrete struct {
	Program *Program // with discrete variables that Compile has summed out
	Seed    uint64   // of Sample: chain after chain, draw i uses the random stream (Seed, i)
}

// Marginals are the probabilities of the values of each variable, P(z = low + k | x, y): sites of shape plates + [K].
// They are the derivatives of the logarithm of the sum in the logarithms of the variables' own probabilities.
func (q InferDiscrete) Marginals(posterior *draws.Draws) (*draws.Draws, error) {
	return q.all(posterior, "Marginals", (*reveal).sum, func(one []float64, _ wholeRange) []float64 { return one })
}

// Sample draws all variables jointly from P(z | x, y), by sums forward and draws backward.
func (q InferDiscrete) Sample(posterior *draws.Draws) (*draws.Draws, error) {
	return q.all(posterior, "Sample", (*reveal).sample, chosen)
}

// Mode is a most probable joint value of all variables, argmax P(z | x, y): for a chain Viterbi's path.
func (q InferDiscrete) Mode(posterior *draws.Draws) (*draws.Draws, error) {
	return q.all(posterior, "Mode", (*reveal).largest, chosen)
}

// reveal is a run that finds discrete variables. Each variable's own table gets a zero added to it, in which the total
// has the derivative that Marginals returns; where sums are replaced by one of their terms, the derivative is 1 at the
// term that was taken and 0 elsewhere.
type reveal struct {
	source *torch.Source
	take   func(r *reveal, t torch.Tensor) torch.Tensor // the sum over the first dimension, or what is in its place
	vars   []*variable
	zeros  []*ts.Tensor
	totals []torch.Tensor
}

// leaf is a zero for each value of a variable and each repetition in its plates, to be added to its own table.
func (r *reveal) leaf(e *enumeration, v *variable, own *table) torch.Tensor {
	shape := make([]int64, 1+e.right)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = v.size
	for _, p := range v.plates {
		shape[len(shape)+p.Dim] = p.Size
		p.Used = p.Size
		e.used[p.key()] = p
	}
	zero := torch.Must(torch.Leaf(zeros(shape)))
	r.vars, r.zeros = append(r.vars, v), append(r.zeros, zero)
	return e.align(&table{t: torch.Of(zero), vars: []*variable{v}}, own.vars)
}

func (r *reveal) choose(t torch.Tensor) torch.Tensor { return r.take(r, t) }

func (r *reveal) sum(t torch.Tensor) torch.Tensor { return t.LogSumExp(0) }

func (r *reveal) largest(t torch.Tensor) torch.Tensor {
	return torch.Of(t.T().MustGather(0, argmax(t), false, false)).Squeeze(0)
}

// sample has the value of the sum and the derivative of a term that is drawn in proportion to it: the largest of the
// logarithms with Gumbel noise.
func (r *reveal) sample(t torch.Tensor) torch.Tensor {
	u := torch.Of(torch.Must(r.source.Uniform(t.Shape(), gotch.Double, torch.CPU)))
	term := torch.Of(t.T().MustGather(0, argmax(t.Sub(u.Log().Neg().Log())), false, false)).Squeeze(0)
	return term.Sub(term.T().MustDetach(false)).Add(t.LogSumExp(0).T().MustDetach(false))
}

func argmax(t torch.Tensor) *ts.Tensor {
	return t.T().MustDetach(false).MustArgmax([]int64{0}, true, false)
}

// chosen is the value of each element, from vectors with a 1 at its place.
func chosen(one []float64, r wholeRange) []float64 {
	k := int(r.size)
	out := make([]float64, len(one)/k)
	for i := range out {
		for j, x := range one[i*k : (i+1)*k] {
			out[i] += x * float64(r.low+int64(j))
		}
	}
	return out
}

// all makes a row for each draw. row turns the derivatives, the values of a variable last, into what is returned.
func (q InferDiscrete) all(posterior *draws.Draws, method string, take func(*reveal, torch.Tensor) torch.Tensor,
	row func(derivative []float64, r wholeRange) []float64) (*draws.Draws, error) {
	fail := func(err error) (*draws.Draws, error) {
		return nil, fmt.Errorf("ppl.InferDiscrete.%s: %w", method, err)
	}
	p := q.Program
	if p == nil || p.model == nil {
		return fail(fmt.Errorf("the program is nil; use that of ppl.Compile: %w", infer.ErrConfig))
	}
	if p.sums == nil {
		return fail(fmt.Errorf("the program has no discrete variable that was summed out: %w", infer.ErrConfig))
	}
	predictive := Predictive{Model: p.model, Batch: p.batch}
	names, in, _, err := predictive.latents(posterior)
	if err != nil {
		return fail(err)
	}
	defer torch.Free(in...)
	predictive.Model = withShapes(p.model, posterior)
	if err := predictive.checkDraws(names, in); err != nil {
		return fail(err)
	}
	var out *draws.Draws
	i := 0
	for chain := range posterior.Chains() {
		for range posterior.Len(chain) {
			err := torch.Do(func(*torch.Scope) error {
				r := &reveal{source: torch.NewSource(q.Seed, uint64(i)), take: take}
				sites, x, err := r.run(p, names, in, i, row)
				if err == nil && out == nil {
					out, err = draws.New(sites, nil, posterior.Chains())
				}
				if err != nil {
					return err
				}
				return out.AppendChain(chain, x, nil)
			})
			if err != nil {
				return fail(fmt.Errorf("draw %d: %w", i, err))
			}
			i++
		}
	}
	return out, nil
}

// run evaluates the model at one draw.
func (r *reveal) run(p *Program, names []string, in []*ts.Tensor, draw int,
	row func([]float64, wholeRange) []float64) (sites []draws.Site, x []float64, err error) {
	given := Values{}
	for i, name := range names {
		given[name] = in[i].MustSelect(0, int64(draw), false)
	}
	run(p.model, &execution{batch: p.batch, reveal: r}, []Handler{fill(given)})
	if len(r.totals) == 0 {
		return nil, nil, errors.New("the model has no discrete variable in this run")
	}
	total := torch.Of(0)
	for _, t := range r.totals {
		total = total.Add(t)
	}
	derivatives, err := torch.Grad([]*ts.Tensor{total.T()}, r.zeros, nil)
	if err != nil {
		return nil, nil, err
	}
	for i, v := range r.vars {
		values, err := torch.ToSlice[float64](derivatives[i].MustMovedimInt(0, -1, false).MustContiguous(false))
		if err != nil {
			return nil, nil, err
		}
		numbers := row(values, p.sums.plan.Load().classes[v.class])
		outermost := 0
		for _, q := range v.plates {
			outermost = min(outermost, q.Dim)
		}
		shape := shapeOf(r.zeros[i])
		shape = slices.Clone(shape[len(shape)+outermost:])
		if len(numbers) == len(values) {
			shape = append(shape, v.size)
		}
		sites = append(sites, draws.Site{Name: v.name, Shape: shape, Offset: len(x), Size: len(numbers)})
		x = append(x, numbers...)
	}
	return sites, x, nil
}
