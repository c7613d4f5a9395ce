package lower_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// targetSource is a target as the recorder evaluates it.
func targetSource(target infer.Target, layout *infer.Layout, batch infer.Batch) lower.Source {
	s := lower.Source{Dim: layout.Dim()}
	var names []string
	for name := range batch {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s.Batch = append(s.Batch, lower.Named{Name: name, Tensor: batch[name].T()})
	}
	s.Evaluate = func(x *ts.Tensor, data []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
		batch := infer.Batch{}
		for i, name := range names {
			batch[name] = torch.Of(data[i])
		}
		for i, f := range []infer.LogPosterior{target.LogPosterior, target.LogJacobian} {
			if f == nil {
				continue
			}
			var names []string
			v, g, more, err := torch.ValueAndGradAux(func(x torch.Tensor) (torch.Tensor, []torch.Tensor) {
				p, err := infer.Params{Layout: layout, Flat: x}.Split()
				torch.Must(x, err)
				y, out := f(p, batch)
				var more []torch.Tensor
				for name := range out {
					names = append(names, name)
				}
				slices.Sort(names)
				for _, name := range names {
					more = append(more, out[name])
				}
				return y, more
			}, torch.Of(x))
			if err != nil {
				return nil, nil, nil, err
			}
			values, grads = append(values, v.T()), append(grads, g.T())
			if i == 0 {
				for k, name := range names {
					aux = append(aux, lower.Named{Name: name, Tensor: more[k].T()})
				}
			}
		}
		return values, grads, aux, nil
	}
	return s
}

// eager is what a source computes at a point: value, gradient and aux, with a weight of its Jacobian.
func eager(t testing.TB, s lower.Source, x []float64, weight float64) (value float64, grad []float64, aux [][]float64) {
	t.Helper()
	err := torch.Do(func(*torch.Scope) error {
		flat, err := torch.FromSlice(slices.Clone(x), len(x))
		if err != nil {
			return err
		}
		var data []*ts.Tensor
		for _, b := range s.Batch {
			data = append(data, b.Tensor)
		}
		values, grads, more, err := s.Evaluate(flat.T(), data)
		if err != nil {
			return err
		}
		value, grad = floats(values[0])[0], floats(grads[0])
		if len(values) > 1 && weight != 0 {
			value += weight * floats(values[1])[0]
			for i, g := range floats(grads[1]) {
				grad[i] += weight * g
			}
		}
		for _, a := range more {
			aux = append(aux, floats(a.Tensor))
		}
		return nil
	})
	if err != nil && strings.Contains(err.Error(), "not positive-definite") {
		return math.NaN(), slices.Repeat([]float64{math.NaN()}, s.Dim), nil // an error of the point; compiled code has NaN
	}
	require.NoError(t, err)
	return value, grad, aux
}

func floats(x *ts.Tensor) []float64 {
	v, err := torch.ToSlice[float64](torch.Of(x))
	if err != nil {
		panic(err)
	}
	return v
}

// batchOf are the numbers of a batch.
func batchOf(t testing.TB, s lower.Source) [][]float64 {
	t.Helper()
	var out [][]float64
	for _, b := range s.Batch {
		out = append(out, floats(b.Tensor))
	}
	return out
}

// points are k points of d normal numbers of a scale.
func points(k, d int, scale float64, seed uint64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 23))
	out := make([][]float64, k)
	for i := range out {
		out[i] = make([]float64, d)
		for j := range out[i] {
			out[i][j] = scale * rng.NormFloat64()
		}
	}
	return out
}

// compile records a source and makes a plan of it.
func compile(t testing.TB, s lower.Source) *ir.Plan {
	t.Helper()
	p := points(2, s.Dim, 0.5, 1)
	plan, err := lower.Compile(s, p[0], p[1], lower.Options{})
	require.NoError(t, err)
	return plan
}

// loosest is how much of a number rounding may decide, of the largest of its kind. Beyond it nothing of the number is
// right in any evaluation; all that is asked for then is that it is finite where eager evaluation is.
const loosest = 1e-4

// near says whether two numbers agree to 1e-10, scaled by the size of what they belong to, or to the slack where that
// is more. Where one is not finite the other must be the same.
func near(got, want, scale, slack float64) bool {
	if math.IsNaN(got) || math.IsNaN(want) {
		return math.IsNaN(got) && math.IsNaN(want)
	}
	if math.IsInf(got, 0) || math.IsInf(want, 0) {
		return got == want
	}
	return math.Abs(got-want) <= max(1e-10*max(1, scale), slack) || !tells(scale, slack)
}

// tells says whether a comparison with a slack says anything of numbers of a size.
func tells(scale, slack float64) bool { return slack <= loosest*max(1, scale) }

