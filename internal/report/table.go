package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// maxRHat is the threshold of the flags of R-hat, as in [diag.Diagnose].
const maxRHat = 1.01

// table is the summary as ArviZ prints it.
type table struct {
	Head []string
	Rows []tableRow
	More int // elements without a row
}

type tableRow struct {
	Name  string
	Plot  bool // there are plots of the element
	Cells []cell
}

type cell struct {
	Text string
	Bad  bool
}

// flagged says whether R-hat or an effective sample size of a row is beyond its threshold, or draws are not finite.
func flagged(r *diag.Row, least float64) bool {
	return !sample.Finite(r.Mean) || r.RHat > maxRHat || r.ESSBulk < least || r.ESSTail < least
}

// tableOf takes the cells from the text of the table, so that they are what other commands print. The worst elements
// are kept where there are too many; rows stay in the order of the model.
func tableOf(t *diag.Table, names []string, order []int, plotted map[int]bool) table {
	lines := strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n")
	out := table{Head: strings.Fields(lines[0])}
	line := map[int]int{} // of each row that has one
	for i := range t.Rows {
		if !t.Rows[i].Structural() {
			line[i] = len(line) + 1
		}
	}
	var keep []int
	left := tableBudget
	for k, i := range order {
		// A row has its name thrice, escaped, and a few tags for each cell.
		if left -= 300 + 20*len(names[i]); left >= 0 || k < 100 && len(names[i]) < 200 {
			keep = append(keep, i)
		}
	}
	slices.Sort(keep)
	out.More = len(order) - len(keep)
	least := t.MinESS()
	for _, i := range keep {
		r := &t.Rows[i]
		fields := strings.Fields(lines[line[i]])
		fields = fields[len(fields)-len(out.Head):]
		row := tableRow{Name: names[i], Plot: plotted[i]}
		for k, text := range fields {
			bad := false
			switch out.Head[k] {
			case "mean":
				bad = !sample.Finite(r.Mean)
			case "ess_bulk":
				bad = r.ESSBulk < least
			case "ess_tail":
				bad = r.ESSTail < least
			case "r_hat":
				bad = r.RHat > maxRHat
			}
			row.Cells = append(row.Cells, cell{brief(text), bad})
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// brief shortens the numbers of more than 14 characters, such as those of 1e300.
func brief(text string) string {
	if len(text) <= 14 {
		return text
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return short(v)
}

// forestRows is how many elements the plot of intervals has room for.
const forestRows = 60

// forestData is the plot of intervals: quantiles of the draws of all chains at 2.5, 25, 50, 75 and 97.5 %, in the order
// of the model.
type forestData struct {
	Names []string     `json:"n"`
	Q     [][5]float64 `json:"q"` // places from Low to High, from 0 to 1
	Low   float64      `json:"lo"`
	High  float64      `json:"hi"`
	More  int          `json:"m"` // elements without room
}

// forestOf is nil where no element has draws that are finite and vary.
func forestOf(d *draws.Draws, names []string, rows []diag.Row) *forestData {
	f := &forestData{Low: math.Inf(1), High: math.Inf(-1)}
	for i, name := range names {
		if rows[i].Structural() {
			continue
		}
		x := d.Pooled(i)
		slices.Sort(x)
		if len(x) == 0 || !sample.Finite(x[0]) || !sample.Finite(x[len(x)-1]) {
			continue
		}
		if len(f.Names) == forestRows {
			f.More++
			continue
		}
		var q [5]float64
		for k, p := range [5]float64{0.025, 0.25, 0.5, 0.75, 0.975} {
			q[k] = sample.Quantile(x, p)
		}
		f.Names, f.Q = append(f.Names, name), append(f.Q, q)
		f.Low, f.High = min(f.Low, q[0]), max(f.High, q[4])
	}
	if !(f.Low < f.High) || math.IsInf(f.High-f.Low, 0) {
		return nil
	}
	for i := range f.Q {
		for k, v := range f.Q[i] {
			f.Q[i][k] = math.Round((v-f.Low)/(f.High-f.Low)*1e4) / 1e4
		}
	}
	return f
}
