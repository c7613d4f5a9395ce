package draws

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// mostChains bounds the chain numbers of a file, so that a wrong one does not claim all memory.
const mostChains = 1 << 20

// WriteCSV writes all draws as comma-separated values, with a header:
//
//	chain,draw,<statistics...>,<elements...>
//	0,0,-7.25,0.5,1.5
//
// Elements are named as in [Draws.Names]; a name with a comma, such as w[0,1], is quoted. Chains and draws count
// from 0, chain by chain. Numbers have up to 17 digits, so that [ReadCSV] gives back the same float64, and NaN,
// +Inf and -Inf are written so. Chains without draws at the end of the container leave no trace in the file. Errors
// are those of w.
func (d *Draws) WriteCSV(w io.Writer) error {
	if w == nil {
		return failf(ErrRange, "write CSV: the writer is nil")
	}
	out := csv.NewWriter(w)
	record := slices.Concat([]string{"chain", "draw"}, d.stats, d.Names())
	if err := out.Write(record); err != nil {
		return fmt.Errorf("draws: write CSV: header: %w", err)
	}
	width := d.width()
	for c := range d.chains {
		record[0] = strconv.Itoa(c)
		for i := range d.chains[c].n {
			record[1] = strconv.Itoa(i)
			row := d.chains[c].rows[i*width : (i+1)*width]
			for k, v := range row[d.dim:] {
				record[2+k] = formatFloat(v)
			}
			for k, v := range row[:d.dim] {
				record[2+len(d.stats)+k] = formatFloat(v)
			}
			if err := out.Write(record); err != nil {
				return fmt.Errorf("draws: write CSV: chain %d, draw %d: %w", c, i, err)
			}
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("draws: write CSV: %w", err)
	}
	return nil
}

// formatFloat is %.17g.
func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', 17, 64) }

// ReadCSV reads what [Draws.WriteCSV] has written. sites is the layout of the draws, as for [New]: the columns of the
// header must be chain, draw, then any statistics, then exactly the elements of sites; the columns between draw and the
// elements are the statistics. Rows of several chains may be mixed, but the draws of each chain must come in order. A
// header that does not fit is an [ErrLayout]; a value that does not is an [ErrRange], or the error of package csv or
// strconv. They name the line and the column. The container has as many chains as the highest chain number asks for, at
// least one and at most 1048576.
func ReadCSV(r io.Reader, sites []Site) (*Draws, error) {
	if r == nil {
		return nil, failf(ErrRange, "read CSV: the reader is nil")
	}
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		if err == io.EOF {
			return nil, failf(ErrLayout, "read CSV: the file is empty, want a header")
		}
		return nil, fmt.Errorf("draws: read CSV: header: %w", err)
	}
	d, err := fromHeader(header, sites)
	if err != nil {
		return nil, err
	}
	x, stats := make([]float64, d.dim), make([]float64, len(d.stats))
	for {
		record, err := in.Read()
		if err == io.EOF {
			return d, nil
		}
		if err != nil {
			return nil, fmt.Errorf("draws: read CSV: %w", err)
		}
		line, _ := in.FieldPos(0)
		c, err := d.place(line, record[0], record[1])
		if err != nil {
			return nil, err
		}
		for k, text := range record[2:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("draws: read CSV: line %d, column %d: want a number: %w", line, 3+k, err)
			}
			if k < len(stats) {
				stats[k] = v
			} else {
				x[k-len(stats)] = v
			}
		}
		d.chains[c].add(x, stats)
	}
}

// fromHeader makes the container that a header describes.
func fromHeader(header []string, sites []Site) (*Draws, error) {
	dim, err := checkSites(sites)
	if err != nil {
		return nil, err
	}
	last := len(header) - dim // where the elements begin
	if last < 2 {
		return nil, failf(ErrLayout, "read CSV: the header has %d columns, want chain, draw and the %d elements of the sites",
			len(header), dim)
	}
	for i, want := range []string{"chain", "draw"} {
		if header[i] != want {
			return nil, failf(ErrLayout, "read CSV: column %d is %q, want %q", i+1, header[i], want)
		}
	}
	d, err := New(sites, header[2:last], 1)
	if err != nil {
		return nil, fmt.Errorf("draws: read CSV: header: %w", err)
	}
	for i, want := range d.Names() {
		if header[last+i] != want {
			return nil, failf(ErrLayout, "read CSV: column %d is %q, want %q, as the sites are laid out", last+i+1,
				header[last+i], want)
		}
	}
	return d, nil
}

// place checks the chain and the draw of a line against what has been read, and makes the chain if it is new.
func (d *Draws) place(line int, chainText, drawText string) (int, error) {
	c, err := strconv.Atoi(chainText)
	if err != nil || c < 0 || c >= mostChains {
		return 0, failf(ErrRange, "read CSV: line %d: chain %q, want an integer from 0 to %d", line, chainText,
			mostChains-1)
	}
	if c >= len(d.chains) {
		d.chains = append(d.chains, make([]chain, c+1-len(d.chains))...)
	}
	if want := d.chains[c].n; drawText != strconv.Itoa(want) {
		return 0, failf(ErrRange, "read CSV: line %d: draw %q of chain %d, want %d, the next one", line, drawText, c,
			want)
	}
	return c, nil
}