// sensitivity is sixteen times what eager evaluation changes by where the point moves by eight roundings, in the worst
// of four directions: of the value, and of the gradient's elements at most.
func sensitivity(t testing.TB, s lower.Source, x []float64, weight, value float64, grad []float64) (of slack) {
	rng := rand.New(rand.NewPCG(7, uint64(len(x))))
	change := func(a, b float64) float64 {
		if d := 16 * math.Abs(a-b); d-d == 0 {
			return d
		}
		return 0
	}
	for range 4 {
		moved := slices.Clone(x)
		for i := range moved {
			moved[i] *= 1 + 8*0x1p-52*float64(1-2*rng.IntN(2))
		}
		value2, grad2, _ := eager(t, s, moved, weight)
		of.value = max(of.value, change(value, value2))
		for i := range grad {
			of.grad = max(of.grad, change(grad[i], grad2[i]))
		}
	}
	return of
}

// evaluation evaluates a plan at a point.
type evaluation func(x []float64, weight float64, grad []float64, aux [][]float64) (float64, error)

// agrees compares the plan, as the reference runs it, with eager evaluation at points.
func agrees(t testing.TB, s lower.Source, plan *ir.Plan, at [][]float64) {
	t.Helper()
	agree(t, s, plan, at, map[string]evaluation{"reference": reference(t, s, plan)})
}

func reference(t testing.TB, s lower.Source, plan *ir.Plan) evaluation {
	t.Helper()
	m, err := ir.NewMachine(plan, batchOf(t, s))
	require.NoError(t, err)
	return func(x []float64, weight float64, grad []float64, aux [][]float64) (float64, error) {
		return m.Eval(x, weight, grad, aux), nil
	}
}

// agree compares evaluations with eager evaluation at points: to 1e-10, scaled by the largest number of each output.
func agree(t testing.TB, s lower.Source, plan *ir.Plan, at [][]float64, by map[string]evaluation) {
	t.Helper()
	n := agreeWithin(t, s, plan, at, by, sensitivity)
	assert.NotZero(t, n.compared, "rounding decides the numbers of all points: %+v", n)
}

// slack is how far apart evaluations of the value, and of each number of the gradient, may be because of rounding.
type slack struct {
	value, grad float64
	// unsure says that roundings make the value or the gradient finite or not: either may stand where the other is.
	unsureValue, unsureGrad bool
}

// leeway is the slack at a point where eager evaluation gives a value and a gradient.
type leeway func(t testing.TB, s lower.Source, x []float64, weight, value float64, grad []float64) slack

// seen is how many points there were in a comparison.
type seen struct {
	points   int
	finite   int // eager evaluation has finite numbers
	compared int // and the slack leaves something to compare, of the value and of the gradient
}

func (n *seen) add(value float64, grad []float64, s slack) {
	n.points++
	if scale, finite := largest(grad); finite && value-value == 0 {
		n.finite++
		if !s.unsureValue && !s.unsureGrad && tells(math.Abs(value), s.value) && tells(scale, s.grad) {
			n.compared++
		}
	}
}

// largest is the largest size of finite numbers, and whether all are finite.
func largest(of []float64) (scale float64, finite bool) {
	finite = true
	for _, v := range of {
		if v-v == 0 {
			scale = max(scale, math.Abs(v))
		} else {
			finite = false
		}
	}
	return scale, finite
}

func agreeWithin(t testing.TB, s lower.Source, plan *ir.Plan, at [][]float64, by map[string]evaluation,
	slackOf leeway) (n seen) {
	t.Helper()
	grad := make([]float64, s.Dim)
	aux := make([][]float64, len(plan.Outputs))
	for i, o := range plan.Outputs {
		n := 1
		for _, k := range o.Shape {
			n *= k
		}
		aux[i] = make([]float64, n)
	}
	for k, x := range at {
		weight := []float64{1, 0, 0.3}[k%3]
		wantValue, wantGrad, wantAux := eager(t, s, x, weight)
		slack := slackOf(t, s, x, weight, wantValue, wantGrad)
		n.add(wantValue, wantGrad, slack)
		for name, evaluate := range by {
			value, err := evaluate(x, weight, grad, aux)
			require.NoError(t, err)
			where := fmt.Sprintf("%s, point %d, weight %v", name, k, weight)
			compare(t, where+": value", []float64{value}, []float64{wantValue}, slack.value, slack.unsureValue)
			compare(t, where+": gradient", grad, wantGrad, slack.grad, slack.unsureGrad)
			for i := range aux {
				compare(t, where+": "+plan.Outputs[i].Name, aux[i], wantAux[i], 0, false)
			}
		}
	}
	return n
}

// compare compares numbers. Where roundings make them finite or not, those that are not finite are passed over.
func compare(t testing.TB, where string, got, want []float64, slack float64, unsure bool) {
	t.Helper()
	require.Len(t, got, len(want))
	scale, _ := largest(want)
	for i := range want {
		if unsure && (got[i]-got[i] != 0 || want[i]-want[i] != 0) {
			continue
		}
		if !near(got[i], want[i], scale, slack) {
			assert.Failf(t, "not equal", "%s: element %d is %v, eager %v, with a slack of %v", where, i, got[i], want[i], slack)
		}
	}
}
