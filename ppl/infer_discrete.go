package ppl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// InferDiscrete finds the discrete variables of a program that [Compile] has summed out, given draws of the others: for
// each draw their exact conditional posterior. Its methods take draws of the posterior and return draws of the same
// chains, with a site for each discrete variable, of the shape of its plates. A step of a Markov is a site: "z[3]".
//
// The tables are those of the sums. Draws are evaluated many at a time, at the cost of an eager gradient of as many
// chains.
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
	given  []torch.Tensor                               // the zeros, in the order of vars; nil makes them
	vars   []*variable
	zeros  []torch.Tensor
	totals []torch.Tensor
}

// leaf is a zero for each value of a variable and each repetition in its plates, to be added to its own table.
func (r *reveal) leaf(e *enumeration, v *variable, own *table) torch.Tensor {
	shape := make([]int, 1+e.right)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = v.size
	for _, p := range v.plates {
		shape[len(shape)+p.Dim] = p.Size
		p.Used = p.Size
		e.used[p.key()] = p
	}
	var zero torch.Tensor
	if i := len(r.zeros); i < len(r.given) {
		zero = r.given[i]
	} else {
		zero = torch.Must(torch.Leaf(zeros(shape)))
	}
	r.vars, r.zeros = append(r.vars, v), append(r.zeros, zero)
	t, _ := e.align(&table{t: zero, shape: shape, vars: []*variable{v}}, own.vars)
	return t
}

func (r *reveal) choose(t torch.Tensor) torch.Tensor { return r.take(r, t) }

func (r *reveal) sum(t torch.Tensor) torch.Tensor { return t.LogSumExp(0) }

func (r *reveal) largest(t torch.Tensor) torch.Tensor {
	return torch.Of(t.T().MustGather(0, argmax(t).T(), false, false)).Squeeze(0)
}

// sample has the value of the sum and the derivative of a term that is drawn in proportion to it: the largest of the
// logarithms with Gumbel noise.
func (r *reveal) sample(t torch.Tensor) torch.Tensor {
	u := torch.Must(r.source.Uniform(t.Shape(), gotch.Double, torch.CPU))
	term := torch.Of(t.T().MustGather(0, argmax(t.Sub(u.Log().Neg().Log())).T(), false, false)).Squeeze(0)
	return term.Sub(term.T().MustDetach(false)).Add(t.LogSumExp(0).T().MustDetach(false))
}

func argmax(t torch.Tensor) torch.Tensor {
	return torch.Of(t.T().MustDetach(false).MustArgmax([]int64{0}, true, false))
}

