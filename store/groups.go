package store

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// encoder turns an Inference into groups.
type encoder struct {
	inf    *Inference
	fit    func(string) string // makes names fit for the format
	labels dimLabels
}

func (inf *Inference) groups(fit func(string) string) ([]*group, error) {
	e := &encoder{inf: inf, fit: fit, labels: dimLabels{Dims: inf.Dims, Coords: inf.Coords}}
	attrs := inf.attrs()
	var all []*group
	for i, d := range inf.sampled() {
		if *d == nil {
			continue
		}
		sampled, err := e.sampled(sampledGroups[i], *d, attrs)
		if err != nil {
			return nil, err
		}
		all = append(all, sampled...)
	}
	for i, arrays := range inf.data() {
		if len(*arrays) == 0 {
			continue
		}
		g, err := e.data(dataGroups[i], *arrays, attrs)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (e *encoder) data(of string, arrays []Array, attrs map[string]any) (*group, error) {
	g := &group{Name: of, Attrs: attrs}
	seen := map[string]bool{}
	var names []string
	for _, a := range arrays {
		if n, ok := product(a.Shape); !ok || n != len(a.Values) {
			return nil, failf(ErrLayout, "%s: %q has %d values, but the shape %v", of, a.Name, len(a.Values), a.Shape)
		}
		if seen[a.Name] || a.Name == "" {
			return nil, failf(ErrLayout, "%s: the name %q is empty or there twice", of, a.Name)
		}
		seen[a.Name] = true
		names = append(names, a.Name)
	}
	for i, name := range identifiers(names, e.fit) {
		a := arrays[i]
		dims, err := e.labels.Of(of, a.Name, name, a.Shape)
		if err != nil {
			return nil, err
		}
		g.Vars = append(g.Vars, &variable{Name: name, Shape: a.Shape, Dims: dims, Data: a.Values})
	}
	return g, nil
}

// sampled makes the group of the sites and that of the statistics.
func (e *encoder) sampled(names [2]string, d *draws.Draws, attrs map[string]any) ([]*group, error) {
	sites, stats := d.Sites(), d.Stats()
	switch {
	case names[1] == "" && len(stats) > 0:
		return nil, failf(ErrLayout, "%s: the format has no place for the statistics %q of this group", names[0],
			stats)
	case d.Chains() == 0:
		return nil, failf(ErrLayout, "%s: there are no chains", names[0])
	case len(sites)+len(stats) == 0 && d.Total() > 0:
		return nil, failf(ErrLayout, "%s: draws have neither sites nor statistics", names[0])
	}
	own := maps.Clone(attrs)
	own[layoutKey] = layoutOf(d).String()
	facts := factsOf(d)
	for key, text := range map[string]string{attrsKey: facts.Attrs, notesKey: facts.Notes} {
		if text != "" {
			own[key] = text
		}
	}
	g := &group{Name: names[0], Attrs: own}
	head := []int{d.Chains(), d.MaxLen()}
	pad := make([]float64, d.Dim())
	for i := range pad {
		pad[i] = math.NaN()
	}
	for i, name := range siteVariables(sites, e.fit) {
		s := sites[i]
		dims, err := e.labels.Of(names[0], s.Name, name, s.Shape)
		if err != nil {
			return nil, err
		}
		g.Vars = append(g.Vars, &variable{
			Name: name, Shape: append(slices.Clone(head), s.Shape...), Dims: append([]string{"chain", "draw"}, dims...),
			At: func(chain, draw int) []float64 {
				if row := d.Row(chain, draw); row != nil {
					return row[s.Offset : s.Offset+s.Size]
				}
				return pad[:s.Size]
			},
		})
	}
	if len(stats) == 0 {
		return []*group{g}, nil
	}
	return []*group{g, e.stats(names[1], d, attrs)}, nil
}

// stats makes the group of the statistics.
func (e *encoder) stats(name string, d *draws.Draws, attrs map[string]any) *group {
	of, stats := &group{Name: name, Attrs: attrs}, d.Stats()
	head := []int{d.Chains(), d.MaxLen()}
	for k, name := range statVariables(stats, e.fit) {
		v := &variable{Name: name, Shape: head, Dims: []string{"chain", "draw"}}
		traces := make([][]float64, d.Chains())
		for c := range traces {
			traces[c], _ = d.Stat(stats[k], c)
		}
		v.Kind = statKind(name, traces)
		missing := []float64{math.NaN()}
		if v.Kind != float {
			missing[0] = 0
		}
		v.At = func(chain, draw int) []float64 {
			if draw < len(traces[chain]) {
				return traces[chain][draw : draw+1]
			}
			return missing
		}
		of.Vars = append(of.Vars, v)
	}
	return of
}

// decoder turns groups into an Inference.
type decoder struct {
	*contents
	file string
	fit  func(string) string // as for writing
}

func (d *decoder) note(format string, args ...any) {
	d.Notes = append(d.Notes, d.file+": "+fmt.Sprintf(format, args...))
}

func (d *decoder) fail(where string, format string, args ...any) error {
	return d.wrong(where, because(ErrFormat, format, args...))
}

func (d *decoder) wrong(where string, err error) error {
	return &ParseError{File: d.file, What: where, Err: err}
}

func decode(c *contents, file string, fit func(string) string) (*Inference, error) {
	d := &decoder{contents: c, file: file, fit: fit}
	inf := &Inference{Attrs: map[string]any{}, Dims: map[string][]string{}, Coords: map[string][]any{}}
	maps.Copy(inf.Attrs, d.Attrs)
	if g := d.Groups["posterior"]; g != nil {
		maps.Copy(inf.Attrs, g.Attrs)
	}
	for _, key := range []string{layoutKey, attrsKey, notesKey} {
		delete(inf.Attrs, key)
	}
	for i, to := range inf.sampled() {
		name, statName := sampledGroups[i][0], sampledGroups[i][1]
		g, stats := d.Groups[name], d.Groups[statName]
		if g == nil {
			if stats != nil {
				d.note("group %s was left out: there is no group %s", statName, name)
			}
			continue
		}
		var err error
		if *to, err = d.sampled(g, stats, inf); err != nil {
			return nil, err
		}
	}
	for i, to := range inf.data() {
		name := dataGroups[i]
		g := d.Groups[name]
		if g == nil {
			continue
		}
		for _, v := range g.Vars {
			if v.Text != nil {
				d.note("%s.%s was left out: it holds text", name, v.Name)
				continue
			}
			*to = append(*to, Array{Name: v.Name, Shape: v.Shape, Values: v.Data})
			d.keepDims(inf, v.Name, v.Name, v.Dims)
		}
	}
	inf.Notes = d.Notes
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
	vars := slices.DeleteFunc(slices.Clone(g.Vars), func(v *variable) bool {
		if v.Text != nil {
			d.note("%s.%s was left out: it holds text", g.Name, v.Name)
		}
		return v.Text != nil
	})
	var statVars []*variable
	if stats != nil {
		for _, v := range stats.Vars {
			if v.Text != nil || len(v.Shape) != 2 {
				d.note("%s.%s was left out: it is not one number for each draw", stats.Name, v.Name)
				continue
			}
			statVars = append(statVars, v)
		}
	}
	l, sorted, sortedStats := d.ownLayout(g, vars, statVars)
	if l == nil {
		var err error
		if l, err = d.guess(g.Name, vars, statVars); err != nil {
			return nil, err
		}
		sorted, sortedStats = vars, statVars
	}
	sites := l.Placed()
	if err := d.afford(l, sites); err != nil {
		return nil, d.wrong(g.Name, err)
	}
	out, err := draws.New(sites, l.Stats, len(l.Lengths))
	if err != nil {
		return nil, d.fail(g.Name, "%v", err)
	}
	attrs, _ := g.Attrs[attrsKey].(string)
	notes, _ := g.Attrs[notesKey].(string)
	runFacts{Attrs: attrs, Notes: notes}.Give(out)
	for i, v := range sorted {
		if len(v.Dims) > 2 {
			d.keepDims(inf, sites[i].Name, v.Name, v.Dims[2:])
		}
	}
	longest := slices.Max(l.Lengths)
	x, s := make([]float64, out.Dim()), make([]float64, len(l.Stats))
	for c, n := range l.Lengths {
		for i := range n {
			for k, v := range sorted {
				size := sites[k].Size
				from := (c*longest + i) * size
				copy(x[sites[k].Offset:], v.Data[from:from+size])
			}
			for k, v := range sortedStats {
				s[k] = v.Data[c*longest+i]
			}
			if err := out.AppendChain(c, x, s); err != nil {
				return nil, d.fail(g.Name, "%v", err)
			}
		}
	}
	return out, nil
}

// afford checks the draws against the limits before they are made: a layout of a few bytes can ask for any number of
// chains, of draws without elements, or of elements without draws.
func (d *decoder) afford(l *layout, sites []draws.Site) error {
	dim, total := len(l.Stats), 0
	for _, s := range sites {
		dim += max(s.Size, 0)
	}
	for _, n := range l.Lengths {
		total += n
	}
	if err := d.Budget.Count(dim); err != nil {
		return err
	}
	if err := d.Budget.Count(total); err != nil {
		return err
	}
	if dim > 0 && total > d.Budget.Elements/dim {
		return d.Budget.Count(math.MaxInt64)
	}
	const chain = 64 // bytes for an empty one, about
	return d.Budget.Take(8*(dim+total+total*dim) + chain*len(l.Lengths))
}

// ownLayout is Kelvin's layout if the group has one that its variables fit: another program may
// have changed them since.
func (d *decoder) ownLayout(g *group, vars, stats []*variable) (
	l *layout, sorted, sortedStats []*variable) {
	text, _ := g.Attrs[layoutKey].(string)
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
	pick := func(names []string, from []*variable, shape func(int) []int) (out []*variable) {
		named := map[string]*variable{}
		for _, v := range from {
			named[v.Name] = v
		}
		for i, name := range names {
			v := named[name]
			if v == nil {
				return nil
			}
			want := variable{Shape: append([]int{len(l.Lengths), longest}, shape(i)...)}
			if !slices.Equal(v.Shape, want.Shape) {
				// JSON has no sizes inside an empty list.
				empty := v.Size() == 0 && want.Size() == 0
				if !empty || longest > 0 && !slices.Equal(v.Shape[:min(2, len(v.Shape))], want.Shape[:2]) {
					return nil
				}
			}
			out = append(out, v)
		}
		return out
	}
	sites := l.Placed()
	sorted = pick(siteVariables(sites, d.fit), vars, func(i int) []int { return sites[i].Shape })
	sortedStats = pick(statVariables(l.Stats, d.fit), stats, func(int) []int { return nil })
	if len(sorted) != len(vars) || len(sortedStats) != len(stats) {
		return nil, nil, nil
	}
	return l, sorted, sortedStats
}

// guess takes the variables as they are: each begins with chain and draw.
func (d *decoder) guess(name string, vars, stats []*variable) (*layout, error) {
	l := &layout{}
	var head []int
	for _, v := range slices.Concat(vars, stats) {
		if len(v.Shape) < 2 {
			return nil, d.fail(name+"."+v.Name, "the shape is %v, want [chain][draw] and more", v.Shape)
		}
		if head == nil {
			head = v.Shape[:2]
		}
		if !slices.Equal(head, v.Shape[:2]) {
			return nil, d.fail(name+"."+v.Name, "%d chains of %d draws, but %d of %d before it",
				v.Shape[0], v.Shape[1], head[0], head[1])
		}
	}
	if head == nil {
		head = []int{1, 0}
	}
	if head[0] < 1 {
		return nil, d.fail(name, "there are no chains")
	}
	if err := d.Budget.Take(8 * head[0]); err != nil {
		return nil, d.wrong(name, err)
	}
	l.Lengths = make([]int, head[0])
	for c := range l.Lengths {
		l.Lengths[c] = head[1]
	}
	for _, v := range vars {
		l.Sites = append(l.Sites, layoutSite{Name: v.Name, Shape: v.Shape[2:]})
	}
	for _, v := range stats {
		l.Stats = append(l.Stats, v.Name)
	}
	l.Stats = kelvinStats(l.Stats)
	return l, nil
}
