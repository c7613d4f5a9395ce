package ppl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat"
)

// Initial says where chains start.
type Initial struct {
	name   string
	radius float64
	values Values
}

var (
	// FromPrior starts each chain at a draw from the prior. A variable with a flat prior starts as in FromUniform.
	FromPrior = Initial{name: "prior"}
	// FromUniform starts each chain uniformly in (−2, 2) on unconstrained space, as Stan does. Positive
	// definite matrices and Cholesky factors of k rows start in (−2/√k, 2/√k), since wider ones are nearly singular.
	// Params start at their initial values, whatever the Initial.
	FromUniform = Initial{name: "uniform", radius: 2}
	// FromMedian starts each chain at the median, elementwise on unconstrained space, of 15 prior draws of its own.
	FromMedian = Initial{name: "median"}
)

// Within is FromUniform on (−r, r) in the place of (−2, 2).
func (i Initial) Within(r float64) Initial { return Initial{name: "uniform", radius: r} }

// FromValues starts all chains at given values of the latent variables.
func FromValues(values Values) Initial { return Initial{name: "values", values: values} }

// initialTries is how often a chain's start is drawn until its density is finite, as in Stan.
const initialTries = 100

// maxChains is the most chains that a run has.
const maxChains = 1 << 20

// medianDraws is how many prior draws FromMedian takes.
const medianDraws = 15

// Init returns starting points: of shape [d] for one chain, [K, d] for K. The log density and its gradient are finite
// there; of a long series of dist/statespace those of its first steps are, but for the first chain. If there is no such
// point, the error names a site that is to blame.
func (p *Program) Init(batch infer.Batch, how Initial, chains int, seed uint64) (infer.Params, error) {
	fail := func(err error) (infer.Params, error) { return infer.Params{}, fmt.Errorf("ppl.Init: %w", err) }
	if chains < 1 || chains > maxChains {
		return fail(fmt.Errorf("%d chains asked for; there must be at least 1, and at most %d: %w", chains, maxChains,
			infer.ErrConfig))
	}
	gradient, err := infer.NewGradient(infer.Sum(p.density(), 1))
	if err != nil {
		return fail(err)
	}
	var flat []float64
	for chain := range chains {
		source := torch.NewSource(seed, uint64(chain))
		var point infer.Params
		found := false
		for range initialTries {
			row, err := p.start(batch, how, source)
			if err != nil {
				return fail(err)
			}
			if point, err = infer.NewParams(p.layout, row); err != nil {
				return fail(err)
			}
			var e infer.Evaluation
			err = torch.Do(func(*torch.Scope) error {
				if chain > 0 { // which the first steps of a long series tell from others as well
					defer thread.Shorten(fewSteps)()
				}
				var err error
				e, err = gradient.ValueAndGrad(point, batch, 0)
				return err
			})
			if err != nil {
				return fail(p.blameGradient(point, batch, err, ""))
			}
			if e.Diverged() == nil {
				flat, found = append(flat, row...), true
				break
			}
			if how.name == "values" || how.name == "median" {
				break
			}
		}
		if !found {
			return fail(p.blame(point, batch, how, chain))
		}
	}
	return infer.NewParams(p.layout, flat)
}

// Start is Init with FromUniform: where Stan starts.
func (p *Program) Start(batch infer.Batch, chains int, seed uint64) (infer.Params, error) {
	return p.Init(batch, FromUniform, chains, seed)
}

// start is one candidate.
func (p *Program) start(batch infer.Batch, how Initial, source *torch.Source) ([]float64, error) {
	switch how.name {
	case "values":
		point, err := p.Unconstrain(how.values, batch)
		if err != nil {
			return nil, err
		}
		return point.Values()
	case "uniform":
		row, err := p.uniform(how.radius, source)
		if err != nil || len(p.Discrete()) == 0 {
			return row, err
		}
		drawn, err := p.prior(batch, source)
		for _, name := range p.Discrete() {
			if s, _ := p.layout.Site(name); err == nil {
				copy(row[s.Offset:s.Offset+s.Size], drawn[s.Offset:])
			}
		}
		return row, err
	case "prior":
		return p.prior(batch, source)
	case "median":
		columns := make([][]float64, p.layout.Dim())
		for range medianDraws {
			row, err := p.prior(batch, source)
			if err != nil {
				return nil, err
			}
			for i, v := range row {
				columns[i] = append(columns[i], v)
			}
		}
		out := make([]float64, len(columns))
		for i, c := range columns {
			sort.Float64s(c)
			out[i] = stat.Quantile(0.5, stat.Empirical, c, nil)
		}
		return out, nil
	}
	return nil, fmt.Errorf("the zero Initial says nothing; use FromPrior, FromUniform, FromMedian or FromValues: %w",
		infer.ErrConfig)
}

