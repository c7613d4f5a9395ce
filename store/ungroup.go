package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// decoder turns groups into an Inference.
type decoder struct {
	file   string
	fit    func(string) string // makes names fit for the format
	groups map[string]*group
	attrs  map[string]any // of the root
	notes  []string
}

func (d *decoder) note(format string, args ...any) {
	d.notes = append(d.notes, d.file+": "+fmt.Sprintf(format, args...))
}

func (d *decoder) fail(where string, format string, args ...any) error {
	return &ParseError{File: d.file, What: where, Err: because(ErrFormat, format, args...)}
}

func (d *decoder) inference() (*Inference, error) {
	inf := &Inference{Attrs: map[string]any{}, Dims: map[string][]string{}, Coords: map[string][]any{}}
	maps.Copy(inf.Attrs, d.attrs)
	if g := d.groups["posterior"]; g != nil {
		maps.Copy(inf.Attrs, g.attrs)
	}
	delete(inf.Attrs, layoutKey)
	for _, p := range inf.parts() {
		g, stats := d.groups[p.name], d.groups[p.stats]
		if g == nil {
			if p.stats != "" && stats != nil {
				d.note("group %s was left out: there is no group %s", p.stats, p.name)
			}
			continue
		}
		var err error
		if *p.draws, err = d.sampled(g, stats, inf); err != nil {
			return nil, err
		}
	}
	for _, p := range inf.dataParts() {
		g := d.groups[p.name]
		if g == nil {
			continue
		}
		for _, v := range g.vars {
			if v.text != nil {
				d.note("%s.%s was left out: it holds text", p.name, v.name)
				continue
			}
			*p.arrays = append(*p.arrays, Array{Name: v.name, Shape: v.shape, Values: v.data})
			d.keepDims(inf, v.name, v.name, v.dims)
		}
	}
	inf.Notes = d.notes
	return inf, nil
}

// keepDims keeps the names of dimensions that are not the default ones.
func (d *decoder) keepDims(inf *Inference, site, name string, dims []string) {
	if len(dims) > 0 && !slices.Equal(dims, defaultDims(name, len(dims))) {
		inf.Dims[site] = dims
	}
}

// sampled joins a group of sites with that of the statistics, which may be nil.
func (d *decoder) sampled(g, stats *group, inf *Inference) (*draws.Draws, error) {
	vars := slices.DeleteFunc(slices.Clone(g.vars), func(v *variable) bool {
		if v.text != nil {
			d.note("%s.%s was left out: it holds text", g.name, v.name)
		}
		return v.text != nil
	})
	var statVars []*variable
	if stats != nil {
		for _, v := range stats.vars {
			if v.text != nil || len(v.shape) != 2 {
				d.note("%s.%s was left out: it is not one number for each draw", stats.name, v.name)
				continue
			}
			statVars = append(statVars, v)
		}
	}
	l, sorted, sortedStats := d.ownLayout(g, vars, statVars)
	if l == nil {
		var err error
		if l, err = d.guess(g.name, vars, statVars); err != nil {
			return nil, err
		}
		sorted, sortedStats = vars, statVars
	}
	sites := l.sites()
	out, err := draws.New(sites, l.Stats, len(l.Lengths))
	if err != nil {
		return nil, d.fail(g.name, "%v", err)
	}
	for i, v := range sorted {
		if len(v.dims) > 2 {
			d.keepDims(inf, sites[i].Name, v.name, v.dims[2:])
		}
	}
	longest := 0
	for _, n := range l.Lengths {
		longest = max(longest, n)
	}
	if longest == 0 {
		if out.Dim() > 1<<24 { // no number in the file bears it out
			return nil, d.fail(g.name, "no draws, but %d elements", out.Dim())
		}
		return out, nil
	}
	x, s := make([]float64, out.Dim()), make([]float64, len(l.Stats))
	for c, n := range l.Lengths {
		for i := range n {
			for k, v := range sorted {
				size := sites[k].Size
				from := (c*longest + i) * size
				copy(x[sites[k].Offset:], v.data[from:from+size])
			}
			for k, v := range sortedStats {
				s[k] = v.data[c*longest+i]
			}
			if err := out.AppendChain(c, x, s); err != nil {
				return nil, d.fail(g.name, "%v", err)
			}
		}
	}
	return out, nil
}

// ownLayout is Kelvin's layout if the group has one that its variables fit: another program may have changed them since.
func (d *decoder) ownLayout(g *group, vars, stats []*variable) (l *layout, sorted, sortedStats []*variable) {
	text, _ := g.attrs[layoutKey].(string)
	if l = parseLayout(text); l == nil {
		return nil, nil, nil
	}
	longest := 0
	for _, n := range l.Lengths {
		if n < 0 {
			return nil, nil, nil
		}
		longest = max(longest, n)
	}
	none := len(vars)+len(stats) == 0
	if len(l.Lengths) == 0 || len(l.Sites) != len(vars) || len(l.Stats) != len(stats) || (none && longest > 0) {
		return nil, nil, nil
	}
	pick := func(names []string, from []*variable, shape func(int) []int64) (out []*variable) {
		for i, name := range names {
			k := slices.IndexFunc(from, func(v *variable) bool { return v.name == name })
			if k < 0 {
				return nil
			}
			want := variable{shape: append([]int64{int64(len(l.Lengths)), int64(longest)}, shape(i)...)}
			// JSON has no sizes inside an empty list.
			if v := from[k]; !slices.Equal(v.shape, want.shape) && (v.size() != 0 || want.size() != 0 || longest > 0 && !slices.Equal(v.shape[:min(2, len(v.shape))], want.shape[:2])) {
				return nil
			}
			out = append(out, from[k])
		}
		return out
	}
	sites := l.sites()
	sorted = pick(siteVariables(sites, d.fit), vars, func(i int) []int64 { return sites[i].Shape })
	sortedStats = pick(statVariables(l.Stats, d.fit), stats, func(int) []int64 { return nil })
	if len(sorted) != len(vars) || len(sortedStats) != len(stats) {
		return nil, nil, nil
	}
	return l, sorted, sortedStats
}

// guess takes the variables as they are: each begins with chain and draw.
func (d *decoder) guess(name string, vars, stats []*variable) (*layout, error) {
	l := &layout{}
	var head []int64
	for _, v := range slices.Concat(vars, stats) {
		if len(v.shape) < 2 {
			return nil, d.fail(name+"."+v.name, "the shape is %v, want [chain][draw] and more", v.shape)
		}
		if head == nil {
			head = v.shape[:2]
		}
		if !slices.Equal(head, v.shape[:2]) {
			return nil, d.fail(name+"."+v.name, "%d chains of %d draws, but %d of %d before it", v.shape[0], v.shape[1], head[0], head[1])
		}
	}
	if head == nil {
		head = []int64{1, 0}
	}
	if head[0] < 1 {
		return nil, d.fail(name, "there are no chains")
	}
	l.Lengths = make([]int, head[0])
	for c := range l.Lengths {
		l.Lengths[c] = int(head[1])
	}
	for _, v := range vars {
		l.Sites = append(l.Sites, layoutSite{v.name, v.shape[2:]})
	}
	for _, v := range stats {
		l.Stats = append(l.Stats, v.name)
	}
	l.Stats = kelvinStats(l.Stats)
	return l, nil
}
