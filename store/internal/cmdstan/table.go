package cmdstan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
)

// tableStats are the statistics that a table may have between chain, draw and the first site.
var tableStats = []string{draws.StatLP, draws.StatGradNorm, draws.StatHeld, draws.StatAccept, draws.StatStepSize,
	draws.StatTreeDepth, draws.StatLeapfrog, draws.StatDivergent, draws.StatEnergy, draws.StatMaxDepth,
	draws.StatTemperature, draws.StatNELBO}

// IsTable says whether the first bytes of a file are those of a table of all chains, chain,draw,lp,...,"w[0,1]", as
// earlier versions of Kelvin wrote it.
func IsTable(head []byte) bool { return bytes.HasPrefix(head, []byte("chain,draw,")) }

// mostChains bounds the chain numbers of a table, so that a wrong one does not claim all memory.
const mostChains = 1 << 20

// ReadTable reads such a table: chains and draws count from 0, the draws of a chain come in order, and the elements of
// a site are named by their indices from 0.
func ReadTable(path string, limits content.Limits) (*Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, content.During("read CSV", err)
	}
	defer f.Close()
	t := &table{file: path, budget: content.NewBudget(limits)}
	t.in = csv.NewReader(t.budget.Reader(f))
	t.in.ReuseRecord = true
	for err = t.head(); err == nil; {
		err = t.row()
	}
	if err != io.EOF {
		return nil, err
	}
	d, err := draws.New(t.sites, t.stats, max(1, len(t.chains)))
	if err != nil {
		return nil, t.wrong(-1, err)
	}
	for c, rows := range t.chains {
		for _, row := range rows {
			if err := d.AppendChain(c, row[len(t.stats):], row[:len(t.stats)]); err != nil {
				return nil, t.wrong(-1, err)
			}
		}
	}
	return &Run{Posterior: d, Attrs: map[string]any{"inference_library": "kelvin"}}, nil
}

// table is a table that is read.
type table struct {
	file   string
	in     *csv.Reader
	budget *content.Budget
	sites  []draws.Site
	stats  []string
	chains [][][]float64 // statistics and elements of each draw
	count  int64
}

// next is the next line.
func (t *table) next() ([]string, error) {
	record, err := t.in.Read()
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax):
		return nil, &content.ParseError{File: t.file, Line: syntax.Line,
			Err: content.Because(content.ErrFormat, "%v", syntax.Err)}
	case err != nil && err != io.EOF:
		return nil, content.During("read "+t.file, err)
	}
	return record, err
}

// wrong is an error at a column of the line, or at none.
func (t *table) wrong(column int, err error) error {
	e := &content.ParseError{File: t.file, Column: column + 1, Err: err}
	if column >= 0 {
		e.Line, _ = t.in.FieldPos(column)
	}
	return e
}

// head reads the names: chain, draw, statistics, elements of sites.
func (t *table) head() error {
	header, err := t.next()
	if err != nil {
		return err
	}
	if err := t.budget.Named(len(header)); err != nil {
		return t.wrong(-1, err)
	}
	first := 2
	for first < len(header) && slices.Contains(tableStats, header[first]) {
		first++
	}
	t.stats = slices.Clone(header[2:first])
	if t.sites, err = tableSites(header[first:]); err != nil {
		return t.wrong(-1, err)
	}
	return nil
}

// row reads a draw; the end of the file is io.EOF.
func (t *table) row() error {
	record, err := t.next()
	if err != nil {
		return err
	}
	t.count += int64(len(record))
	if err := t.budget.Count(t.count); err != nil {
		return t.wrong(-1, err)
	}
	c, err := strconv.Atoi(record[0])
	if err != nil || c < 0 || c >= mostChains {
		return t.wrong(0, content.Because(content.ErrFormat, "chain %q: want an integer from 0 to %d", record[0],
			mostChains-1))
	}
	if c >= len(t.chains) {
		t.chains = append(t.chains, make([][][]float64, c+1-len(t.chains))...)
	}
	if want := len(t.chains[c]); record[1] != strconv.Itoa(want) {
		return t.wrong(1, content.Because(content.ErrFormat, "draw %q of chain %d: want %d, the next one", record[1], c,
			want))
	}
	row := make([]float64, len(record)-2)
	for k, text := range record[2:] {
		if row[k], err = strconv.ParseFloat(text, 64); err != nil {
			return t.wrong(2+k, content.NotNumber(text, err))
		}
	}
	t.chains[c] = append(t.chains[c], row)
	return nil
}

// tableSites are the sites of elements such as mu, "w[0,0]", "w[0,1]", in row-major order.
func tableSites(names []string) ([]draws.Site, error) {
	var l content.Layout
	for _, text := range names {
		name, inside, ok := strings.Cut(text, "[")
		shape := []int64{}
		if ok {
			for _, part := range strings.Split(strings.TrimSuffix(inside, "]"), ",") {
				i, err := strconv.ParseInt(part, 10, 32)
				if err != nil || i < 0 {
					return nil, content.Because(content.ErrFormat, "the column %q has no indices such as w[0,1]", text)
				}
				shape = append(shape, i+1)
			}
		}
		if k := len(l.Sites) - 1; k >= 0 && l.Sites[k].Name == name {
			l.Sites[k].Shape = shape // the last element has the largest indices
			continue
		}
		l.Sites = append(l.Sites, content.LayoutSite{Name: name, Shape: shape})
	}
	sites := l.Placed()
	d, err := draws.New(sites, nil, 1)
	if err != nil {
		return nil, content.Because(content.ErrFormat, "%v", err)
	}
	if !slices.Equal(d.Names(), names) {
		return nil, content.Because(content.ErrFormat, "the columns %q are not the elements of sites in their order", names)
	}
	return sites, nil
}
