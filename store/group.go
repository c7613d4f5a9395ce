package store

import (
	"math"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
)

// sampledGroups are the groups of ArviZ's InferenceData that hold draws, each with the group of its statistics if it
// can have one. dataGroups are the groups without chains and draws.
var (
	sampledGroups = [][2]string{
		{"posterior", "sample_stats"}, {"posterior_predictive", ""}, {"log_likelihood", ""},
		{"prior", "sample_stats_prior"}, {"prior_predictive", ""}, {"warmup_posterior", "warmup_sample_stats"},
	}
	dataGroups = []string{"observed_data", "constant_data"}
)

// knownGroup says whether Kelvin has a place for a group.
func knownGroup(name string) bool {
	return slices.Contains(dataGroups, name) || slices.ContainsFunc(sampledGroups, func(p [2]string) bool {
		return name != "" && (p[0] == name || p[1] == name)
	})
}

// contents are the groups of a file with what belongs to them.
type contents struct {
	Groups map[string]*group
	Attrs  map[string]any // of the root
	Coords map[string][]any
	Dims   map[string][]string // that no variable of the file has
	Notes  []string            // what the reader left out
	Budget *readBudget
}

// group is a group of variables.
type group struct {
	Name  string
	Vars  []*variable
	Attrs map[string]any
}

// kind is the type of a variable's numbers in JSON and Zarr.
type kind int

// The kinds.
const (
	float kind = iota
	integer
	boolean
)

// variable is an array of a group. Sampled ones have the dimensions chain and draw first.
type variable struct {
	Name  string
	Kind  kind
	Shape []int
	Dims  []string
	Data  []float64                       // row-major; nil where At is set
	At    func(chain, draw int) []float64 // for writing: the numbers of one draw
	Text  []string                        // instead of Data, for labels
}

// Size is the number of elements, -1 if the shape is absurd.
func (v *variable) Size() int {
	n, ok := product(v.Shape)
	if !ok {
		return -1
	}
	return n
}

// defaultDims are ArviZ's names of dimensions that the user has not named.
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
			if other := arviZStat[stat]; ok && (name == other || !slices.Contains(stats, other)) {
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
	case arviZStat[draws.StatDivergent]:
		k = boolean
	case arviZStat[draws.StatTreeDepth], arviZStat[draws.StatLeapfrog]:
		k = integer
	}
	for _, trace := range traces {
		for _, v := range trace {
			if !k.Holds(v) {
				return float
			}
		}
	}
	return k
}

// Holds says whether a number of the kind is this one exactly.
func (k kind) Holds(v float64) bool {
	switch k {
	case boolean:
		return v == 1 || (v == 0 && !math.Signbit(v))
	case integer:
		return v == math.Trunc(v) && math.Abs(v) <= 1<<53 && !(v == 0 && math.Signbit(v))
	}
	return true
}

// dimLabels are the user's names of dimensions and their labels. Sizes are those met so far.
type dimLabels struct {
	Dims   map[string][]string
	Coords map[string][]any
	sizes  map[string]int
}

// Of are the names of a variable's own dimensions: those that the user gave, else theta_dim_0 and so on.
func (l *dimLabels) Of(group, site, name string, shape []int) ([]string, error) {
	dims := l.Dims[site]
	if dims == nil {
		return defaultDims(name, len(shape)), nil
	}
	if len(dims) != len(shape) {
		return nil, failf(ErrLayout, "%s: Dims has %d names for %q of shape %v", group, len(dims), site, shape)
	}
	if l.sizes == nil {
		l.sizes = map[string]int{}
	}
	for k, dim := range dims {
		want, ok := l.sizes[dim]
		if labels := l.Coords[dim]; labels != nil {
			want = len(labels)
		} else if !ok {
			want = shape[k]
		}
		l.sizes[dim] = want
		if shape[k] != want || dim == "chain" || dim == "draw" || slices.Contains(dims[:k], dim) {
			return nil, failf(ErrLayout, "%s: dimension %q of %q has size %d, elsewhere or in Coords %d; names of dimensions"+
				" are unique, and neither chain nor draw", group, dim, site, shape[k], want)
		}
	}
	return slices.Clone(dims), nil
}
