package ppl

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Predictive draws what a model predicts.
type Predictive struct {
	Model Model // what is run
	// Batch holds the covariates, old or new. What Observe takes is drawn anew and may be missing, except for
	// LogLikelihood; values that Condition and Do have set stay. Plates take the size of the data at hand, unless
	// latent variables in them fix it.
	Batch infer.Batch
	Seed  uint64
	Sites []string // which sites to return; nil is all random variables and deterministic values

	first    int      // number of the first random stream
	compiled *outputs // for LogLikelihood; nil for eager evaluation
}

// Prior draws n times from the prior predictive: every random variable, the observed ones too. Each value has a leading
// dimension of n. Where values of a random variable are not finite, or a deterministic value is NaN, they come with an
// error that wraps [infer.ErrNonFinite], counts such draws and names the first site in the order of the model.
func (q Predictive) Prior(n int) (Values, error) {
	if n < 1 {
		return nil, fmt.Errorf("ppl.Predictive: %d draws asked for; there must be at least 1", n)
	}
	if n > 1<<31 {
		return nil, fmt.Errorf("ppl.Predictive: %d draws asked for; there must be at most 2^31", n)
	}
	index, err := torch.FromSlice(make([]float64, n))
	if err != nil {
		return nil, err
	}
	defer torch.Free(index)
	values, order, err := q.draw([]torch.Tensor{index}, nil, nil, n)
	if err != nil {
		return nil, err
	}
	return values, checkFinite(values, order, n)
}

// checkFinite counts the draws of the first site in which values are not finite. A deterministic value may be infinite,
// such as the logarithm of a count.
func checkFinite(values Values, order []drawn, n int) error {
	return torch.Do(func(*torch.Scope) error {
		for _, s := range order {
			bad := values[s.name].T().MustIsnan(false)
			if s.kind == KindSample {
				bad = values[s.name].T().MustIsfinite(false).MustLogicalNot(false)
			}
			rows := bad.MustReshape([]int64{int64(n), -1}, false).MustAnyDim(1, false, false)
			many, err := torch.Item(torch.Of(rows.MustSum(gotch.Double, false)))
			if err != nil {
				return err
			}
			if many > 0 {
				return fmt.Errorf("ppl.Predictive: site %q: %.0f of %d prior draws are %w: a prior is so wide that numbers "+
					"overflow, or a formula has no value there", s.name, many, n, infer.ErrNonFinite)
			}
		}
		return nil
	})
}

// drawn is a site in the order of the model.
type drawn struct {
	name string
	kind Kind
}

// Posterior draws from the posterior predictive: one prediction for each draw of the latent variables. Every value has
// a leading dimension of the number of draws, all chains one after the other. A latent variable in a plate that the
// draws lack is drawn anew, but where they have a deterministic value that is made of it: that is used then.
func (q Predictive) Posterior(posterior *draws.Draws) (Values, error) {
	names, in, n, stored, err := q.given(posterior)
	if err != nil {
		return nil, err
	}
	defer torch.Free(in...)
	values, _, err := q.draw(in, names, stored, n)
	return values, err
}

// withShapes is a model whose plates may take their sizes from the draws of the latent variables inside.
func withShapes(m Model, posterior *draws.Draws) Model {
	shapes := map[string][]int{}
	for _, s := range posterior.Sites() {
		shapes[s.Name] = s.Shape
	}
	return knowing(m, func(z *plateSizes) { z.shapes = shapes })
}

// given are the variables of n draws, which the caller frees, with the model as it is with their shapes, and which
// sites the draws have the values of.
func (q *Predictive) given(posterior *draws.Draws) (names []string, in []torch.Tensor, n int, stored map[string]bool,
	err error) {
	if names, in, n, err = q.latents(posterior); err != nil {
		return nil, nil, 0, nil, err
	}
	q.Model = withShapes(q.Model, posterior)
	if stored, err = q.checkDraws(posterior, names, in); err != nil {
		torch.Free(in...)
		return nil, nil, 0, nil, err
	}
	return names, in, n, stored, nil
}

