package diag

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Format writes the table as ArviZ prints it: mean, sd, interval ends and standard errors with three decimals (or
// as many as asked for), effective sample sizes with none, R-hat with two, and of each column the zeros dropped
// that end all of its numbers. Intervals are headed by their outer quantiles (94% is hdi_3% to hdi_97%),
// quantiles by theirs (q5%).
//
// Scientific notation takes over where decimals fail: for numbers of 1e8 and more, unless it is longer; for all figures
// of an element whose sd has no digit to show; and for standard errors that have none. The zeros and ones of square
// matrices that move elsewhere, such as a Cholesky factor's above its diagonal, have no line. The error is that of w.
func (t *Table) Format(w io.Writer) error {
	if w == nil {
		return failf(draws.ErrRange, "write table: the writer is nil")
	}
	if _, err := io.WriteString(w, t.String()); err != nil {
		return fmt.Errorf("diag: write table: %w", err)
	}
	return nil
}

// String is the text that [Table.Format] writes.
func (t *Table) String() string {
	rows := slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool { return r.structural })
	names := []string{""}
	for _, row := range rows {
		names = append(names, row.Name)
	}
	columns := [][]string{names}
	column := func(head string, cell func(*Row) string) {
		cells := make([]string, len(rows))
		for i := range rows {
			cells[i] = cell(&rows[i])
		}
		columns = append(columns, append([]string{head}, trimZeros(cells)...))
	}
	value := func(head string, of func(*Row) float64) {
		column(head, func(r *Row) string { return t.value(r, of(r)) })
	}
	value("mean", func(r *Row) float64 { return r.Mean })
	value("sd", func(r *Row) float64 { return r.SD })
	if t.HDIProb > 0 {
		outside := 1 - t.HDIProb
		value("hdi_"+percent(outside/2), func(r *Row) float64 { return r.HDILow })
		value("hdi_"+percent(1-outside/2), func(r *Row) float64 { return r.HDIHigh })
	}
	for k, p := range t.Quantiles {
		value("q"+percent(p), func(r *Row) float64 {
			if k >= len(r.Quantiles) {
				return math.NaN()
			}
			return r.Quantiles[k]
		})
	}
	column("mcse_mean", func(r *Row) string { return t.standardError(r.MCSEMean) })
	column("mcse_sd", func(r *Row) string { return t.standardError(r.MCSESD) })
	column("ess_bulk", func(r *Row) string { return fixed(r.ESSBulk, 0) })
	column("ess_tail", func(r *Row) string { return fixed(r.ESSTail, 0) })
	column("r_hat", func(r *Row) string { return fixed(r.RHat, 2) })
	return sample.Align(columns)
}

// value is a figure on the scale of the draws. In scientific notation it has enough digits to be seen beside the sd.
func (t *Table) value(r *Row, v float64) string {
	size := math.Abs(v)
	scale := r.SD
	if !(scale > 0) {
		scale = size // a constant, or a single draw
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 || size < huge && !t.vanishes(scale) {
		return fixed(v, t.Decimals)
	}
	digits := t.Decimals
	if more := math.Ceil(math.Log10(size / scale)); more > 0 {
		digits = min(digits+int(min(more, 15)), 15)
	}
	text := strconv.FormatFloat(v, 'e', digits, 64)
	if plain := strconv.FormatFloat(v, 'f', t.Decimals, 64); size >= huge && len(plain) <= len(text) {
		return plain // 1e9 with an sd of 1
	}
	return text
}

// standardError is a Monte-Carlo standard error: two digits where decimals show none.
func (t *Table) standardError(v float64) string {
	if math.Abs(v) < huge && !t.vanishes(v) || math.IsNaN(v) || math.IsInf(v, 0) {
		return fixed(v, t.Decimals)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// vanishes says whether a positive number is rounded to 0.
func (t *Table) vanishes(v float64) bool { return v > 0 && v < 0.5*math.Pow(10, -float64(t.Decimals)) }

// MinESS is the effective sample size below which [Diagnose] warns: 100 for each chain, of which 16 count at most.
func (t *Table) MinESS() float64 { return leastESS(100, t.Chains) }

// huge numbers are written in scientific notation.
const huge = 1e8

// percent is 100 p with at most six digits.
func percent(p float64) string { return strconv.FormatFloat(100*p, 'g', 6, 64) + "%" }

// fixed is a number with some decimals, and at least ".0", or in scientific notation where it is huge.
func fixed(v float64, decimals int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case math.Abs(v) >= huge:
		return strconv.FormatFloat(v, 'e', 3, 64)
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
			if point < 0 || strings.Contains(c, "e") {
				continue // NaN, infinite, or scientific
			}
			if numbers++; !strings.HasSuffix(c, "0") || point == len(c)-2 {
				return cells
			}
		}
		if numbers == 0 {
			return cells
		}
		for i, c := range cells {
			if strings.Contains(c, ".") && !strings.Contains(c, "e") {
				cells[i] = c[:len(c)-1]
			}
		}
	}
}
