package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// columnsOf are the names of the columns for a layout, and where each finds its number in a draw's flat vector followed
// by its statistics.
//
// Statistics come first: lp__, accept_stat__, stepsize__, treedepth__, n_leapfrog__, divergent__, energy__, as far as
// they are there, then others with __ behind their name, by which CmdStan's readers know a statistic. Sites follow, as
// theta, theta.1, theta.2.1: indices count from 1 and, as CmdStan writes every container, the first runs fastest
// (column-major). Names that CmdStan could not have, or that readers take for a dimension, are changed; the layout in
// the file's comments has the true ones.
func columnsOf(sites []draws.Site, stats []string) (names []string, source []int) {
	dim := 0
	for _, s := range sites {
		dim += s.Size
	}
	d, err := draws.New(nil, stats, 1)
	known := map[string]bool{}
	for _, stat := range statOrder {
		if err != nil {
			break
		}
		if name, ok := d.StatName(stat); ok {
			names, source = append(names, cmdStanStat[stat]), append(source, dim+slices.Index(stats, name))
			known[name] = true
		}
	}
	var others []string
	for k, name := range stats {
		if !known[name] {
			others, source = append(others, strings.TrimSuffix(name, "__")), append(source, dim+k)
		}
	}
	for _, name := range identifiers(others, wordName, "lp", "accept_stat", "stepsize", "treedepth",
		"n_leapfrog", "divergent", "energy") {
		names = append(names, name+"__")
	}

	bases := make([]string, len(sites))
	for i, s := range sites {
		bases[i] = s.Name
		if strings.HasSuffix(s.Name, "__") {
			bases[i] += "p"
		}
	}
	for i, base := range identifiers(bases, wordName, "chain", "draw") {
		s := sites[i]
		index := make([]int, len(s.Shape))
		for range s.Size {
			name, at := base, 0
			for k, j := range index {
				name += "." + strconv.FormatInt(int64(j+1), 10)
				at = at*s.Shape[k] + j
			}
			names, source = append(names, name), append(source, s.Offset+at)
			for k := range index {
				if index[k]++; index[k] < s.Shape[k] {
					break
				}
				index[k] = 0
			}
		}
	}
	return names, source
}

// csvColumn is a parsed name: theta.2.1 is theta with the indices 1 and 0.
type csvColumn struct {
	name  string
	index []int
}

// parseColumn reads a name of CmdStan. Elements of tuples (x:1.2) and of complex numbers (z.1.real) are sites of their
// own: x:1, z.real.
func parseColumn(text string) csvColumn {
	head, tail := "", text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		head, tail = text[:i+1], text[i+1:]
	}
	parts := strings.Split(tail, ".")
	name, rest := head+parts[0], parts[1:]
	if n := len(rest); n > 0 && (rest[n-1] == "real" || rest[n-1] == "imag") {
		name, rest = name+"."+rest[n-1], rest[:n-1]
	}
	index := make([]int, len(rest))
	for k, part := range rest {
		i, err := strconv.ParseInt(part, 10, 32)
		if err != nil || i < 1 {
			return csvColumn{name: text}
		}
		index[k] = int(i - 1)
	}
	return csvColumn{name, index}
}

// parseColumns finds the sites and the statistics that a header of CmdStan, or of a table of all chains, tells of.
// source says where each column belongs, as in [columnsOf]. An error names the column, which counts from 0.
func parseColumns(header []string, table bool) (l layout, source []int, at int, err error) {
	columns := make([]csvColumn, len(header))
	count, seen := map[string]int{}, map[string]bool{}
	for i, text := range header {
		if text == "" {
			return l, nil, i, because(ErrFormat, "the column has no name")
		}
		if seen[text] {
			return l, nil, i, because(ErrFormat, "there are two columns of this name")
		}
		seen[text] = true
		switch {
		case table && len(count) == 0 && slices.Contains(tableStats, text), !table && strings.HasSuffix(text, "__"):
			l.Stats = append(l.Stats, text)
			continue
		case table:
			columns[i] = tableColumn(text)
		default:
			columns[i] = parseColumn(text)
		}
		count[columns[i].name]++
	}
	place := map[string]int{}
	for i, c := range columns {
		if c.name == "" {
			continue
		}
		k, ok := place[c.name]
		if !ok {
			k = len(l.Sites)
			place[c.name] = k
			l.Sites = append(l.Sites, layoutSite{Name: c.name, Shape: make([]int, len(c.index))})
		}
		shape := l.Sites[k].Shape
		if len(shape) != len(c.index) {
			return l, nil, i, because(ErrFormat, "the column has %d indices, the first of its name has %d",
				len(c.index), len(shape))
		}
		for j, x := range c.index {
			shape[j] = max(shape[j], x+1)
		}
	}
	for i, c := range columns {
		if c.name == "" {
			continue
		}
		shape := l.Sites[place[c.name]].Shape
		if n, ok := product(shape); !ok || n != count[c.name] {
			return l, nil, i, because(ErrFormat, "%s has %d columns, but its indices reach %v",
				c.name, count[c.name], shape)
		}
	}
	sites := l.Placed()
	l.Stats = kelvinStats(l.Stats)
	if _, err := draws.New(sites, l.Stats, 1); err != nil {
		return l, nil, -1, because(ErrFormat, "%v", err)
	}
	return l, sourcesOf(columns, sites, place), 0, nil
}

// sourcesOf says where each column belongs: in the site of its name, or with the statistics behind all sites.
func sourcesOf(columns []csvColumn, sites []draws.Site, place map[string]int) []int {
	stat := 0
	for _, s := range sites {
		stat += s.Size
	}
	source := make([]int, len(columns))
	for i, c := range columns {
		if c.name == "" {
			source[i] = stat
			stat++
			continue
		}
		s := sites[place[c.name]]
		at := 0
		for j, x := range c.index {
			at = at*s.Shape[j] + x
		}
		source[i] = s.Offset + at
	}
	return source
}