// latents are the draws of each site as a tensor of shape [draws, ...].
func (q Predictive) latents(posterior *draws.Draws) (names []string, in []torch.Tensor, n int, err error) {
	if posterior == nil {
		return nil, nil, 0, fmt.Errorf("ppl.Predictive: the draws are nil: %w", draws.ErrNoDraws)
	}
	n = posterior.Total()
	if n == 0 {
		return nil, nil, 0, fmt.Errorf("ppl.Predictive: there are no draws: %w", draws.ErrNoDraws)
	}
	if err := checkNamed(posterior); err != nil {
		return nil, nil, 0, fmt.Errorf("ppl.Predictive: %w", err)
	}
	for _, s := range posterior.Sites() {
		values, err := posterior.Values(s.Name)
		if err != nil {
			return nil, nil, 0, err
		}
		flat := make([]float64, 0, n*s.Size)
		for _, chain := range values {
			for _, row := range chain {
				flat = append(flat, row...)
			}
		}
		t, err := torch.FromSlice(flat, append([]int{n}, s.Shape...)...)
		if err != nil {
			return nil, nil, 0, err
		}
		names, in = append(names, s.Name), append(in, t)
	}
	return names, in, n, nil
}

// checkNamed refuses draws that are known to be on unconstrained space.
func checkNamed(posterior *draws.Draws) error {
	if posterior.Space() != draws.Unconstrained {
		return nil
	}
	return fmt.Errorf("the draws are on unconstrained space: give the named ones, Draws of an infer.Result, or what "+
		"Program.Draws makes of these: %w", draws.ErrLayout)
}

