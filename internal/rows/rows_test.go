package rows_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

func vec(v ...float64) *ts.Tensor { return torch.New(v).T() }

// Tensors go together by their number of rows, and a batch has all of them where one tensor has all.
func TestRows(t *testing.T) {
	table := vec(1, 2, 3)
	found := rows.Of(infer.Batch{"y": torch.Of(vec(1, 2, 3, 4)), "x": torch.Of(vec(4, 3, 2, 1)), "table": torch.Of(table),
		"one": torch.Of(vec(1)), "nil": torch.Tensor{},
		"scalar": torch.Scalar(2)})
	require.Equal(t, []rows.Rows{{Size: 3, Names: []string{"table"}}, {Size: 4, Names: []string{"x", "y"}}}, found)
	part := infer.Batch{"y": torch.Of(vec(1, 2)), "x": torch.Of(vec(1, 2)), "table": torch.Of(table)}
	require.EqualValues(t, 3, found[0].In(part))
	require.EqualValues(t, 2, found[1].In(part))
	require.EqualValues(t, 4, found[1].In(infer.Batch{"y": torch.Of(vec(1, 2)), "x": torch.Of(vec(1, 2, 3, 4))}))
	require.EqualValues(t, 0, found[1].In(nil))
}

// A sum grows with rows that come twice; a mean, a constant, and a sum over other rows do not. What is not known on
// those is told by fewer rows, and what is never known by the number of its values.
func TestTotals(t *testing.T) {
	batch := infer.Batch{"y": torch.Of(vec(0, 1, 5, 0, 2, 3, 0)), "table": torch.Of(vec(1, 2))}
	r := rows.Of(batch)[1]
	term := func(x torch.Tensor) rows.Term { return rows.TermOf(x.T()) }
	on := func(b infer.Batch) map[string]rows.Term {
		y := b["y"]
		out := map[string]rows.Term{"sum": term(y.Sum()), "vector": term(y), "mean": term(y.Mean()),
			"constant": term(torch.Of(vec(1, 2))), "table": term(b["table"].Sum()),
			"never": term(y.Mul(math.NaN())), "never, one": term(y.Sum().Mul(math.NaN()))}
		if y.Shape()[0] < 6 {
			out["not twice"] = term(y.Sum())
		}
		return out
	}
	names := []string{"sum", "vector", "mean", "constant", "table", "never", "never, one", "not twice", "absent"}
	totals, means, err := r.Totals(batch, names, 1, func(_ int, half, other infer.Batch) (before,
		after map[string]rows.Term) {
		require.EqualValues(t, 3, r.In(half))
		return on(half), on(other)
	})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"sum", "vector", "never", "not twice"}, totals)
	require.Equal(t, []string{"mean"}, means)
}
