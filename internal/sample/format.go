package sample

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Above writes v, which is above limit, with decimals digits after the point, and with more where fewer would make it
// look equal to the limit: "R-hat is 1.0104, above 1.01".
func Above(v, limit float64, decimals int) string {
	for ; ; decimals++ {
		s := strconv.FormatFloat(v, 'f', decimals, 64)
		if shown, _ := strconv.ParseFloat(s, 64); shown > limit || decimals >= 17 || math.IsInf(v, 0) {
			return s
		}
	}
}

// Below is [Above] for v below limit.
func Below(v, limit float64, decimals int) string {
	for ; ; decimals++ {
		s := strconv.FormatFloat(v, 'f', decimals, 64)
		if shown, _ := strconv.ParseFloat(s, 64); shown < limit || decimals >= 17 || math.IsInf(v, 0) {
			return s
		}
	}
}

// Align pads columns of equal length, as pandas prints: the first to the left and the others to the right, two spaces
// apart. A minus sign takes one of the two spaces.
func Align(columns [][]string) string {
	width := func(k int, cell string) int {
		n := utf8.RuneCountInString(cell)
		if k > 0 && !strings.HasPrefix(cell, "-") {
			n++
		}
		return n
	}
	columns = slices.Clone(columns)
	columns[0] = slices.Clone(columns[0])
	for i, name := range columns[0] {
		columns[0][i] = visible.Text(name)
	}
	widths := make([]int, len(columns))
	for k, column := range columns {
		for _, cell := range column {
			widths[k] = max(widths[k], width(k, cell))
		}
	}
	var b strings.Builder
	for i := range columns[0] {
		for k, column := range columns {
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(column[i]))
			if k == 0 {
				b.WriteString(column[i] + pad)
			} else {
				b.WriteString(" " + pad + column[i])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
