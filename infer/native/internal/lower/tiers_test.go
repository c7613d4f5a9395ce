package lower_test

import (
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// agreesEverywhere compares the plan with eager evaluation as the reference runs it, as the virtual machine does, and
// as C where there is a compiler.
func agreesEverywhere(t *testing.T, s lower.Source, plan *ir.Plan, at [][]float64) {
	t.Helper()
	agree(t, s, plan, at, everywhere(t, s, plan))
}

// everywhere are the evaluations of agreesEverywhere.
func everywhere(t *testing.T, s lower.Source, plan *ir.Plan) map[string]evaluation {
	t.Helper()
	by := map[string]evaluation{"reference": reference(t, s, plan), "vm": compiled(t, s, plan, native.VM)}
	if _, err := ccompiler.Find(); err == nil {
		by["C"] = compiled(t, s, plan, native.C)
	}
	return by
}

// compiled is a source in a tier. Its outputs are those of the plan.
func compiled(t *testing.T, s lower.Source, plan *ir.Plan, tier native.Tier) evaluation {
	t.Helper()
	n := native.Source{Dim: s.Dim, Batch: map[string]torch.Tensor{}}
	for _, b := range s.Batch {
		n.Batch[b.Name] = torch.Of(b.Tensor)
	}
	n.Evaluate = func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
		aux map[string]torch.Tensor,
		err error) {
		var data []*ts.Tensor
		for _, b := range s.Batch {
			data = append(data, batch[b.Name].T())
		}
		v, g, more, err := s.Evaluate(x.T(), data)
		aux = map[string]torch.Tensor{}
		for _, a := range more {
			aux[a.Name] = torch.Of(a.Tensor)
		}
		return raw.All(v), raw.All(g), aux, err
	}
	f, report, err := native.Compile(n, points(2, s.Dim, 0.5, 1), native.Options{Tier: tier, CacheDir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, tier, report.Tier)
	var order []int
	for _, o := range f.Outputs() {
		order = append(order, slices.IndexFunc(plan.Outputs, func(p ir.Slot) bool { return p.Name == o.Name }))
	}
	return func(x []float64, weight float64, grad []float64, aux [][]float64) (float64, error) {
		sorted := make([][]float64, len(order))
		for i, k := range order {
			sorted[i] = aux[k]
		}
		value := []float64{0}
		err := f.Rows(x, weight, value, grad, sorted)
		return value[0], err
	}
}
