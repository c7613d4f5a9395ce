package draws

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Draws is a container of posterior draws: for each chain, a list of draws; for each draw, a flat vector of Dim numbers
// and one number per statistic. [New] makes one; the zero value has no chains and cannot be appended to.
//
// A Draws may be read from any number of goroutines. [Draws.AppendChain] may be called at the same time for different
// chains; apart from that, appending excludes all other use.
type Draws struct {
	sites  []Site
	index  map[string]int // of a site, by name
	stats  []string
	dim    int
	chains []chain
	attrs  map[string]string
	notes  []Note
	atEnd  []func(run *Draws) error
}

// chain is one chain: n rows of Dim numbers and then the statistics.
type chain struct {
	n    int
	rows []float64
}

// New makes an empty container.
//
// sites must tile [0, Dim) in order, without gaps or overlaps, and have unique names; see [Site]. stats are the names
// of the statistics of each draw, such as [StatLP] and [StatDivergent], unique and perhaps none. chains is at least 1.
// A breach is an [ErrLayout], or an [ErrRange] for chains, that names the site. No sites at all (Dim 0) is allowed.
func New(sites []Site, stats []string, chains int) (*Draws, error) {
	dim, err := checkSites(sites)
	if err != nil {
		return nil, err
	}
	if err := checkStats(stats); err != nil {
		return nil, err
	}
	if dim > math.MaxInt-len(stats) {
		return nil, failf(ErrLayout, "%d elements and %d statistics are too many for an int", dim, len(stats))
	}
	if chains < 1 {
		return nil, failf(ErrRange, "%d chains; there must be at least 1", chains)
	}
	d := &Draws{
		sites:  make([]Site, len(sites)),
		index:  make(map[string]int, len(sites)),
		stats:  slices.Clone(stats),
		dim:    dim,
		chains: make([]chain, chains),
	}
	for i, s := range sites {
		d.sites[i] = s.clone()
		d.index[s.Name] = i
	}
	return d, nil
}

// Label names the elements of a site along each of its dimensions; nil leaves indices to one. Names of elements,
// summaries, pictures and stores have the labels in the place of indices: b[age]. An [ErrUnknownName] or [ErrLayout]
// says what does not fit. Draws that are derived from d before keep their names.
func (d *Draws) Label(site string, along ...[]string) error {
	s, err := d.Site(site)
	if err != nil {
		return err
	}
	s.Labels = along
	if wrong := s.wrongLabels(); wrong != "" {
		return failf(ErrLayout, "label: site %q: %s", site, wrong)
	}
	d.sites = slices.Clone(d.sites)
	d.sites[d.index[site]] = s
	return nil
}

// like makes an empty container with the layout, the attributes and the notes of d. Layouts never change,
// so they are shared.
func (d *Draws) like(chains int) *Draws {
	out := &Draws{sites: d.sites, index: d.index, stats: d.stats, dim: d.dim, chains: make([]chain, chains)}
	return out.describe(d)
}

// width is the length of a stored row.
func (d *Draws) width() int { return d.dim + len(d.stats) }

// Append adds one draw to every chain. x is Chains rows of Dim and stats is Chains rows of len(Stats()), both
// row-major; they are copied. An [ErrSize] says which length was wrong, and then nothing is added. The time per draw is
// constant on average.
func (d *Draws) Append(x, stats []float64) error {
	k := len(d.chains)
	if k == 0 {
		return failf(ErrRange, "append: the container has no chains; make it with New")
	}
	if len(x) != k*d.dim {
		return failf(ErrSize, "append: x has %d numbers, want %d (%d chains x %d)", len(x), k*d.dim, k, d.dim)
	}
	m := len(d.stats)
	if len(stats) != k*m {
		return failf(ErrSize, "append: stats has %d numbers, want %d (%d chains x %d)", len(stats), k*m, k, m)
	}
	for c := range d.chains {
		d.chains[c].add(x[c*d.dim:(c+1)*d.dim], stats[c*m:(c+1)*m])
	}
	return nil
}

// AppendChain adds one draw to one chain: x has Dim numbers, stats has len(Stats()); they are copied. An [ErrRange]
// says that there is no such chain, an [ErrSize] which length was wrong; then nothing is added.
func (d *Draws) AppendChain(chain int, x, stats []float64) error {
	if err := d.checkChain("append", chain); err != nil {
		return err
	}
	if len(x) != d.dim {
		return failf(ErrSize, "append to chain %d: x has %d numbers, want %d", chain, len(x), d.dim)
	}
	if len(stats) != len(d.stats) {
		return failf(ErrSize, "append to chain %d: stats has %d numbers, want %d", chain, len(stats), len(d.stats))
	}
	d.chains[chain].add(x, stats)
	return nil
}

