package store

import (
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// tablePrefix begins the table of all chains that Kelvin wrote before each chain had a file:
//
//	chain,draw,lp,divergent,mu,"w[0,0]","w[0,1]"
//
// Chains, draws and indices count from 0, the draws of a chain come in order, and statistics stand before the sites.
const tablePrefix = "chain,draw,"

// tableStats are the statistics of such a table; chain and draw are read as two more.
var tableStats = append([]string{"chain", "draw"}, draws.StatGradNorm, draws.StatHeld, draws.StatMaxDepth,
	draws.StatTemperature, draws.StatNELBO, draws.StatLP, draws.StatAccept, draws.StatStepSize, draws.StatTreeDepth,
	draws.StatLeapfrog, draws.StatDivergent, draws.StatEnergy)

// headerOf are the names of the columns; those of a table of all chains may be quoted.
func headerOf(text string) (header []string, table bool, err error) {
	if strings.HasPrefix(text, tablePrefix) {
		if header, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
			err = because(ErrFormat, "%v", errors.Unwrap(err))
		}
		return header, true, err
	}
	header = strings.Split(text, ",")
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	return header, false, nil
}

// tableColumn reads a name such as mu or w[0,1].
func tableColumn(text string) csvColumn {
	name, inside, ok := strings.Cut(text, "[")
	if !ok {
		return csvColumn{name: text}
	}
	var index []int
	for _, part := range strings.Split(strings.TrimSuffix(inside, "]"), ",") {
		i, err := strconv.ParseInt(part, 10, 32)
		if err != nil || i < 0 {
			return csvColumn{name: text}
		}
		index = append(index, int(i))
	}
	return csvColumn{name, index}
}

// split divides a table of all chains into its chains.
func (c *csvChain) split() ([]*csvChain, error) {
	at := c.width - len(c.layout.Stats) // where the chain stands, and the draw behind it
	c.layout.Stats = append([]string(nil), c.layout.Stats[2:]...)
	var chains []*csvChain
	add := func() {
		chains = append(chains, &csvChain{file: c.file, own: &c.layout, layout: c.layout, width: c.width - 2})
	}
	add()
	chains[0].notes = c.notes
	for i, line := range c.lines {
		row := c.rows[i*c.width : (i+1)*c.width]
		k := int(row[at])
		if k == len(chains) {
			add()
		}
		if k < 0 || k >= len(chains) || float64(k) != row[at] || row[at+1] != float64(chains[k].n) {
			return nil, &ParseError{File: c.file, Line: line, Err: because(ErrFormat,
				"draw %v of chain %v does not follow: chains and the draws of each count from 0", row[at+1], row[at])}
		}
		chains[k].rows = append(chains[k].rows, slices.Concat(row[:at], row[at+2:])...)
		chains[k].n++
	}
	return chains, nil
}