// checkDraws makes sure that the first draw fits the model, and that no draw is outside an interval between numbers
// where the draws may be on unconstrained space. Those, and draws of another model, would silently give wrong
// predictions. stored are the deterministic values that depend on latent variables which the draws lack: they are taken
// from the draws.
func (q Predictive) checkDraws(posterior *draws.Draws, names []string, in []torch.Tensor) (stored map[string]bool,
	err error) {
	fixed := map[string]int{} // the plates of the draws
	stored = map[string]bool{}
	err = torch.Do(func(*torch.Scope) error {
		given, all := Values{}, Values{}
		for i, name := range names {
			given[name], all[name] = in[i].At(0), in[i]
		}
		check := process(func(s *Site) {
			if s.Kind != KindSample || s.Observed || s.Value != (torch.Tensor{}) {
				return
			}
			v, ok := given[s.Name]
			switch {
			case !ok && s.instead != "":
				s.fail("the draws do not have it, and it stands for %q: predict with the model that was fitted; the draws have %q",
					s.instead, names)
			case !ok && len(s.Plates) == 0 && !s.redrawn && !s.anyPlate:
				s.fail("the draws do not have it; they have %q", names)
			case !ok:
				return
			}
			for _, p := range s.Plates {
				fixed[p.Name] = p.Size
			}
			have, want := shapeOf(v), append(s.Dist.BatchShape(), s.Dist.EventShape()...)
			if !slices.Equal(have, want) {
				s.fail("the draws have shape %v, and the model has shape %v", have, want)
			}
			if err := s.Dist.Support().Check(v); err != nil && !rounded(s.Dist.Support(), v) {
				s.fail("the first draw is outside the support (draws on unconstrained space have to go through Program.Draws): %v",
					err)
			}
			if posterior.Space() != draws.Named {
				if err := checkAll(s.Dist.Support(), all[s.Name]); err != nil {
					s.fail("a draw is outside the support (draws on unconstrained space have to go through Program.Draws): %v", err)
				}
			}
			s.Value = v
		})
		predict(q.Model, q.Batch, torch.NewSource(q.Seed, 0), check, takeStored(given, stored), redraw)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ppl.Predictive: %w", withPlates(err, fixed))
	}
	return stored, nil
}

// takeStored finds the deterministic values that are to be taken from a draw: those that depend on a latent variable
// which it lacks. Such a variable starts a graph.
func takeStored(given Values, stored map[string]bool) finish {
	var lacking []string
	return func(s *Site) {
		v, known := given[s.Name]
		switch {
		case s.Kind == KindSample && !s.Observed && !s.redrawn && !known && isFloat(s.Value):
			lacking = append(lacking, s.Name)
			s.Value = torch.Must(torch.Leaf(s.Value))
		case s.Kind == KindDeterministic && known && s.Value.T().MustRequiresGrad():
			if have, want := shapeOf(v), shapeOf(s.Value); !slices.Equal(have, want) {
				s.fail("the draws have it with shape %v, and lack %q, from which the model makes one of shape %v: add these to "+
					"the draws, or leave this value out too, by Draws.Select, and it is drawn anew", have, lacking, want)
			}
			stored[s.Name], s.Value = true, v
		}
	}
}

// isFloat says whether derivatives in a tensor can be taken.
func isFloat(t torch.Tensor) bool {
	dtype, err := torch.DTypeOfTensor(t)
	return err == nil && (dtype == gotch.Double || dtype == gotch.Float)
}

// checkAll makes sure that no draw of a variable is outside an interval between numbers, by more than its rounding to
// six digits. Draws that are not finite are none of its business.
func checkAll(s support.Support, all torch.Tensor) error {
	low, high, known := s.Bounds()
	if !known || s.Kind != support.KindInterval {
		return nil
	}
	values, err := torch.ToSlice[float64](all)
	if err != nil {
		return err
	}
	for _, v := range values {
		if over := 1e-5 * math.Abs(v); !math.IsInf(v, 0) && (v+over < low || v-over > high) {
			return fmt.Errorf("%v is not from %v to %v", v, low, high)
		}
	}
	return nil
}

// rounded says whether numbers are in an interval but for their rounding.
func rounded(s support.Support, x torch.Tensor) bool {
	_, _, known := s.Bounds()
	values, err := torch.ToSlice[float64](x)
	return known && s.Kind == support.KindInterval && err == nil && !slices.ContainsFunc(values, isNotFinite) &&
		checkAll(s, x) == nil
}

// withPlates adds to an error of shapes that do not fit what the draws have fixed.
func withPlates(err error, fixed map[string]int) error {
	misfit := slices.ContainsFunc([]string{"broadcast", "must match the size of tensor"}, func(words string) bool {
		return strings.Contains(err.Error(), words)
	})
	if !misfit || strings.Contains(err.Error(), leaveOut) {
		return err
	}
	var plates []string
	sizes := strings.FieldsFunc(err.Error(), func(r rune) bool { return !unicode.IsDigit(r) })
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if slices.Contains(sizes, fmt.Sprint(fixed[name])) {
			plates = append(plates, fmt.Sprintf("plate %q for %d", name, fixed[name]))
		}
	}
	if len(plates) == 0 {
		return err
	}
	return fmt.Errorf("%w; the draws have the variables in %s: %s", err, strings.Join(plates, " and in "), leaveOut)
}

// leaveOut is what to do where the draws have another number of repetitions than the data of a prediction.
const leaveOut = "to predict for others leave those variables out of the draws, by Draws.Select, and they are drawn " +
	"anew"

// redraw forgets the data of Observe. What Condition and Do have set stays. Outside plates the number of the data is
// known from them alone: as many are drawn.
var redraw = process(func(s *Site) {
	if s.Kind == KindSample && s.declared && !s.hidden {
		if batch, value := s.shapes(); len(s.Plates) == 0 && !broadcastsTo(value, batch) && broadcastsTo(batch, value) &&
			!s.ctx.sum.has(s.Dist.BatchShape()) {
			s.Dist = s.Dist.Expand(value...)
		}
		s.Value, s.Observed, s.redrawn = torch.Tensor{}, false, true
	}
})

