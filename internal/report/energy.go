package report

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// energyData is the energy plot: densities of the energy and of its changes, packed from 0 to the higher peak.
type energyData struct {
	Low      float64 `json:"lo"`
	High     float64 `json:"hi"`
	Marginal string  `json:"m"`
	Change   string  `json:"t"`
	EBFMI    string  `json:"b"`
}

// energyOf is nil if d has no energies that vary.
func energyOf(d *draws.Draws) *energyData {
	chains := statistic(d, draws.StatEnergy)
	marginal, change := sample.Energies(chains)
	low, high, ok := sample.View(marginal, change)
	if !ok || !(low < high) || len(change) == 0 {
		return nil
	}
	const cells = 120
	m, t := sample.Density(marginal, low, high, cells), sample.Density(change, low, high, cells)
	top := sample.Ceiling([][]float64{m, t})
	var b []string
	for _, e := range chains {
		v := diag.EBFMI(e)
		text := places(v, 2)
		if v < 0.3 {
			text = sample.Below(v, 0.3, 2) + " (low)"
		}
		if b = append(b, text); len(b) == 16 && len(chains) > 16 {
			b = append(b, fmt.Sprintf("and %d more chains", len(chains)-16))
			break
		}
	}
	return &energyData{low, high, pack(m, 0, top), pack(t, 0, top), strings.Join(b, ", ")}
}

// statistic is the trace of a statistic in each chain, nil if d lacks it.
func statistic(d *draws.Draws, stat string) [][]float64 {
	name, ok := d.StatName(stat)
	if !ok {
		return nil
	}
	var traces [][]float64
	for c := range d.Chains() {
		trace, err := d.Stat(name, c)
		if err != nil { // cannot be: the name is one of d's
			return nil
		}
		traces = append(traces, trace)
	}
	return traces
}
