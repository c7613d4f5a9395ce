package curvature_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A classifier of texts of four words out of nine, with two tables: what a word means, and how much it weighs; words
// come twice in a text.
func wordsProblem(t testing.TB) (infer.Params, infer.Batch, curvature.Forward) {
	l := layoutOf(t, infer.Shapes{"a": {3, 2}, "meaning": {9, 3}, "weight": {9}, "z": {2}})
	p := pointOf(t, l, numbers(l.Dim(), 0.4)...)
	words := torch.New([]int{0, 3, 3, 8, 1, 1, 1, 1, 2, 7, 5, 2, 4, 0, 4, 0, 6, 2, 3, 6}, 5, 4)
	b := infer.Batch{"words": words, "y": torch.New([]int{0, 1, 1, 0, 1})}
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		x := ts.MustEmbedding(p.Get("meaning").T(), b.Get("words").T(), -1, false, false)
		w := ts.MustEmbedding(p.Get("weight").Unsqueeze(-1).T(), b.Get("words").T(), -1, false, false)
		h := x.MustMul(w.MustTanh(false), false).MustMatmul(p.Get("a").T(), false).MustTanh(false)
		return torch.Of(h).Sum(1).Add(p.Get("z"))
	}
	return p, b, forward
}

// With tables the diagonals are what they are without, whatever the blocks: rows that a datum does not see have
// gradient 0, and those that it sees twice count once, squared.
func TestTablesChangeNothing(t *testing.T) {
	p, b, forward := wordsProblem(t)
	outer := softmaxes("", 2).outer
	f := curvature.Likelihood(forward, outer)
	tables := map[string]string{"meaning": "words", "weight": "words"}
	wantFisher := must1(t)(curvature.FisherDiag(f, p, b, curvature.Options{}))
	wantGGN := must1(t)(curvature.GGNDiag(forward, outer, p, b, curvature.Options{}))
	for _, some := range []map[string]string{tables, {"meaning": "words"}} {
		if len(some) == 1 {
			// The other table needs the numbers as they are: a batch tensor of its own.
			twin := infer.Batch{"words": b["words"], "same": b["words"], "y": b["y"]}
			other := func(p infer.Params, b infer.Batch) torch.Tensor {
				x := ts.MustEmbedding(p.Get("meaning").T(), b.Get("words").T(), -1, false, false)
				w := ts.MustEmbedding(p.Get("weight").Unsqueeze(-1).T(), b.Get("same").T(), -1, false, false)
				h := x.MustMul(w.MustTanh(false), false).MustMatmul(p.Get("a").T(), false).MustTanh(false)
				return torch.Of(h).Sum(1).Add(p.Get("z"))
			}
			got := must1(t)(curvature.FisherDiag(curvature.Likelihood(other, outer), p, twin, curvature.Options{Tables: some}))
			near(t, wantFisher, got, 1e-14, "FisherDiag, one table")
			continue
		}
		for _, memory := range []int{0, 64, 2000} {
			o := curvature.Options{Tables: some, Memory: memory}
			near(t, wantFisher, must1(t)(curvature.FisherDiag(f, p, b, o)), 1e-14, "FisherDiag")
			near(t, wantGGN, must1(t)(curvature.GGNDiag(forward, outer, p, b, o)), 1e-14, "GGNDiag")
		}
	}
}

// must1 are the numbers of a result that must be.
func must1(t testing.TB) func(torch.Tensor, error) []float64 {
	return func(x torch.Tensor, err error) []float64 {
		t.Helper()
		require.NoError(t, err)
		return floats(x)
	}
}

func TestTablesErrors(t *testing.T) {
	p, b, forward := wordsProblem(t)
	f := curvature.Likelihood(forward, softmaxes("", 2).outer)
	for _, c := range []struct {
		tables map[string]string
		text   string
	}{
		{map[string]string{"meanings": "words"},
			`curvature.FisherDiag: the model asked for site "meanings", which does not exist; ` +
				`there are: ["a" "meaning" "weight" "z"]`},
		{map[string]string{"meaning": "word"},
			`curvature.FisherDiag: the model asked for batch tensor "word", which does not exist; there are: ["words" "y"]`},
		{map[string]string{"meaning": "x"},
			`curvature.FisherDiag: curvature.Options: Tables["meaning"] is "x", Double of shape [5 4]: ` +
				"it must name a batch tensor of int64 row numbers, of shape [n, ...]"},
	} {
		data := b
		if c.tables["meaning"] == "x" {
			data = infer.Batch{"words": b["words"], "y": b["y"], "x": vec(numbers(20, 0), 5, 4)}
		}
		_, err := curvature.FisherDiag(f, p, data, curvature.Options{Tables: c.tables})
		require.EqualError(t, err, c.text)
	}
	_, err := curvature.Fisher(f, p, b, curvature.Options{Tables: map[string]string{"meaning": "words"}})
	require.EqualError(t, err,
		"curvature.Fisher: curvature.Options: Tables is map[meaning:words]: it is for FisherDiag and GGNDiag")
}
