package gibbs

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

var _ interface {
	infer.Transform
	infer.Seeded
	infer.Restorer
	infer.Named
} = (*sweep)(nil)

// sweep is [Blocks] bound to a target.
type sweep struct {
	blocks Blocks
	target infer.Target
	warmup int // of the run; unknown in loops of one's own

	mu    sync.Mutex
	of    *infer.Layout // of the parts
	parts []part
}

// unknown is a warm-up that nobody has told.
const unknown = -1

// part is a block bound to its view of the target.
type part struct {
	*view
	transform infer.Transform
}

// Name is that of the method, with its blocks.
func (t *sweep) Name() string { return t.blocks.String() }

// MovesWholeNumbers says that discrete sites may be among those of the target: each block is asked for its own.
func (t *sweep) MovesWholeNumbers() {}

// WithWarmup is the transform whose blocks adapt for a number of updates.
func (t *sweep) WithWarmup(updates int) (infer.Transform, error) {
	own := &sweep{blocks: t.blocks, target: t.target, warmup: updates}
	if t.of == nil {
		return own, nil
	}
	_, err := own.bind(t.of)
	return own, err
}

// bind builds the methods of the blocks, once for each layout.
func (t *sweep) bind(l *infer.Layout) ([]part, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != nil && t.of.Equal(l) {
		return t.parts, nil
	}
	sites, err := t.blocks.sites(l)
	if err != nil {
		return nil, err
	}
	parts := make([]part, len(sites))
	for i, names := range sites {
		if parts[i].view, err = newView(t.target, l, names); err != nil {
			return nil, t.blocks.fail(i, "", "%v", err)
		}
		if parts[i].transform, err = t.build(i, parts[i].view); err != nil {
			return nil, err
		}
	}
	t.of, t.parts = l, parts
	return parts, nil
}

// build binds the method of a block, if it is one for a block.
func (t *sweep) build(i int, v *view) (infer.Transform, error) {
	inner, err := t.blocks[i].Method.Build(v.target(t.target))
	if err != nil {
		return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
	}
	who := fmt.Sprintf("%T", t.blocks[i].Method)
	_, moves := inner.(interface{ MovesWholeNumbers() })
	if discrete := v.Discrete(); len(discrete) > 0 && !moves {
		return nil, t.blocks.fail(i, "", "%s cannot move the discrete site %q, which has no gradient: put it into a block of "+
			"its own, {Sites: []string{%q}, Method: gibbs.Discrete{}}", who, discrete[0], discrete[0])
	}
	_, fits := inner.(infer.Sampler)
	_, climbs := inner.(infer.ModeFinder)
	_, passes := inner.(infer.Passer)
	if fits || climbs || passes {
		return nil, t.blocks.fail(i, ".Method", "%s fits a distribution and makes no moves: a block needs a sampler", who)
	}
	if named, ok := inner.(infer.Named); ok && named.Name() == "hmc.Exchange" {
		return nil, t.blocks.fail(i, ".Method", "%s keeps replicas at other temperatures, whose law changes when other blocks "+
			"move: a block needs a method with one point for each chain", who)
	}
	if w, ok := inner.(interface {
		WithWarmup(int) (infer.Transform, error)
	}); ok && t.warmup != unknown {
		return w.WithWarmup(t.warmup)
	}
	return inner, nil
}

// Init starts with seed 0.
func (t *sweep) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

// InitStreams starts the blocks of each chain, with streams of their own.
func (t *sweep) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(name, p, streams); err != nil {
		return nil, err
	}
	parts, err := t.bind(p.Layout)
	if err != nil {
		return nil, err
	}
	s := blockState{Params: infer.Params{Layout: p.Layout}, Streams: streams, inner: make([][]infer.State, len(parts))}
	err = torch.Do(func(scope *torch.Scope) error {
		rows, err := p.Values()
		if err != nil {
			return err
		}
		for i, part := range parts {
			for k, chain := range streams.Chains {
				own := infer.Params{Layout: part.layout}
				if own.Flat, err = like(p.Flat, part.cut(rows, k), -1); err != nil {
					return err
				}
				inner, err := start(part.transform, own, streams.Seed+uint64(i+1)*0x9e3779b97f4a7c15, chain)
				if err != nil {
					return fmt.Errorf("%s[%d]: %w", name, i, err)
				}
				method.Keep(scope, inner)
				s.inner[i] = append(s.inner[i], inner)
			}
		}
		s.Params.Flat, err = torch.Copy(p.Flat)
		scope.Keep(s.Params.Flat)
		return err
	})
	return s, err
}

// start makes the state of one chain.
func start(t infer.Transform, p infer.Params, seed, chain uint64) (infer.State, error) {
	if seeded, ok := t.(infer.Seeded); ok {
		return seeded.InitStreams(p, torch.Streams{Seed: seed, Chains: []uint64{chain}})
	}
	return t.Init(p)
}

