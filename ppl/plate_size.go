package ppl

import (
	"errors"
	"fmt"
	"maps"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Minibatch declares that the batch of [Compile] is a part of a plate's data. The plate's size is then the size of the
// population. Without Minibatch, Compile refuses a batch that is not all of the data, since a wrong size gives a wrong
// posterior. A program that was compiled on all of the data takes minibatches without it.
var Minibatch PlateOption = func(p *plate) { p.minibatch = true }

// plateSizes are the sizes of the plates of size 0, in one run of a model.
type plateSizes struct {
	model  Model            // the whole model, with its handlers
	fixed  map[string]int   // what Compile found; shared, never written
	told   map[string]int   // what the data of this run say
	guess  bool             // this run looks for sizes: in plates of unknown size latent variables have one repetition
	shapes map[string][]int // of the posterior draws, in a prediction
}

// of is the size of a plate, 0 while it is not known.
func (z *plateSizes) of(name string) int {
	if n, ok := z.fixed[name]; ok {
		return n
	}
	return z.told[name]
}

// withSizes is a model whose plates have the sizes that were found when it was compiled.
func withSizes(m Model, fixed map[string]int) Model {
	if len(fixed) == 0 {
		return m
	}
	return knowing(m, func(z *plateSizes) { z.fixed = fixed })
}

// knowing is a model whose runs start with some knowledge of plate sizes.
func knowing(m Model, what func(*plateSizes)) Model {
	return func(c *Ctx) {
		inner, run := *c, *c.run
		sizes := *run.sizes
		what(&sizes)
		inner.run, run.sizes = &run, &sizes
		m.in(&inner)
	}
}

// resolve finds the size of a plate whose data come after the site that needs it. It runs the whole model, with one
// repetition of the latent variables in the place of all, at the points that Compile tries: a scale may be 0 at one of
// them by accident, or by a mistake that Compile explains.
func (z *plateSizes) resolve(s *Site, p *plate) int {
	if n := z.of(p.Name); n > 0 {
		return n
	}
	var first error
	n := 0
	for attempt := 0; attempt < compileAttempts && n == 0; attempt++ {
		e := &execution{batch: s.ctx.run.batch, predict: s.ctx.run.predict, absent: maps.Clone(s.ctx.run.absent)}
		e.sizes = &plateSizes{fixed: z.fixed, told: map[string]int{}, guess: true, shapes: z.shapes}
		err := torch.Do(func(*torch.Scope) error {
			defer thread.Evaluate()() // a placeholder of a discrete variable is its mean, which is no index
			run(z.model, e, []Handler{placeholders(attempt)})
			return nil
		})
		maps.Copy(z.told, e.sizes.told)
		n = z.of(p.Name)
		if err == nil {
			first = nil
			break
		}
		if first == nil {
			first = err
		}
	}
	switch {
	case n > 0:
	case first != nil:
		unknown := fmt.Sprintf("this is found while the size of plate %q is not known; if that is why, and the model does "+
			"not run before it is known, give the plate its size", p.Name)
		var site *SiteError
		if errors.As(first, &site) && site.Site == s.Name {
			panic(&SiteError{Site: site.Site, Plates: site.Plates, Distribution: site.Distribution,
				Message: fmt.Sprintf("%s (%s)", site.Message, unknown), Cause: first})
		}
		s.fail("%v (%s)", first, unknown)
	default:
		s.fail("the size of plate %q cannot be inferred: no data, and no parameters of an observed variable, "+
			"have a dimension of their own for it; give the plate its size", p.Name)
	}
	return n
}

// placeholders is the handler that gives latent variables some value of the right shape, at the point of an attempt of
// Compile.
func placeholders(attempt int) process {
	c := &compiler{program: &Program{latents: map[string]*latent{}}, recorder: newRecorder(), attempt: attempt}
	return func(s *Site) {
		switch {
		case s.Value != (torch.Tensor{}) || s.Kind != KindSample && s.Kind != KindParam:
		case s.Kind == KindSample && s.Dist.Support().Discrete():
			s.Value = torch.Of(s.Dist.Mean().T())
		default:
			c.Process(s)
		}
	}
}

// size is the size of an open plate of size 0. The site has n values along the plate; told says that they are all. The
// result is 0 only in a run that looks for sizes.
func (s *Site) size(p *plate, n int, told bool) int {
	z := s.ctx.run.sizes
	if shape, ok := z.shapes[s.Name]; ok && z.guess && !s.Observed {
		event := len(s.Dist.EventShape())
		if at := len(shape) - event + p.Dim; at >= 0 {
			n, told = shape[at], true
		}
	}
	if z.guess && s.Value == (torch.Tensor{}) && n == 1 {
		told = told && !s.Observed
	}
	if n > 1 || told {
		z.told[p.Name] = n
		return n
	}
	if z.guess {
		return 0
	}
	return z.resolve(s, p)
}

// checkWhole makes sure that the batch of Compile has all of the data that the plates declare.
func (s *Site) checkWhole() {
	if !s.Observed {
		return
	}
	for i, p := range s.Plates {
		if p.Used == 0 || p.Used == p.Size || s.ctx.plates[i].minibatch {
			continue
		}
		s.fail("plate %q has size %d, and the batch has %d of it, so that each would count %.4g times. If these are all "+
			"of the data, give the plate size %d, or 0, which takes the size of the data. If they are a minibatch, "+
			"compile on all of the data, or declare the plate with ppl.Minibatch", p.Name, p.Size, p.Used,
			float64(p.Size)/float64(p.Used), p.Used)
	}
}

// checkValues makes sure that an observed site outside plates has as many values as in the batch of Compile. Without a
// plate each value of a minibatch counts once, and the posterior would be that of a few data.
func (s *Site) checkValues(want int) {
	if n := count(s.valueShape()); n != want {
		s.fail("it is in no plate, and has %d values where it had %d when the model was compiled: observe it in "+
			"c.Plate(name, 0, ...), so that a minibatch counts for all data", n, want)
	}
}

// CheckFull returns an error unless a batch has all of the data that the program's plates declare. Observed
// variables outside plates must be those of the batch of [Compile], with as many values, and factors that add up over
// rows of the batch have as many rows. Runs that see one batch in every update need that.
func (p *Program) CheckFull(batch infer.Batch) error {
	err := torch.Do(func(*torch.Scope) error {
		seen := func(s *Site) {
			if !s.Observed || !s.counts() {
				return
			}
			for _, q := range s.Plates {
				if q.Used != 0 && q.Used != q.Size {
					s.fail("%v, and all are needed here: a method without minibatches gets the whole data as one batch",
						&part{q.Name, q.Used, q.Size})
				}
			}
			if want, ok := p.values[s.Name]; ok && s.Value != (torch.Tensor{}) && count(s.valueShape()) != want {
				s.fail("%v: all are needed here", &part{used: count(s.valueShape()), size: want})
			}
			if s.Scale == 1 {
				s.checkTotal(p, batch)
			}
		}
		point, err := infer.Zeros(p.layout)
		if err != nil {
			return err
		}
		e := &evaluator{program: p, point: point, collect: seen}
		execute(p.model, batch, nil, e)
		e.completeData()
		return nil
	})
	if err != nil {
		return fmt.Errorf("ppl.CheckFull: %w", err)
	}
	return nil
}

// part is the cause of an error of CheckFull: a batch that is not all of the data. The plate is empty for a variable
// that is in none.
type part struct {
	plate      string
	used, size int
}

func (p *part) Error() string {
	if p.plate == "" {
		return fmt.Sprintf("the batch has %d values, and the batch of Compile had %d", p.used, p.size)
	}
	return fmt.Sprintf("the batch has %d of the %d of plate %q", p.used, p.size, p.plate)
}

// Part is for package infer, which says so in its own words.
func (p *part) Part() (plate string, used, size int) { return p.plate, p.used, p.size }
