package diag

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Format writes the table as ArviZ prints it: mean, sd, interval ends and standard errors with three decimals (or as many
// as asked for), effective sample sizes with none, R-hat with two, and of each column the zeros dropped that end all of
// its numbers. Intervals are headed by their outer quantiles (94% is hdi_3% to hdi_97%), quantiles by theirs (q5%). The
// error is that of w.
func (t *Table) Format(w io.Writer) error {
	if _, err := io.WriteString(w, t.String()); err != nil {
		return fmt.Errorf("diag: write table: %w", err)
	}
	return nil
}

// String is the text that [Table.Format] writes.
func (t *Table) String() string {
	names := []string{""}
	for _, row := range t.Rows {
		names = append(names, row.Name)
	}
	columns := [][]string{names}
	column := func(head string, decimals int, of func(*Row) float64) {
		cells := make([]string, len(t.Rows))
		for i := range t.Rows {
			cells[i] = fixed(of(&t.Rows[i]), decimals)
		}
		columns = append(columns, append([]string{head}, trimZeros(cells)...))
	}
	column("mean", t.Decimals, func(r *Row) float64 { return r.Mean })
	column("sd", t.Decimals, func(r *Row) float64 { return r.SD })
	if t.HDIProb > 0 {
		outside := 1 - t.HDIProb
		column("hdi_"+percent(outside/2), t.Decimals, func(r *Row) float64 { return r.HDILow })
		column("hdi_"+percent(1-outside/2), t.Decimals, func(r *Row) float64 { return r.HDIHigh })
	}
	for k, p := range t.Quantiles {
		column("q"+percent(p), t.Decimals, func(r *Row) float64 {
			if k >= len(r.Quantiles) {
				return math.NaN()
			}
			return r.Quantiles[k]
		})
	}
	column("mcse_mean", t.Decimals, func(r *Row) float64 { return r.MCSEMean })
	column("mcse_sd", t.Decimals, func(r *Row) float64 { return r.MCSESD })
	column("ess_bulk", 0, func(r *Row) float64 { return r.ESSBulk })
	column("ess_tail", 0, func(r *Row) float64 { return r.ESSTail })
	column("r_hat", 2, func(r *Row) float64 { return r.RHat })
	return sample.Align(columns)
}

// percent is 100 p with at most six digits.
func percent(p float64) string { return strconv.FormatFloat(100*p, 'g', 6, 64) + "%" }

// fixed is a number with some decimals, and at least ".0".
func fixed(v float64, decimals int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	if decimals == 0 {
		s += ".0"
	}
	return s
}

// trimZeros drops the zeros that end all numbers of a column, but for one after the point.
func trimZeros(cells []string) []string {
	for {
		numbers := 0
		for _, c := range cells {
			point := strings.IndexByte(c, '.')
			if point < 0 {
				continue // NaN or infinite
			}
			if numbers++; !strings.HasSuffix(c, "0") || point == len(c)-2 {
				return cells
			}
		}
		if numbers == 0 {
			return cells
		}
		for i, c := range cells {
			if strings.Contains(c, ".") {
				cells[i] = c[:len(c)-1]
			}
		}
	}
}