func (p *Program) uniform(radius float64, source *torch.Source) ([]float64, error) {
	var out []float64
	err := torch.Do(func(*torch.Scope) error {
		u, err := source.Uniform([]int{p.layout.Dim()}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		out, err = torch.ToSlice[float64](u)
		return err
	})
	if err != nil {
		return nil, err
	}
	centre, narrower := p.around()
	for i := range out {
		out[i] = centre[i] + radius*(2*out[i]-1)/narrower[i]
	}
	return out, nil
}

// around is where starts are uniform, in each coordinate: the centre, and by what the radius is divided.
func (p *Program) around() (centre, narrower []float64) {
	centre, narrower = make([]float64, p.layout.Dim()), make([]float64, p.layout.Dim())
	for _, s := range p.layout.Sites {
		l, by := p.latents[s.Name], 1.0
		switch l.support.Kind {
		case support.KindLowerCholesky, support.KindCorrCholesky, support.KindPositiveDefinite:
			by = math.Sqrt(float64(l.shape[len(l.shape)-1]))
		}
		if l.kind == KindParam {
			copy(centre[s.Offset:], l.start)
			by = math.Inf(1)
		}
		for i := range s.Size {
			narrower[s.Offset+i] = by
		}
	}
	return centre, narrower
}

// prior is a draw from the prior on unconstrained space; variables that cannot be drawn are uniform there.
func (p *Program) prior(batch infer.Batch, source *torch.Source) ([]float64, error) {
	var out []float64
	err := torch.Do(func(*torch.Scope) error {
		free := map[string]torch.Tensor{}
		execute(p.model, batch, source, process(func(s *Site) {
			l, ok := p.latents[s.Name]
			if !ok || s.Observed || s.Value != (torch.Tensor{}) {
				return
			}
			b := l.onto(s)
			if s.Kind == KindParam {
				free[s.Name] = torch.New(l.start).Reshape(l.free...)
				s.Value = s.Init
				return
			}
			if s.Dist.Name() == "ImproperUniform" {
				u := torch.Must(source.Uniform(l.free, gotch.Double, torch.CPU))
				free[s.Name] = torch.Of(u.T().MustMulScalar(ts.FloatScalar(4), false).MustSubScalar(ts.FloatScalar(2), false))
				s.Value = b.Forward(free[s.Name])
				return
			}
			s.Value = torch.Of(s.Dist.Sample(source).T())
			free[s.Name] = l.inverse(b, s.Value).Reshape(l.free...)
		}))
		point, err := infer.FromTensors(free)
		if err != nil {
			return err
		}
		out, err = point.Values()
		return err
	})
	return out, err
}

// culprit names the first element whose log density is not finite, with its value where that is data.
func (s *Site) culprit() string {
	logp := s.elementwise()
	shape := shapeOf(logp)
	densities, err := torch.ToSlice[float64](logp)
	i := slices.IndexFunc(densities, isNotFinite)
	if err != nil || i < 0 || len(shape) == 0 {
		return ""
	}
	text := fmt.Sprintf(", first at element %v of shape %v", indexOf(i, shape), shape)
	if s.Observed && s.Kind == KindSample && slices.Equal(s.valueShape(), shape) {
		if values, err := torch.ToSlice[float64](s.Value); err == nil {
			text += fmt.Sprintf(", where the observed value is %v", values[i])
		}
	}
	return text
}

// undetermined is a distribution that says why data have no density.
type undetermined interface {
	Undetermined(value torch.Tensor) string
}

// faultOf names the first number of a batch that is not finite; empty where all are. Numbers of the site's own that may
// be missing are no fault.
func faultOf(batch infer.Batch, s *Site) string {
	missing := s.Value != (torch.Tensor{}) && s.Kind == KindSample && s.Dist.Support().Missing
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		values, err := torch.ToSlice[float64](batch[name])
		wrong := isNotFinite
		if missing && slices.Equal(shapeOf(batch[name]), s.valueShape()) {
			wrong = func(v float64) bool { return math.IsInf(v, 0) }
		}
		if i := slices.IndexFunc(values, wrong); err == nil && i >= 0 {
			shape := shapeOf(batch[name])
			return fmt.Sprintf("the data %q have %v at element %v of shape %v", name, values[i], indexOf(i, shape), shape)
		}
	}
	return ""
}

func isNotFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// indexOf is the index of the i-th element of a shape.
func indexOf(i int, shape []int) []int {
	index, rest := make([]int, len(shape)), i
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], rest = rest%shape[d], rest/shape[d]
	}
	return index
}

// blame finds a site whose log density is not finite.
func (p *Program) blame(point infer.Params, batch infer.Batch, how Initial, chain int) error {
	what := "no starting point with a finite log density and gradient was found"
	err := torch.Do(func(*torch.Scope) error {
		e := &evaluator{program: p, point: point, collect: func(s *Site) {
			if !s.counts() {
				return
			}
			v, err := torch.Item(s.LogProb())
			if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
				advice := "start elsewhere (ppl.FromPrior, or ppl.FromValues with values that the data allow), give a scale a " +
					"support away from 0, or bring the data to a scale of about 1"
				if fault := faultOf(batch, s); fault != "" {
					advice = fault + ": mask such data (ppl.Mask), or leave them out"
				}
				if d, ok := s.given.(undetermined); ok && s.Observed {
					if why := d.Undetermined(s.Value); why != "" {
						advice = why
					}
				}
				s.fail("its log density is %v at the last point tried for chain %d (start: %s)%s: %s; %s", v, chain, how.name,
					s.culprit(), what, advice)
			}
		}}
		execute(p.model, batch, nil, e)
		return nil
	})
	if err == nil {
		advice := fmt.Sprintf("%s for chain %d (start: %s); look for a Sqrt, Abs, Pow or division at 0, or start elsewhere "+
			"(ppl.FromPrior, ppl.FromValues)", what, chain, how.name)
		err = p.blameGradient(point, batch, fmt.Errorf("the density is finite there and its gradient is not: %s", advice),
			advice)
	}
	return fmt.Errorf("%w: %w", err, infer.ErrNonFinite)
}

// blameGradient finds the site whose log density has no gradient, or one that is not finite, which advice is about. The
// error is the given one where there is none.
func (p *Program) blameGradient(point infer.Params, batch infer.Batch, otherwise error, advice string) error {
	var undefined *torch.Error
	if advice == "" && (!errors.As(otherwise, &undefined) || !strings.Contains(undefined.Message, "derivative")) {
		return otherwise
	}
	err := torch.Do(func(*torch.Scope) error {
		leaf, err := torch.Leaf(point.Flat)
		if err != nil {
			return err
		}
		e := &evaluator{program: p, point: infer.Params{Layout: p.layout, Flat: leaf}, weights: infer.Weights{Jacobian: 1}}
		e.collect = func(s *Site) {
			if !s.counts() {
				return
			}
			logp := s.LogProb()
			if !logp.T().MustRequiresGrad() {
				return
			}
			grad, err := torch.Grad([]torch.Tensor{logp}, []torch.Tensor{leaf},
				&torch.GradOptions{KeepGraph: true, AllowUnused: true})
			if errors.As(err, &undefined) && strings.Contains(undefined.Message, "derivative") {
				s.fail("its log density has no gradient: %s; fix the parameter that it would be taken in, or use another "+
					"distribution", strings.TrimRight(undefined.Message, ". \n"))
			}
			if err != nil || advice == "" {
				return
			}
			values, err := torch.ToSlice[float64](grad[0])
			if i := slices.IndexFunc(values, isNotFinite); err == nil && i >= 0 {
				s.fail("its log density is finite and its gradient in %q is %v there: %s", p.nameOf(i), values[i], advice)
			}
		}
		execute(p.model, batch, nil, e)
		return nil
	})
	var site *SiteError
	if errors.As(err, &site) {
		return err
	}
	return otherwise
}

// nameOf is the latent variable that a number of the layout belongs to.
func (p *Program) nameOf(i int) string {
	for _, s := range p.layout.Sites {
		if i >= s.Offset && i < s.Offset+s.Size {
			return s.Name
		}
	}
	return ""
}
