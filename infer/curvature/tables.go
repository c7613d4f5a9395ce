package curvature

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// tables are sites with many rows, if a datum sees a few of them: see [Options].Tables. A model is given, for each
// datum, a small point that has only these rows, and numbers of rows that fit it.
type tables struct {
	layout *infer.Layout  // of the small point
	parts  []part         // in its order, which is that of θ
	picked []torch.Tensor // the numbers of the rows of the block at hand, [rows·picks], for each table
}

// part is a site in θ and in the small point.
type part struct {
	whole, small infer.Site
	batch        string // the batch tensor that has the numbers of the rows; "" for a site that is no table
	rows, width  int    // of the table
	picks        int    // rows for each datum
	index        int    // in picked
}

// newTables checks the names of sites and batch tensors.
func newTables(p infer.Params, b infer.Batch, names map[string]string) *tables {
	shapes := infer.Shapes{}
	for _, s := range p.Layout.Sites {
		shapes[s.Name] = s.Shape
	}
	picks := map[string]int{}
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
		shapes[site] = append([]int{max(picks[site], 1)}, s.Shape[1:]...)
	}
	t := &tables{layout: torch.Must(infer.NewLayout(shapes))}
	for i, s := range p.Layout.Sites {
		part := part{whole: s, small: t.layout.Sites[i], batch: names[s.Name]}
		if part.batch != "" {
			part.rows, part.picks, part.index = s.Shape[0], picks[s.Name], len(t.picked)
			part.width = s.Size / s.Shape[0]
			t.picked = append(t.picked, torch.Tensor{})
		}
		t.parts = append(t.parts, part)
	}
	return t
}

// rows are the small points of a block of data, [rows, d'], and the block with the numbers of rows that fit them.
func (t *tables) rows(flat torch.Tensor, block infer.Batch, rows int) (torch.Tensor, infer.Batch) {
	block = maps.Clone(block)
	renumbered := map[string]torch.Tensor{}
	columns := make([]torch.Tensor, len(t.parts))
	for i, p := range t.parts {
		site := flat.T().MustNarrow(0, int64(p.whole.Offset), int64(p.whole.Size), false)
		if p.batch == "" {
			columns[i] = torch.Of(site.MustUnsqueeze(0, false).MustExpand([]int64{int64(rows),
				int64(p.whole.Size)}, true, false))
			continue
		}
		numbers := block[p.batch]
		t.picked[p.index] = numbers.Reshape(-1)
		columns[i] = torch.Of(site.MustReshape([]int64{int64(p.rows), int64(p.width)}, false).MustIndexSelect(0,
			t.picked[p.index].T(),
			false).
			MustReshape([]int64{int64(rows), int64(p.picks * p.width)}, false))
		if renumbered[p.batch] == (torch.Tensor{}) {
			renumbered[p.batch] = firsts(numbers, p.picks)
		}
	}
	maps.Copy(block, renumbered)
	return torch.Cat(1, columns), block
}

// firsts replaces each number by the place, in its datum, where it comes first: a row that is picked twice is one row.
func firsts(numbers torch.Tensor, picks int) torch.Tensor {
	v := torch.Must(torch.ToSlice[int](numbers))
	for from := 0; from < len(v); from += picks {
		seen := map[int]int{}
		for i, number := range v[from : from+picks] {
			first, ok := seen[number]
			if !ok {
				first = i
				seen[number] = first
			}
			v[from+i] = first
		}
	}
	return torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(numbers)), gotch.Int64, v, numbers.Shape()...))
}

// addSquares is addSquares for rows of small points: each square goes to the row of its table.
func (t *tables) addSquares(sum, g torch.Tensor, rows int, c torch.Tensor) {
	for _, p := range t.parts {
		into := sum.T().MustNarrow(0, int64(p.whole.Offset), int64(p.whole.Size), false)
		from := g.T().MustNarrow(1, int64(p.small.Offset), int64(p.small.Size), false)
		if p.batch == "" {
			addSquares(torch.Of(into), torch.Of(from), rows, c)
			continue
		}
		squares := from.MustSquare(false)
		if c != (torch.Tensor{}) {
			squares = squares.MustMul(c.Unsqueeze(1).T(), false)
		}
		into.MustReshape([]int64{int64(p.rows), int64(p.width)}, false).
			MustIndexAdd_(0, t.picked[p.index].T(), squares.MustReshape([]int64{int64(rows * p.picks), int64(p.width)}, false))
	}
}
