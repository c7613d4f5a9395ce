package infer

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// rows are the draws of a session on unconstrained space, all of its chains in one container.
type rows struct {
	session *session
	stats   []string
	draws   *draws.Draws
	saved   []int // draws of each chain that Options.Save has
	id      string
	info    Info         // of the last update
	last    *draws.Draws // that Options.Save got
}

// begin makes the container. All groups have the same statistics.
func (r *rows) begin(stats []string) (err error) {
	if r.draws != nil {
		return nil
	}
	r.stats, r.saved = stats, make([]int, r.session.o.Chains)
	o := r.session.o
	if r.draws, err = draws.New(r.session.layout.Sites, stats, o.Chains); err != nil {
		return err
	}
	// A run that is to end early may ask for more draws than there is memory.
	width := r.session.layout.Dim() + len(stats)
	if o.Until == nil && !o.Discard && o.Draws <= maxReserved/8/max(1, width)/o.Chains {
		r.draws.Grow(o.Draws)
	}
	return nil
}

// maxReserved is up to how many bytes of draws are reserved at the start of a run.
const maxReserved = 1 << 30

// container is the draws, empty where there are none; nil where none were asked for.
func (r *rows) container() (*draws.Draws, error) {
	if r.draws == nil && r.session.o.Draws > 0 && !r.session.o.Discard {
		if err := r.begin([]string{draws.StatLP, draws.StatGradNorm, draws.StatHeld}); err != nil {
			return nil, err
		}
	}
	return r.draws, nil
}

func (r *rows) add(chain int, x, stats []float64) error { return r.draws.AppendChain(chain, x, stats) }

// least is the number of draws of the shortest of some chains.
func (r *rows) least(from, size int) int {
	if r.draws == nil {
		return 0
	}
	n := r.draws.Len(from)
	for c := from + 1; c < from+size; c++ {
		n = min(n, r.draws.Len(c))
	}
	return n
}

// save hands the draws that are new to Options.Save.
func (r *rows) save() error {
	o := r.session.o
	if o.Save == nil || r.draws == nil {
		return nil
	}
	block, err := draws.New(r.session.layout.Sites, r.stats, o.Chains)
	if err != nil {
		return err
	}
	from := slices.Clone(r.saved)
	for c := range from {
		for i := from[c]; i < r.draws.Len(c); i++ {
			if err := block.AppendChain(c, r.draws.Row(c, i), r.draws.StatRow(c, i)); err != nil {
				return err
			}
		}
		r.saved[c] = r.draws.Len(c)
	}
	if block.Total() == 0 {
		return nil
	}
	r.session.attributes(block)
	for _, n := range r.draws.Notes() { // there are none before the run ends
		block.AddNote(n)
	}
	data, err := r.session.whole()
	if err != nil {
		return err
	}
	named, err := r.session.named(block, data)
	if err != nil {
		return err
	}
	r.last = named
	return calling("function Save", func() error { return o.Save(r.id, from, named) })
}

// end tells the sinks that have the draws what the run says of itself at its end.
func (r *rows) end(run *draws.Draws) error {
	if r.last == nil {
		return nil
	}
	return r.last.End(run)
}

// restored says that the draws so far were handed out before the checkpoint was written.
func (r *rows) restored(from, size int) {
	for c := from; c < from+size; c++ {
		r.saved[c] = r.draws.Len(c)
	}
}
