package lower_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// Steps with much work fall into parts, ranges of their rows: loops that add up and loops that do not, and products
// that are long or deep. Rows are left where they do not divide. A model with few data stays as it is.
func TestParts(t *testing.T) {
	columns := func(x, w, y torch.Tensor) torch.Tensor { // a loop over all rows: few columns are no product
		return x.MatMul(w.Slice(0, 0, 5).Unsqueeze(-1)).Squeeze(-1).Mul(y).LogSigmoid().Sum()
	}
	rows := func(x, w, y torch.Tensor) torch.Tensor { // sums along rows, a value for each
		return x.Mul(w.Slice(0, 0, 5)).Sin().LogSumExp(-1).Mul(y).Exp().Add(1).Log().Sum()
	}
	network := func(x, w, y torch.Tensor) torch.Tensor {
		h := x.MatMul(w.Slice(0, 0, 200).Reshape(5, 40)).Tanh()
		return h.MatMul(w.Slice(0, 200, 1800).Reshape(40, 40)).Tanh().Sum(-1).Mul(y).Sum()
	}
	for _, c := range []struct {
		name  string
		of    func(x, w, y torch.Tensor) torch.Tensor
		n     int
		dim   int
		parts int // steps of parts
	}{{"columns", columns, 2003, 5, 0}, {"columns", columns, 200_003, 5, 1}, {"rows", rows, 100_003, 5, 2},
		{"network", network, 8_003, 1800, 3}} {
		t.Run(c.name, func(t *testing.T) {
			s := rowsModel(c.n, c.dim, c.of)
			plan := compile(t, s)
			agrees(t, s, plan, points(2, s.Dim, 0.3, 3))
			found := 0
			for _, step := range plan.Steps {
				if step.Parts > 0 {
					found++
					assert.GreaterOrEqual(t, step.Parts, 8)
				}
			}
			if c.parts == 0 {
				require.Zero(t, found)
			}
			require.GreaterOrEqual(t, found, c.parts)
		})
	}
}

// A linear model on a matrix of many blocks has parts of its blocks.
func TestBlocksInParts(t *testing.T) {
	s := linearModel(5011, 120, func(eta, y torch.Tensor) torch.Tensor { return eta.Mul(y).LogSigmoid().Sum() })
	plan := compile(t, s)
	agrees(t, s, plan, points(2, s.Dim, 0.1, 3))
	var found []ir.Step
	for _, step := range plan.Steps {
		if step.Parts > 0 {
			found = append(found, step)
		}
	}
	require.Len(t, found, 1)
	assert.Greater(t, found[0].Times, found[0].Parts)
}

// rowsModel is a function of n rows of 5 numbers each, a vector w, and a number for each row.
func rowsModel(n int, dim int, of func(x, w, y torch.Tensor) torch.Tensor) lower.Source {
	x, y := points(1, n*5, 0.3, 1)[0], points(1, n, 1, 2)[0]
	return lower.Source{
		Dim: dim,
		Batch: []lower.Named{
			{Name: "x", Tensor: torch.New(x, n, 5).T()}, {Name: "y", Tensor: torch.New(y).T()},
		},
		Evaluate: func(w *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(w torch.Tensor) torch.Tensor {
				return of(torch.Of(b[0]), w, torch.Of(b[1])).Sub(w.Square().Sum().Mul(0.5))
			}, torch.Of(w))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
}