// mostGrown is the largest count of numbers, over all chains, that [Draws.Grow] makes room for: 8 GiB.
const mostGrown = 1 << 30

// Grow makes room for n more draws of every chain, so that appending them copies nothing that is there. It is only a
// matter of speed; n below 1 does nothing, and neither does one that asks for more than 8 GiB.
func (d *Draws) Grow(n int) {
	if width := d.width() * len(d.chains); n < 1 || width > 0 && n > mostGrown/width {
		return
	}
	for i := range d.chains {
		d.chains[i].rows = slices.Grow(d.chains[i].rows, n*d.width())
	}
}

func (c *chain) add(x, stats []float64) {
	c.rows = append(append(c.rows, x...), stats...)
	c.n++
}

func (d *Draws) checkChain(doing string, chain int) error {
	switch n := len(d.chains); {
	case n == 0:
		return failf(ErrRange, "%s: the container has no chains; make it with New", doing)
	case chain < 0 || chain >= n:
		return failf(ErrRange, "%s: chain %d, want 0 to %d", doing, chain, n-1)
	}
	return nil
}

// Chains is the number of chains.
func (d *Draws) Chains() int { return len(d.chains) }

// Dim is the length of the flat vector of a draw.
func (d *Draws) Dim() int { return d.dim }

// Len is the number of draws of one chain; 0 if there is no such chain.
func (d *Draws) Len(chain int) int {
	if chain < 0 || chain >= len(d.chains) {
		return 0
	}
	return d.chains[chain].n
}

// MinLen is the number of draws of the shortest chain: as many as every chain has.
func (d *Draws) MinLen() int {
	if len(d.chains) == 0 {
		return 0
	}
	n := d.chains[0].n
	for _, c := range d.chains[1:] {
		n = min(n, c.n)
	}
	return n
}

// MaxLen is the number of draws of the longest chain.
func (d *Draws) MaxLen() int {
	n := 0
	for _, c := range d.chains {
		n = max(n, c.n)
	}
	return n
}

// Total is the number of draws of all chains together.
func (d *Draws) Total() int {
	n := 0
	for _, c := range d.chains {
		n += c.n
	}
	return n
}

// Sites is a copy of the layout.
func (d *Draws) Sites() []Site {
	sites := make([]Site, len(d.sites))
	for i, s := range d.sites {
		sites[i] = s.clone()
	}
	return sites
}

// Stats is a copy of the names of the statistics.
func (d *Draws) Stats() []string { return slices.Clone(d.stats) }

// Names has one name per element of the flat vector: w[0], w[1,2], and the bare name of the site for a scalar. Indices
// count from 0, row-major. Names are unique unless a site is itself named like an element of another one.
func (d *Draws) Names() []string {
	names := make([]string, 0, d.dim)
	for _, s := range d.sites {
		names = s.elementNames(names)
	}
	return names
}

// Site finds a site by name. An [ErrUnknownName] lists the sites there are.
func (d *Draws) Site(name string) (Site, error) {
	i, ok := d.index[name]
	if !ok {
		names := make([]string, len(d.sites))
		for k, s := range d.sites {
			names[k] = s.Name
		}
		return Site{}, failf(ErrUnknownName, "no site %q; the sites are %s", name, listed(names))
	}
	return d.sites[i].clone(), nil
}

// ErrNoDraws is wrapped by the error of a summary of a container without draws.
var ErrNoDraws = errors.New("no draws")

// ErrUnknownName is wrapped by the error of a site or a statistic that is not there.
var ErrUnknownName = errors.New("unknown name")

// ErrLayout is wrapped by the errors about sites and statistics: a layout that [New] refuses, two layouts that should
// be equal and are not, a CSV header that does not fit.
var ErrLayout = errors.New("wrong layout")

// ErrSize is wrapped by the error of an appended draw with too many or too few numbers.
var ErrSize = errors.New("wrong size")

// ErrRange is wrapped by the error of an argument outside its range: a chain, a draw, a probability, a thinning.
var ErrRange = errors.New("out of range")

func failf(kind error, format string, args ...any) error {
	return sample.Failf("draws", kind, format, args...)
}

// listed writes names for an error message; a long list is cut.
func listed(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, name := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}