// cut are the numbers of the block in row k of the whole points.
func (v *view) cut(rows []float64, k int) (x []float64) {
	at := k * v.whole.Dim()
	for _, s := range v.layout.Sites {
		w, _ := v.whole.Site(s.Name)
		x = append(x, rows[at+w.Offset:at+w.Offset+w.Size]...)
	}
	return x
}

// paste puts the numbers of the block into row k of the whole points.
func (v *view) paste(rows []float64, k int, x []float64) {
	at := k * v.whole.Dim()
	for _, s := range v.layout.Sites {
		w, _ := v.whole.Site(s.Name)
		copy(rows[at+w.Offset:at+w.Offset+w.Size], x[s.Offset:s.Offset+s.Size])
	}
}

// like is a tensor of a shape, of the type and on the device of another one.
func like(t *ts.Tensor, x []float64, shape ...int64) (*ts.Tensor, error) {
	device, err := torch.DeviceOf(t)
	if err != nil {
		return nil, err
	}
	if shape[0] < 0 {
		shape = []int64{int64(len(x))}
	}
	return torch.FromSliceOn(device, t.DType(), x, shape...)
}

// Update makes one sweep of each chain.
func (t *sweep) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[blockState](state, name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	parts, err := t.bind(s.Params.Layout)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := blockState{Params: infer.Params{Layout: s.Params.Layout}, Step: s.Step + 1, Streams: s.Streams,
		inner: make([][]infer.State, len(parts))}
	all := newReport(len(parts), s.Params.Chains())
	err = torch.Do(func(scope *torch.Scope) error {
		rows, err := s.Params.Values()
		if err != nil {
			return err
		}
		for k := range s.Params.Chains() {
			for i, part := range parts {
				made, info, err := part.update(s.inner[i][k], b, s.Params.Flat, rows, k)
				if err != nil {
					return fmt.Errorf("%s[%d]: %w", name, i, err)
				}
				method.Keep(scope, made)
				next.inner[i] = append(next.inner[i], made)
				all.add(i, k, info)
			}
		}
		next.Params.Flat, err = like(s.Params.Flat, rows, torch.Must(torch.Shape(s.Params.Flat))...)
		scope.Keep(next.Params.Flat)
		return err
	})
	return next, all.Info, err
}

// update moves the block of chain k, in rows too.
func (p part) update(s infer.State, b infer.Batch, flat *ts.Tensor, rows []float64, k int) (infer.State, infer.Info,
	error) {
	d := p.whole.Dim()
	x, err := like(flat, rows[k*d:(k+1)*d], -1)
	if err != nil {
		return nil, infer.Info{}, err
	}
	own := p.with(b, x)
	if t, ok := p.transform.(infer.Preparer); ok && t.Due(s, true) {
		if s, err = t.Prepare(s, true, func() (infer.Batch, error) { return own, nil }); err != nil {
			return nil, infer.Info{}, err
		}
	}
	made, info, err := p.transform.Update(s, own)
	if err != nil {
		return nil, info, err
	}
	values, err := made.Position().Values()
	if err == nil {
		p.paste(rows, k, values)
	}
	return made, info, err
}

// report joins what the blocks tell of an update.
type report struct {
	infer.Info
	owner map[string]int // the first block that tells a statistic
}

func newReport(blocks, chains int) *report {
	nan := slices.Repeat([]float64{math.NaN()}, chains)
	return &report{infer.Info{LogPosterior: nan, GradNorm: make([]float64, chains), Stats: map[string][]float64{}},
		map[string]int{}}
}

// add is what block i tells of chain k: the density is that before the first block, where the sweep began. A statistic
// that several blocks tell has the number of the later ones behind its name.
func (r *report) add(i, k int, info infer.Info) {
	if i == 0 && len(info.LogPosterior) > 0 {
		r.LogPosterior[k] = info.LogPosterior[0]
	}
	if len(info.GradNorm) > 0 {
		r.GradNorm[k] = math.Hypot(r.GradNorm[k], info.GradNorm[0])
	}
	if slices.Contains(info.Diverged, true) {
		if r.Diverged == nil {
			r.Diverged = make([]bool, len(r.LogPosterior))
		}
		r.Diverged[k] = true
	}
	if r.LR == 0 {
		r.LR = info.LR
	}
	if r.Temperature == 0 {
		r.Temperature = info.Temperature
	}
	for what, v := range info.Stats {
		if first, ok := r.owner[what]; !ok {
			r.owner[what] = i
		} else if first != i {
			what = fmt.Sprintf("%s_%d", what, i)
		}
		if r.Stats[what] == nil {
			r.Stats[what] = slices.Repeat([]float64{math.NaN()}, len(r.LogPosterior))
		}
		if len(v) > 0 {
			r.Stats[what][k] = v[0]
		}
	}
}
