package store

import (
	"encoding/json"
	"math"
	"runtime/debug"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// The names of Kelvin's own comments and attributes. They have no =, which CmdStan's readers would take for an option.
const (
	layoutKey  = "kelvin_layout"  // names, shapes and lengths of the draws
	runKey     = "kelvin_run"     // the run's identity, which a resumed run compares
	libraryKey = "kelvin_version" // the version of Kelvin
	attrsKey   = "kelvin_attrs"   // the attributes of the draws
	notesKey   = "kelvin_notes"   // the notes of the draws
	digestKey  = "kelvin_digest"  // CRC-32C of all bytes before it
)

// layout is what a format cannot say about draws by itself. It is written as one line of JSON.
type layout struct {
	Sites []layoutSite `json:"sites"`
	Stats []string     `json:"stats,omitempty"`
	// Lengths are the draws of each chain, where a file holds all chains.
	Lengths []int `json:"lengths,omitempty"`
}

// layoutSite is a site without its place.
type layoutSite struct {
	Name   string     `json:"name"`
	Shape  []int      `json:"shape"`
	Labels [][]string `json:"labels,omitempty"`
}

// newLayout is the layout of one chain.
func newLayout(sites []draws.Site, stats []string) layout {
	l := layout{Sites: make([]layoutSite, len(sites)), Stats: stats}
	for i, s := range sites {
		l.Sites[i] = layoutSite{s.Name, append([]int{}, s.Shape...), s.Labels}
	}
	return l
}

// layoutOf is the layout of all chains.
func layoutOf(d *draws.Draws) layout {
	l := newLayout(d.Sites(), d.Stats())
	l.Lengths = make([]int, d.Chains())
	for c := range l.Lengths {
		l.Lengths[c] = d.Len(c)
	}
	return l
}

func (l layout) String() string { return jsonLine(l) }

func jsonLine(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // cannot be: layouts, attributes and notes hold strings and integers
	}
	return string(text)
}

// parseLayout is nil if the text is no layout: a foreign or damaged one counts as none.
func parseLayout(text string) *layout {
	l := &layout{}
	if err := json.Unmarshal([]byte(text), l); err != nil {
		return nil
	}
	if _, err := draws.New(l.Placed(), l.Stats, 1); err != nil {
		return nil
	}
	return l
}

// Placed are the sites, one after the other.
func (l layout) Placed() []draws.Site {
	sites := make([]draws.Site, len(l.Sites))
	at := 0
	for i, s := range l.Sites {
		size, ok := product(s.Shape)
		if !ok {
			size = -1 // refused by draws.New
		}
		sites[i] = draws.Site{Name: s.Name, Shape: s.Shape, Offset: at, Size: size, Labels: s.Labels}
		at += size
	}
	return sites
}

// product is the number of elements of a shape; ok is false if a size is negative or the number is absurd.
func product(shape []int) (n int, ok bool) {
	if slices.Contains(shape, 0) {
		return 0, !slices.ContainsFunc(shape, func(s int) bool { return s < 0 })
	}
	p := 1
	for _, s := range shape {
		if s < 0 || s > (1<<46)/p {
			return 0, false
		}
		p *= s
	}
	return p, true
}

// sameSites compares names and shapes.
func sameSites(a, b []draws.Site) bool {
	return slices.EqualFunc(a, b, func(s, t draws.Site) bool {
		return s.Name == t.Name && slices.Equal(s.Shape, t.Shape)
	})
}

// runFacts are what draws say of their run, each as one line of JSON; empty if there is nothing to say.
type runFacts struct{ Attrs, Notes string }

// factsOf are the facts of draws.
func factsOf(d *draws.Draws) (f runFacts) {
	if attrs := d.Attrs(); len(attrs) > 0 {
		f.Attrs = jsonLine(attrs)
	}
	if notes := d.Notes(); len(notes) > 0 {
		f.Notes = jsonLine(notes)
	}
	return f
}

// Give hands the facts to draws. What is no JSON of the right kind is skipped, as a damaged layout is.
func (f runFacts) Give(d *draws.Draws) {
	var attrs map[string]string
	if json.Unmarshal([]byte(f.Attrs), &attrs) == nil {
		for key, value := range attrs {
			d.SetAttr(key, value)
		}
	}
	var notes []draws.Note
	if json.Unmarshal([]byte(f.Notes), &notes) == nil {
		for _, n := range notes {
			d.AddNote(n)
		}
	}
}

// libraryVersion is the version of the module in this program, if Go knows it.
func libraryVersion() string {
	const module = "github.com/kelvin-ppl/kelvin"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" {
				return m.Version
			}
		}
	}
	return "(devel)"
}

// notANumber fills what is missing.
var notANumber = math.NaN()