// fill gives latent variables and params without a value, and stored deterministic values, those of one draw.
func fill(given Values, stored map[string]bool) process {
	return func(s *Site) {
		if s.Kind == KindDeterministic && stored[s.Name] {
			s.Value = given[s.Name]
		}
		if v, ok := given[s.Name]; ok && s.Value == (torch.Tensor{}) && !s.redrawn &&
			(s.Kind == KindSample || s.Kind == KindParam) {
			s.Value = v
		}
	}
}

// draw runs the model mapped over the draws, each with a random stream of its own. Observed values are drawn anew.
func (q Predictive) draw(in []torch.Tensor, names []string, stored map[string]bool, n int) (Values, []drawn, error) {
	wanted := set(q.Sites)
	var all []string
	var found []drawn
	draw := func(in []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
		given := Values{}
		for i, name := range names {
			given[name] = in[i]
		}
		found, all = nil, nil
		var values []torch.Tensor
		keep := finish(func(s *Site) {
			if s.Kind != KindSample && s.Kind != KindDeterministic {
				return
			}
			if slices.Contains(all, s.Name) {
				s.fail("there are two sites of that name; names must differ within a run")
			}
			all = append(all, s.Name)
			if q.Sites == nil || wanted[s.Name] {
				found, values = append(found, drawn{s.Name, s.Kind}), append(values, s.Value)
			}
		})
		predict(q.Model, q.Batch, source, keep, fill(given, stored), redraw)
		return values, nil
	}
	out, err := inBlocks(in, n, func(in []torch.Tensor, from, to int) ([]torch.Tensor, error) {
		streams := torch.NewStreams(q.Seed, to-from)
		for k := range streams.Chains {
			streams.Chains[k] += uint64(q.first + from)
		}
		return torch.VmapSources(draw, in, &streams, nil)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("ppl.Predictive: %w", err)
	}
	values := Values{}
	for i, s := range found {
		values[s.name] = out[i]
	}
	for _, name := range q.Sites {
		if values[name] == (torch.Tensor{}) {
			return nil, nil, fmt.Errorf("ppl.Predictive: the model has no site %q; it has: %q", name, all)
		}
	}
	return values, found, nil
}

// LogLikelihood is the log density of every single observation under every posterior draw, by observed site: tensors of
// shape [draws] + plates + batch, as cross-validation needs them. Subsampling does not scale them. A likelihood that is
// a Factor is not among them: it is not one of single observations. Where a mask leaves an observation out it is 0.
func (q Predictive) LogLikelihood(posterior *draws.Draws) (Values, error) {
	names, in, n, stored, err := q.given(posterior)
	if err != nil {
		return nil, err
	}
	defer torch.Free(in...)
	evaluate := func(in []torch.Tensor, batch infer.Batch) Values {
		given, out := Values{}, Values{}
		for i, name := range names {
			given[name] = in[i]
		}
		keep := finish(func(s *Site) {
			if t := pointwise(s); t != (torch.Tensor{}) {
				out[s.Name] = t
			}
		})
		execute(q.Model, batch, nil, keep, fill(given, stored))
		return out
	}
	values, err := q.compiled.evaluate(evaluate, in, q.Batch, n)
	if err == nil && values == nil {
		values, err = q.pointwise(evaluate, in, n)
	}
	if err != nil {
		return nil, fmt.Errorf("ppl.LogLikelihood: %w", err)
	}
	return values, nil
}

// pointwise evaluates by operations, mapped over n draws.
func (q Predictive) pointwise(evaluate pointwiseOf, in []torch.Tensor, n int) (Values, error) {
	var found []string
	out, err := inBlocks(in, n, func(in []torch.Tensor, _, _ int) ([]torch.Tensor, error) {
		return torch.Vmap(func(in []torch.Tensor) (out []torch.Tensor, err error) {
			values := evaluate(in, q.Batch)
			found = sortedNames(values)
			for _, name := range found {
				out = append(out, values[name])
			}
			return out, nil
		}, in, nil)
	})
	if err != nil {
		return nil, err
	}
	values := Values{}
	for i, name := range found {
		values[name] = out[i]
	}
	return values, nil
}
