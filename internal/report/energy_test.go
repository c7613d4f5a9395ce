package report

import (
	"slices"
	"testing"
)

func TestEnergyPlot(t *testing.T) {
	e := energyOf(funnel(t, 4, 500))
	if e == nil {
		t.Fatal("there is no energy plot")
	}
	if m, c := unpack(e.Marginal), unpack(e.Change); len(m) != 120 || len(c) != 120 || max(slices.Max(m),
		slices.Max(c)) != 1 {
		t.Errorf("densities of %d and %d cells with peak %v", len(m), len(c), max(slices.Max(m), slices.Max(c)))
	}
	if e := energyOf(plain(t, 2, 50, 1)); e != nil {
		t.Errorf("draws without energies have the energy plot %v", e)
	}
}
