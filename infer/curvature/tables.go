package curvature

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// tables are sites with many rows, if a datum sees a few of them: see [Options].Tables. A model is given, for each
// datum, a small point that has only these rows, and numbers of rows that fit it.
type tables struct {
	layout *infer.Layout // of the small point
	parts  []part        // in its order, which is that of θ
	picked []*ts.Tensor  // the numbers of the rows of the block at hand, [rows·picks], for each table
}

// part is a site in θ and in the small point.
type part struct {
	whole, small infer.Site
	batch        string // the batch tensor that has the numbers of the rows; "" for a site that is no table
	rows, width  int64  // of the table
	picks        int64  // rows for each datum
	index        int    // in picked
}

// newTables checks the names of sites and batch tensors.
func newTables(p infer.Params, b infer.Batch, names map[string]string) *tables {
	shapes := infer.Shapes{}
	for _, s := range p.Layout.Sites {
		shapes[s.Name] = s.Shape
	}
	picks := map[string]int64{}
	for _, site := range slices.Sorted(maps.Keys(names)) {
		s, ok := p.Layout.Site(site)
		if !ok {
			try(&infer.ModelError{Name: site, What: "site", Have: p.Layout.Names()})
		}
		field := fmt.Sprintf("Tables[%q]", site)
		if len(s.Shape) == 0 {
			badField(field, "a scalar", "the site must have rows: shape [rows, ...]")
		}
		numbers, ok := b[names[site]]
		if !ok {
			try(&infer.ModelError{Name: names[site], What: "batch tensor", Have: slices.Sorted(maps.Keys(b))})
		}
		shape, err := torch.Shape(numbers)
		if err != nil {
			fail("batch tensor %q: %w", names[site], err)
		}
		if dtype, err := torch.DTypeOfTensor(numbers); err != nil || dtype != gotch.Int64 || len(shape) == 0 {
			badField(field, fmt.Sprintf("%q, %v of shape %v", names[site], dtype, shape),
				"it must name a batch tensor of int64 row numbers, of shape [n, ...]")
		}
		picks[site] = 1
		for _, n := range shape[1:] {
			picks[site] *= n
		}
		shapes[site] = append([]int64{max(picks[site], 1)}, s.Shape[1:]...)
	}
	t := &tables{layout: torch.Must(infer.NewLayout(shapes))}
	for i, s := range p.Layout.Sites {
		part := part{whole: s, small: t.layout.Sites[i], batch: names[s.Name]}
		if part.batch != "" {
			part.rows, part.picks, part.index = s.Shape[0], picks[s.Name], len(t.picked)
			part.width = int64(s.Size) / s.Shape[0]
			t.picked = append(t.picked, nil)
		}
		t.parts = append(t.parts, part)
	}
	return t
}

// rows are the small points of a block of data, [rows, d'], and the block with the numbers of rows that fit them.
func (t *tables) rows(flat *ts.Tensor, block infer.Batch, rows int64) (*ts.Tensor, infer.Batch) {
	block = maps.Clone(block)
	renumbered := map[string]*ts.Tensor{}
	columns := make([]*ts.Tensor, len(t.parts))
	for i, p := range t.parts {
		site := flat.MustNarrow(0, int64(p.whole.Offset), int64(p.whole.Size), false)
		if p.batch == "" {
			columns[i] = site.MustUnsqueeze(0, false).MustExpand([]int64{rows, int64(p.whole.Size)}, true, false)
			continue
		}
		numbers := block[p.batch]
		t.picked[p.index] = numbers.MustReshape([]int64{-1}, false)
		columns[i] = site.MustReshape([]int64{p.rows, p.width}, false).MustIndexSelect(0, t.picked[p.index], false).
			MustReshape([]int64{rows, p.picks * p.width}, false)
		if renumbered[p.batch] == nil {
			renumbered[p.batch] = firsts(numbers, p.picks)
		}
	}
	maps.Copy(block, renumbered)
	return ts.MustCat(columns, 1), block
}

// firsts replaces each number by the place, in its datum, where it comes first: a row that is picked twice is one row.
func firsts(numbers *ts.Tensor, picks int64) *ts.Tensor {
	v := torch.Must(torch.ToSlice[int64](numbers))
	for from := int64(0); from < int64(len(v)); from += picks {
		seen := map[int64]int64{}
		for i, number := range v[from : from+picks] {
			first, ok := seen[number]
			if !ok {
				first = int64(i)
				seen[number] = first
			}
			v[from+int64(i)] = first
		}
	}
	return torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(numbers)), gotch.Int64, v, numbers.MustSize()...))
}

// addSquares is addSquares for rows of small points: each square goes to the row of its table.
func (t *tables) addSquares(sum, g *ts.Tensor, rows int64, c *ts.Tensor) {
	for _, p := range t.parts {
		into := sum.MustNarrow(0, int64(p.whole.Offset), int64(p.whole.Size), false)
		from := g.MustNarrow(1, int64(p.small.Offset), int64(p.small.Size), false)
		if p.batch == "" {
			addSquares(into, from, rows, c)
			continue
		}
		squares := from.MustSquare(false)
		if c != nil {
			squares = squares.MustMul(c.MustUnsqueeze(1, false), false)
		}
		into.MustReshape([]int64{p.rows, p.width}, false).
			MustIndexAdd_(0, t.picked[p.index], squares.MustReshape([]int64{rows * p.picks, p.width}, false))
	}
}
