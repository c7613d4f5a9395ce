package draws

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// FormatTable writes rows as a table for people to read: name, mean, sd and the quantiles, with four significant digits
// and aligned columns. Control characters and those that turn the order of text are written out, as \u202e. p are the
// probabilities that the rows were made with, as given to [Draws.Summary]; they only head the columns, as per cent.
// Empty is the default 0.05, 0.5 and 0.95. A row with another number of quantiles is an [ErrSize], a p outside [0, 1]
// an [ErrRange]; other errors are those of w.
func FormatTable(w io.Writer, rows []Row, p []float64) error {
	p, err := probabilities(p)
	if err != nil {
		return err
	}
	head := []string{"name", "mean", "sd"}
	for _, v := range p {
		head = append(head, strconv.FormatFloat(100*v, 'g', 10, 64)+"%") // ten digits hide the rounding of 100*v
	}
	table := [][]string{head}
	for i, row := range rows {
		if len(row.Quantiles) != len(p) {
			return failf(ErrSize, "table: row %d (%q) has %d quantiles, want %d, one per probability", i, row.Name,
				len(row.Quantiles), len(p))
		}
		line := []string{visible.Text(row.Name), short(row.Mean), short(row.SD)}
		for _, q := range row.Quantiles {
			line = append(line, short(q))
		}
		table = append(table, line)
	}
	if _, err := io.WriteString(w, align(table)); err != nil {
		return fmt.Errorf("draws: write table: %w", err)
	}
	return nil
}

// short is a number with four significant digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// align pads the columns of a table to equal widths: the first to the left, the others to the right.
func align(table [][]string) string {
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for k, cell := range line {
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range table {
		for k, cell := range line {
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
			if k == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
