package infer

import (
	"fmt"
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// endlessKind is the kind of the note about a density without an end.
const endlessKind = "endless"

const endlessAdvice = "It has no mode there, and may be no distribution: more updates or draws and smaller steps do " +
	"not help. Look for a scale of data that do not vary, a covariate that is constant, that is a combination of others " +
	"or that separates the outcomes, and parameters of which only the sum counts. Leave one out, or give proper priors, " +
	"such as dist.Normal to coefficients and dist.LogNormal to scales. A hierarchy is to be non-centred (ppl.Reparam)."

// What a look for the end of a density costs at most, and what it sees.
const (
	endlessDim    = 50
	endlessPoints = 2   // chains
	endlessTerms  = 4e7 // densities of single data
	endlessBlock  = 250 // points evaluated at once
	ends          = 0.5 // nats below the start: there the density ends
	doublings     = 20  // of the distance, from 1 and from the size of the point
	least         = 16  // units from 0 that a density rises, before numbers overflow
	edge          = 300 // from 0, near where exp overflows
	closely       = 65  // points between two distances
	far           = 1e6 // from 0
)

// endless looks for directions in which the log posterior at T = 1 never falls: those of single elements, and those of
// the eigenvectors of its second derivatives, along which lie sums and combinations that the data do not tell apart. A
// density that stays up to a million times the size of the point, or that rises until numbers overflow, has no mode
// there and as a rule is no distribution. It costs something, so that samplers and fits are looked at where something
// else is wrong with them, and optimisers always.
// Curved ridges are followed where asked for. The point is where chains "ended" or "began".
func (s *session) endless(at Params, where string, ridges bool) []draws.Note {
	dim := s.layout.Dim()
	if at.Flat == (torch.Tensor{}) || dim > endlessDim || s.data*float64(endlessPoints*dim*20) > endlessTerms ||
		at.Flat.T().DType() != gotch.Double {
		return nil
	}
	target := s.program.Target()
	target.compilation = nil // the points are few, and of another number than those of the run
	gradient, err := NewGradient(target)
	if err != nil {
		return nil
	}
	values, err := torch.ToSlice[float64](at.Flat)
	if err != nil {
		return nil
	}
	e := &ender{layout: s.layout, gradient: gradient, batch: s.all, n: target.N(), ridges: ridges}
	var notes []draws.Note
	s.tally.Aside(func() {
		for c := range min(len(values)/dim, endlessPoints) {
			text, err := e.look(values[c*dim : (c+1)*dim])
			if err != nil {
				return // the model fails where no run has been
			}
			if text != "" {
				notes = []draws.Note{{Kind: endlessKind, Serious: true, Advice: endlessAdvice,
					Text: fmt.Sprintf("The posterior density has no end: from where chain %d %s on it stays or rises %s, on "+
						"unconstrained space.", c, where, text)}}
				return
			}
		}
	})
	return notes
}

// troubled says whether draws or what is known of them are a reason to look for the end of a density.
func troubled(d *draws.Draws) bool {
	if len(d.Notes()) > 0 {
		return true
	}
	return happened(d, draws.StatDivergent) || happened(d, draws.StatMaxDepth)
}

// happened says whether a statistic that is 0 or 1 is 1 of some draw.
func happened(d *draws.Draws, stat string) bool {
	name, ok := d.StatName(stat)
	for c := 0; ok && c < d.Chains(); c++ {
		if values, err := d.Stat(name, c); err == nil && floats.Sum(values) > 0 {
			return true
		}
	}
	return false
}

// ender follows a log density along lines.
type ender struct {
	layout   *Layout
	gradient Gradient
	batch    Batch
	n        float64
	ridges   bool // are followed too
}

// look names the directions from x in which the density does not fall; empty where it ends in all. From a point that
// has gone far, along which rounding would hide a ridge, it looks from nearer too, in the same direction from 0.
func (e *ender) look(x []float64) (string, error) {
	text, err := e.lookFrom(x)
	if size := max(floats.Max(x), -floats.Min(x)); err == nil && text == "" && size > far {
		return e.lookFrom(floats.ScaleTo(make([]float64, len(x)), 1/size, x))
	}
	return text, err
}

func (e *ender) lookFrom(x []float64) (string, error) {
	d := len(x)
	axes := make([][]float64, d)
	for i := range axes {
		axes[i] = make([]float64, d)
		axes[i][i] = 1
	}
	found, err := e.open(x, axes)
	if err != nil || len(found) > 0 || d < 2 {
		return e.name(found), err
	}
	h, err := e.hessian(x)
	var eigen mat.EigenSym
	if err != nil || h == nil || !eigen.Factorize(h, true) {
		return "", err
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for i := range axes {
		axes[i] = mat.Col(nil, i, &vectors)
	}
	if found, err = e.open(x, axes); err == nil && len(found) == 0 && e.ridges {
		found, err = e.ridge(x)
	}
	return e.name(found), err
}

// name says in words along which directions a density does not fall. Of an eigenvector both signs are one line.
func (e *ender) name(found [][]float64) string {
	var words []string
	for k, v := range found {
		if k > 0 && floats.Equal(v, floats.ScaleTo(make([]float64, len(v)), -1, found[k-1])) {
			if i := floats.MaxIdx(v); v[i] == 1 || v[floats.MinIdx(v)] == -1 {
				words[len(words)-1] += " and as it falls"
			}
			continue
		}
		words = append(words, e.direction(v))
	}
	if len(words) > 4 {
		words = append(words[:4], "...")
	}
	return strings.Join(words, ", ")
}

func (e *ender) direction(v []float64) string {
	text, most := "along", math.Max(floats.Max(v), -floats.Min(v))
	terms := 0
	for i, a := range v {
		switch {
		case a == 1:
			return fmt.Sprintf("as %s grows", e.layout.At(i))
		case a == -1:
			return fmt.Sprintf("as %s falls", e.layout.At(i))
		case math.Abs(a) > 1e-3*most:
			if terms++; terms > 5 {
				return text + " ..."
			}
			text += fmt.Sprintf(" %+.3g %s", a, e.layout.At(i))
		}
	}
	return text
}

// open are the directions ±v in which the density does not end. A few distances tell of most that it does.
func (e *ender) open(x []float64, directions [][]float64) ([][]float64, error) {
	var lines [][]float64
	for _, v := range directions {
		lines = append(lines, v, floats.ScaleTo(make([]float64, len(v)), -1, v))
	}
	size := max(1, floats.Max(x), -floats.Min(x))
	var all []float64
	for _, unit := range []float64{1, size} {
		for k := range doublings + 1 {
			if t := math.Ldexp(unit, k); len(all) == 0 || t > all[len(all)-1] {
				all = append(all, t)
			}
		}
	}
	few := []float64{least, 1 << 10, all[len(all)-1]}
	rises, err := e.along(x, lines, few)
	if err != nil {
		return nil, err
	}
	for i, v := range lines { // a point that has come up to the overflow itself; lines are in pairs, to and fro
		if !finite(rises[i][0]) && floats.Dot(x, v) > edge && rises[i^1][0] < -1 {
			return [][]float64{v}, nil
		}
	}
	open, _ := e.unended(x, lines, few, rises)
	if len(open) == 0 {
		return nil, nil
	}
	if rises, err = e.along(x, open, all); err != nil {
		return nil, err
	}
	open, last := e.unended(x, open, all, rises)
	var found [][]float64
	for i, v := range open {
		if last[i] < len(all)-1 { // numbers overflow: look more closely at what is before
			between := append([]float64(nil), all[:last[i]+1]...)
			between = append(between, floats.Span(make([]float64, closely), all[last[i]], all[last[i]+1])[1:]...)
			if rises, err = e.along(x, [][]float64{v}, between); err != nil {
				return nil, err
			}
			if still, _ := e.unended(x, [][]float64{v}, between, rises); len(still) == 0 {
				continue
			}
		}
		found = append(found, v)
	}
	return found, nil
}

// unended are the lines along which the log density is not seen to end, by its rises at some distances, and for each
// the last distance before numbers overflow. Where these come early it rises there. A few distances tell of no rise.
func (e *ender) unended(x []float64, lines [][]float64, distances []float64, rises [][]float64) (open [][]float64,
	last []int) {
	for i, v := range lines {
		at, end := -1, false
		for j, rise := range rises[i] {
			if end = rise < -ends; end || !finite(rise) { // or -Inf, outside the support
				break
			}
			at = j
		}
		rise := 0.0
		if at >= 0 {
			rise = rises[i][at]
		}
		far := distances[max(at, 0)]+max(0, floats.Dot(x, v)) >= least
		// Near 0 numbers lose their digits before they overflow.
		rising := at > 0 && far && rise > 1 && rise > floats.Max(rises[i][:at+1])/2
		if end || at < len(distances)-1 && len(distances) > 3 && !rising {
			continue
		}
		open, last = append(open, v), append(last, at)
	}
	return open, last
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// along is by how much the log density is above that at x, at distances along lines.
func (e *ender) along(x []float64, lines [][]float64, distances []float64) ([][]float64, error) {
	points := [][]float64{x}
	for _, v := range lines {
		for _, t := range distances {
			points = append(points, floats.AddScaledTo(make([]float64, len(x)), x, t, v))
		}
	}
	values, _, err := e.evaluate(points)
	if err != nil {
		return nil, err
	}
	rises := make([][]float64, len(lines))
	for i := range rises {
		for j := range distances {
			rises[i] = append(rises[i], values[1+i*len(distances)+j]-values[0])
		}
	}
	return rises, nil
}

// hessian are the second derivatives at x by differences of gradients; nil where they are not finite.
func (e *ender) hessian(x []float64) (*mat.SymDense, error) {
	d := len(x)
	var points [][]float64
	steps := make([]float64, d)
	for i := range x {
		steps[i] = 1e-4 * max(1, math.Abs(x[i]))
		for _, h := range []float64{steps[i], -steps[i]} {
			p := append([]float64(nil), x...)
			p[i] += h
			points = append(points, p)
		}
	}
	_, grads, err := e.evaluate(points)
	if err != nil {
		return nil, err
	}
	h := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			one := (grads[2*i][j] - grads[2*i+1][j]) / (2 * steps[i])
			two := (grads[2*j][i] - grads[2*j+1][i]) / (2 * steps[j])
			v := (one + two) / 2
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, nil
			}
			h.SetSym(i, j, v)
		}
	}
	return h, nil
}

// evaluate are log densities at T = 1 and their gradients.
func (e *ender) evaluate(points [][]float64) (values []float64, grads [][]float64, err error) {
	d := len(points[0])
	for from := 0; from < len(points) && err == nil; from += endlessBlock {
		var flat []float64
		for _, p := range points[from:min(from+endlessBlock, len(points))] {
			flat = append(flat, p...)
		}
		err = torch.Do(func(*torch.Scope) error {
			x, err := torch.FromSlice(flat, len(flat)/d, d)
			if err != nil {
				return err
			}
			v, err := e.gradient.ValueAndGrad(Params{Layout: e.layout, Flat: x}, e.batch, 1/e.n)
			if err != nil {
				return err
			}
			all, err := torch.ToSlice[float64](v.Grad)
			for k, value := range v.Values {
				values = append(values, value*e.n)
				grads = append(grads, floats.ScaleTo(make([]float64, d), e.n, all[k*d:(k+1)*d]))
			}
			return err
		})
	}
	return values, grads, err
}
