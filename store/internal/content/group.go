package content

import (
	"math"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Sampled are the groups of ArviZ's InferenceData that hold draws, each with the group of its statistics if it can have
// one. Data are the groups without chains and draws.
var (
	Sampled = [][2]string{
		{"posterior", "sample_stats"}, {"posterior_predictive", ""}, {"log_likelihood", ""},
		{"prior", "sample_stats_prior"}, {"prior_predictive", ""}, {"warmup_posterior", "warmup_sample_stats"},
	}
	Data = []string{"observed_data", "constant_data"}
)

// Known says whether Kelvin has a place for a group.
func Known(name string) bool {
	return slices.Contains(Data, name) || slices.ContainsFunc(Sampled, func(p [2]string) bool {
		return name != "" && (p[0] == name || p[1] == name)
	})
}

// Contents are the groups of a file with what belongs to them.
type Contents struct {
	Groups map[string]*Group
	Attrs  map[string]any // of the root
	Coords map[string][]any
	Dims   map[string][]string // that no variable of the file has
	Notes  []string            // what the reader left out
	Budget *Budget
}

// Group is a group of variables.
type Group struct {
	Name  string
	Vars  []*Variable
	Attrs map[string]any
}

// Kind is the type of a variable's numbers in JSON and Zarr.
type Kind int

// The kinds.
const (
	Float Kind = iota
	Integer
	Boolean
)

// Variable is an array of a group. Sampled ones have the dimensions chain and draw first.
type Variable struct {
	Name  string
	Kind  Kind
	Shape []int64
	Dims  []string
	Data  []float64                       // row-major; nil where At is set
	At    func(chain, draw int) []float64 // for writing: the numbers of one draw
	Text  []string                        // instead of Data, for labels
}

// Size is the number of elements, -1 if the shape is absurd.
func (v *Variable) Size() int {
	n, ok := Product(v.Shape)
	if !ok {
		return -1
	}
	return n
}

// DefaultDims are ArviZ's names of dimensions that the user has not named.
func DefaultDims(name string, n int) []string {
	dims := make([]string, n)
	for k := range dims {
		dims[k] = name + "_dim_" + strconv.Itoa(k)
	}
	return dims
}

// SiteVariables are the names of variables for sites: none is that of a dimension.
func SiteVariables(sites []draws.Site, fit func(string) string) []string {
	names, taken := make([]string, len(sites)), []string{"chain", "draw"}
	for i, s := range sites {
		names[i] = s.Name
		taken = append(taken, DefaultDims(s.Name, len(s.Shape))...)
	}
	return Identifiers(names, fit, taken...)
}

// StatVariables are ArviZ's names of the statistics.
func StatVariables(stats []string, fit func(string) string) []string {
	names := slices.Clone(stats)
	if d, err := draws.New(nil, stats, 1); err == nil {
		for _, stat := range StatOrder {
			name, ok := d.StatName(stat)
			if other := ArviZStat[stat]; ok && (name == other || !slices.Contains(stats, other)) {
				names[slices.Index(stats, name)] = other
			}
		}
	}
	return Identifiers(names, fit, "chain", "draw")
}

// StatKind is the type that ArviZ has for a statistic, if all its values are of it.
func StatKind(name string, traces [][]float64) Kind {
	k := Float
	switch name {
	case ArviZStat[draws.StatDivergent]:
		k = Boolean
	case ArviZStat[draws.StatTreeDepth], ArviZStat[draws.StatLeapfrog]:
		k = Integer
	}
	for _, trace := range traces {
		for _, v := range trace {
			if !k.Holds(v) {
				return Float
			}
		}
	}
	return k
}

// Holds says whether a number of the kind is this one exactly.
func (k Kind) Holds(v float64) bool {
	switch k {
	case Boolean:
		return v == 1 || (v == 0 && !math.Signbit(v))
	case Integer:
		return v == math.Trunc(v) && math.Abs(v) <= 1<<53 && !(v == 0 && math.Signbit(v))
	}
	return true
}

// Labels are the user's names of dimensions and their labels. Sizes are those met so far.
type Labels struct {
	Dims   map[string][]string
	Coords map[string][]any
	sizes  map[string]int64
}

// Of are the names of a variable's own dimensions: those that the user gave, else theta_dim_0 and so on.
func (l *Labels) Of(group, site, name string, shape []int64) ([]string, error) {
	dims := l.Dims[site]
	if dims == nil {
		return DefaultDims(name, len(shape)), nil
	}
	if len(dims) != len(shape) {
		return nil, Failf(ErrLayout, "%s: Dims has %d names for %q of shape %v", group, len(dims), site, shape)
	}
	if l.sizes == nil {
		l.sizes = map[string]int64{}
	}
	for k, dim := range dims {
		want, ok := l.sizes[dim]
		if labels := l.Coords[dim]; labels != nil {
			want = int64(len(labels))
		} else if !ok {
			want = shape[k]
		}
		l.sizes[dim] = want
		if shape[k] != want || dim == "chain" || dim == "draw" || slices.Contains(dims[:k], dim) {
			return nil, Failf(ErrLayout, "%s: dimension %q of %q has size %d, elsewhere or in Coords %d; names of dimensions"+
				" are unique, and neither chain nor draw", group, dim, site, shape[k], want)
		}
	}
	return slices.Clone(dims), nil
}
