package infer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
)

// undefinedKind is the kind of the note about points of a finite density whose gradient is NaN.
const undefinedKind = "undefined_gradient"

const undefinedAdvice = "No step size and no start mends that: the chain rule meets 0 times infinity, as in a square " +
	"root, a power or a norm at 0, or beside an exponential that overflows. Give such points a branch of their own by " +
	"torch.Where, whose gradient is that of the branch taken, or take a function that is exact there (Sigmoid, " +
	"LogSumExp, Softplus)."

// undefinedShare is the share of a run's gradients above which those that are undefined make its figures wrong.
const undefinedShare = 1e-3

// undefined counts the points of a run at which the density is finite and its gradient NaN.
type undefined struct {
	mu    sync.Mutex
	count int
	first []float64
}

// see counts a point, or n times the same.
func (u *undefined) see(x []float64, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count += n; u.first == nil {
		u.first = slices.Clone(x)
	}
}

// among counts the rows of an evaluation.
func (u *undefined) among(e Evaluation, p Params) {
	for k := range min(len(e.Values), len(e.Norms)) {
		if v := e.Values[k]; !math.IsNaN(e.Norms[k]) || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if x, err := torch.ToSlice[float64](p.Flat); err == nil {
			d := len(x) / len(e.Values)
			u.see(x[k*d:(k+1)*d], 1)
		}
	}
}

// blamer is a program that names those of its sites whose densities are finite at a point and have a gradient of NaN.
type blamer interface {
	Undefined(point Params, b Batch) []string
}

// undefined says how many points had a finite density and a gradient of NaN, and where that comes from; n is 0 where
// none had.
func (s *session) undefined() (n int, text string) {
	u := &s.compilation.undefined
	u.mu.Lock()
	n, x := u.count, u.first
	u.mu.Unlock()
	if n == 0 || len(x) < s.layout.Dim() {
		return 0, ""
	}
	text = fmt.Sprintf("%d of %d gradients were NaN where the density is finite", n, max(n, s.gradients))
	at, err := NewParams(s.layout, x[:s.layout.Dim()])
	if err != nil {
		return n, text + "."
	}
	defer torch.Free(at.Flat)
	var sites []string
	if p, ok := s.program.(blamer); ok {
		s.tally.Aside(func() { sites = p.Undefined(at, s.all) })
	}
	if len(sites) > 0 {
		text += ": the density of " + quoted(sites) + " has no gradient"
	}
	return n, text + fmt.Sprintf(", on unconstrained space at %s.", s.point(x))
}

// quoted are at most four names.
func quoted(names []string) string {
	var words []string
	for _, n := range names[:min(len(names), 4)] {
		words = append(words, fmt.Sprintf("%q", n))
	}
	if len(names) > 4 {
		words = append(words, "...")
	}
	return strings.Join(words, ", ")
}

// point writes a point, at most four of its elements.
func (s *session) point(x []float64) string {
	var words []string
	for i := range min(s.layout.Dim(), 4) {
		words = append(words, fmt.Sprintf("%s = %.4g", s.layout.At(i), x[i]))
	}
	if s.layout.Dim() > 4 {
		words = append(words, "...")
	}
	return strings.Join(words, ", ")
}

// undefinedNote is the note about such points, nil where there is nothing to say. A sampler that drives itself may meet
// a few in the steps that are too long at the start of its warm-up: they count where draws diverged too.
func (s *session) undefinedNote(d *draws.Draws) []draws.Note {
	n, text := s.undefined()
	share := float64(n) / float64(max(n, s.gradients))
	if _, driver := s.transform.(Driver); driver && share < undefinedShare {
		_, tells := d.StatName(draws.StatDivergent)
		if tells && !happened(d, draws.StatDivergent) || !tells && share < undefinedShare/10 {
			return nil
		}
	}
	if n == 0 {
		return nil
	}
	serious := share > undefinedShare
	return []draws.Note{{Kind: undefinedKind, Serious: serious, Text: text, Advice: undefinedAdvice}}
}

// because adds to the error of a chain that cannot move that its density is finite and its gradient NaN.
func (s *session) because(err error) error {
	if n, text := s.undefined(); n > 0 {
		return fmt.Errorf("%w. %s %s", err, text, undefinedAdvice)
	}
	return err
}
