package store

import (
	"math"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
)

// kind is the type of a variable's numbers in JSON and Zarr.
type kind int

const (
	float kind = iota
	integer
	boolean
)

// variable is an array of a group. Sampled ones have the dimensions chain and draw first.
type variable struct {
	name  string
	kind  kind
	shape []int64
	dims  []string
	data  []float64                       // row-major; nil where at is set
	at    func(chain, draw int) []float64 // for writing: the numbers of one draw
	text  []string                        // instead of data, for labels
}

func (v *variable) size() int {
	n, ok := product(v.shape)
	if !ok {
		return -1
	}
	return n
}

func defaultDims(name string, n int) []string {
	dims := make([]string, n)
	for k := range dims {
		dims[k] = name + "_dim_" + strconv.Itoa(k)
	}
	return dims
}

// siteVariables are the names of variables for sites: none is that of a dimension.
func siteVariables(sites []draws.Site, fit func(string) string) []string {
	names, taken := make([]string, len(sites)), []string{"chain", "draw"}
	for i, s := range sites {
		names[i] = s.Name
		taken = append(taken, defaultDims(s.Name, len(s.Shape))...)
	}
	return identifiers(names, fit, taken...)
}

// statVariables are ArviZ's names of the statistics.
func statVariables(stats []string, fit func(string) string) []string {
	names := slices.Clone(stats)
	if d, err := draws.New(nil, stats, 1); err == nil {
		for _, stat := range statOrder {
			name, ok := d.StatName(stat)
			if other := arvizStat[stat]; ok && (name == other || !slices.Contains(stats, other)) {
				names[slices.Index(stats, name)] = other
			}
		}
	}
	return identifiers(names, fit, "chain", "draw")
}

// statKind is the type that ArviZ has for a statistic, if all its values are of it.
func statKind(name string, traces [][]float64) kind {
	k := float
	switch name {
	case arvizStat[draws.StatDivergent]:
		k = boolean
	case arvizStat[draws.StatTreeDepth], arvizStat[draws.StatLeapfrog]:
		k = integer
	}
	for _, trace := range traces {
		for _, v := range trace {
			if !k.holds(v) {
				return float
			}
		}
	}
	return k
}

// holds is true if a number of the kind is this one exactly.
func (k kind) holds(v float64) bool {
	switch k {
	case boolean:
		return v == 1 || (v == 0 && !math.Signbit(v))
	case integer:
		return v == math.Trunc(v) && math.Abs(v) <= 1<<53 && !(v == 0 && math.Signbit(v))
	}
	return true
}