// chosen is the value of each element, from vectors with a 1 at its place.
func chosen(one []float64, r wholeRange) []float64 {
	k := r.size
	out := make([]float64, len(one)/k)
	for i := range out {
		for j, x := range one[i*k : (i+1)*k] {
			out[i] += x * float64(r.low+j)
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
	if _, err := predictive.checkDraws(posterior, names, in); err != nil {
		return fail(err)
	}
	var chains []int // of each draw
	for chain := range posterior.Chains() {
		for range posterior.Len(chain) {
			chains = append(chains, chain)
		}
	}
	first := &reveal{take: take}
	var sites []draws.Site
	var out *draws.Draws
	for from, size := 0, 1; from < len(chains); from, size = from+size, first.block(p) {
		size = min(size, len(chains)-from)
		err := torch.Do(func(scope *torch.Scope) error {
			var derivatives []torch.Tensor
			var err error
			if from == 0 { // alone: it tells the variables and their shapes
				first.source = torch.NewSource(q.Seed, 0)
				derivatives, err = first.one(p, names, in)
				scope.Keep(first.zeros...)
			} else {
				derivatives, err = first.several(p, names, in, q.Seed, from, size)
			}
			if err != nil {
				return err
			}
			rows := make([][]float64, size)
			if sites, err = first.rows(p, derivatives, row, rows); err != nil {
				return err
			}
			if out == nil {
				if out, err = draws.New(sites, nil, posterior.Chains()); err != nil {
					return err
				}
			}
			for i, x := range rows {
				if err := out.AppendChain(chains[from+i], x, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fail(fmt.Errorf("draws %d to %d: %w", from, from+size-1, err))
		}
	}
	return out, nil
}

// total runs the model at given values, and adds up its sums.
func (r *reveal) total(p *Program, given Values) (torch.Tensor, error) {
	run(p.model, &execution{batch: p.batch, reveal: r}, []Handler{fill(given, nil)})
	if len(r.totals) == 0 {
		return torch.Tensor{}, errors.New("the model has no discrete variable in this run")
	}
	total := torch.Of(0)
	for _, t := range r.totals {
		total = total.Add(t)
	}
	return torch.Of(total.T()), nil
}

// one is the derivatives at the first draw, with a leading dimension of 1.
func (r *reveal) one(p *Program, names []string, in []torch.Tensor) ([]torch.Tensor, error) {
	given := Values{}
	for i, name := range names {
		given[name] = in[i].At(0)
	}
	total, err := r.total(p, given)
	if err != nil {
		return nil, err
	}
	derivatives, err := torch.Grad([]torch.Tensor{total}, r.zeros, nil)
	for i, d := range derivatives {
		derivatives[i] = d.Unsqueeze(0)
	}
	return derivatives, err
}

// several is the derivatives at more draws: the model is mapped over them, and each draw has zeros of its own.
func (r *reveal) several(p *Program, names []string, in []torch.Tensor, seed uint64, from, size int) (
	[]torch.Tensor, error) {
	streams := torch.Streams{Seed: seed, Chains: make([]uint64, size)}
	for i := range streams.Chains {
		streams.Chains[i] = uint64(from + i)
	}
	var inputs, leaves []torch.Tensor
	for _, x := range in {
		inputs = append(inputs, torch.Of(x.T().MustNarrow(0, int64(from), int64(size), false)))
	}
	for _, z := range r.zeros {
		leaves = append(leaves, torch.Must(torch.Leaf(zeros(append([]int{size}, shapeOf(z)...)))))
	}
	totals, err := torch.VmapSources(func(x []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
		each := &reveal{source: source, take: r.take, given: x[len(names):]}
		given := Values{}
		for i, name := range names {
			given[name] = x[i]
		}
		total, err := each.total(p, given)
		if err == nil && len(each.vars) != len(r.vars) {
			err = fmt.Errorf("the model has %d discrete variables, and %d at the first draw", len(each.vars), len(r.vars))
		}
		return []torch.Tensor{total}, err
	}, append(inputs, leaves...), &streams, nil)
	if err != nil {
		return nil, err
	}
	return torch.Grad([]torch.Tensor{sumAll(totals[0])}, leaves, nil)
}

// revealed is about how many numbers the tables of the draws that are evaluated at once have.
const revealed = 1 << 20

// block is how many draws are evaluated at once.
func (r *reveal) block(p *Program) int {
	numbers := p.sums.plan.Load().peak
	for _, z := range r.zeros {
		numbers += float64(count(shapeOf(z)))
	}
	return int(max(1, min(constrainRows, revealed/numbers)))
}

// rows turns derivatives, of shape [draws] + that of the zeros, into a row for each draw.
func (r *reveal) rows(p *Program, derivatives []torch.Tensor, row func([]float64, wholeRange) []float64,
	out [][]float64) ([]draws.Site, error) {
	var sites []draws.Site
	for i, v := range r.vars {
		values, err := torch.ToSlice[float64](torch.Of(derivatives[i].T().MustMovedimInt(1, -1, false).MustContiguous(false)))
		if err != nil {
			return nil, err
		}
		width, offset, size := len(values)/len(out), len(out[0]), 0
		for k := range out {
			numbers := row(values[k*width:(k+1)*width], p.sums.plan.Load().classes[v.class])
			out[k], size = append(out[k], numbers...), len(numbers)
		}
		outermost := 0
		for _, q := range v.plates {
			outermost = min(outermost, q.Dim)
		}
		shape := shapeOf(r.zeros[i])
		shape = slices.Clone(shape[len(shape)+outermost:])
		if size == width {
			shape = append(shape, v.size)
		}
		sites = append(sites, draws.Site{Name: v.name, Shape: shape, Offset: offset, Size: size})
	}
	return sites, nil
}
