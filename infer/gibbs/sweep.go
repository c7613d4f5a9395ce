package gibbs

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// sweep is [Blocks] bound to a target.
type sweep struct {
	blocks Blocks
	target infer.Target
	parts  []part
}

// part is a block bound to its view of the target.
type part struct {
	*view
	transform infer.Transform
}

// warmer is a transform that can be told how many updates adapt.
type warmer interface {
	WithWarmup(updates int) (infer.Transform, error)
}

// unknown is a warm-up that nobody has told.
const unknown = -1

// build builds the methods of the blocks.
func (c Blocks) build(target infer.Target, warmup int) (*sweep, error) {
	p, ok := target.Program.(interface{ Layout() *infer.Layout })
	if !ok || p.Layout() == nil {
		return nil, fmt.Errorf("%s: the target does not tell its sites: it needs a compiled model, or infer.Handwritten: %w",
			name, infer.ErrConfig)
	}
	if len(c) == 0 {
		return nil, fmt.Errorf("%s: there is no block: write gibbs.Blocks{{Sites: []string{...}, Method: ...}}: %w", name,
			infer.ErrConfig)
	}
	sites, err := c.sites(p.Layout())
	if err != nil {
		return nil, err
	}
	t := &sweep{blocks: slices.Clone(c), target: target, parts: make([]part, len(c))}
	for i := range t.parts {
		v, err := newView(target, p.Layout(), sites[i])
		if err != nil {
			return nil, c.fail(i, "", "%v", err)
		}
		inner, err := c[i].Method.Build(v.target(target))
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		if err := c.check(i, inner); err != nil {
			return nil, err
		}
		if w, ok := inner.(warmer); ok && warmup != unknown {
			if inner, err = w.WithWarmup(warmup); err != nil {
				return nil, err
			}
		}
		t.parts[i] = part{v, inner}
	}
	return t, nil
}

// check makes sure that the method of block i is one for a block.
func (c Blocks) check(i int, inner infer.Transform) error {
	who := fmt.Sprintf("%T", c[i].Method)
	_, fits := inner.(infer.Sampler)
	_, climbs := inner.(infer.ModeFinder)
	_, passes := inner.(infer.Passer)
	if fits || climbs || passes {
		return c.fail(i, ".Method", "%s fits a distribution and makes no moves: a block needs a sampler", who)
	}
	if named, ok := inner.(infer.Named); ok && named.Name() == "hmc.Exchange" {
		return c.fail(i, ".Method", "%s keeps replicas at other temperatures, whose law changes when other blocks move: a "+
			"block needs a method with one point for each chain", who)
	}
	return nil
}

// Name is that of the method, with its blocks.
func (t *sweep) Name() string { return t.blocks.String() }

// MovesWholeNumbers says that discrete sites may be among those of the target.
func (t *sweep) MovesWholeNumbers() {}

// WithWarmup is the transform whose blocks adapt for a number of updates.
func (t *sweep) WithWarmup(updates int) (infer.Transform, error) {
	return t.blocks.build(t.target, updates)
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
	s := blockState{Params: infer.Params{Layout: p.Layout}, Streams: streams}
	err := torch.Do(func(scope *torch.Scope) error {
		rows, err := p.Values()
		if err != nil {
			return err
		}
		for i, part := range t.parts {
			for k, chain := range streams.Chains {
				own := infer.Params{Layout: part.layout}
				if own.Flat, err = like(p.Flat, part.cut(rows[k*p.Layout.Dim():])); err != nil {
					return err
				}
				seed := streams.Seed + uint64(i+1)*0x9e3779b97f4a7c15
				var inner infer.State
				if seeded, ok := part.transform.(infer.Seeded); ok {
					inner, err = seeded.InitStreams(own, torch.Streams{Seed: seed, Chains: []uint64{chain}})
				} else {
					inner, err = part.transform.Init(own)
				}
				if err != nil {
					return fmt.Errorf("%s[%d]: %w", name, i, err)
				}
				method.Keep(scope, inner)
				s.inner = append(s.inner, inner)
			}
		}
		s.Params.Flat, err = torch.Copy(p.Flat)
		scope.Keep(s.Params.Flat)
		return err
	})
	return s, err
}

// like is a tensor of the type and on the device of another one.
func like(t torch.Tensor, x []float64, shape ...int) (torch.Tensor, error) {
	device, err := torch.DeviceOf(t)
	if err != nil {
		return torch.Tensor{}, err
	}
	if len(shape) == 0 {
		shape = []int{len(x)}
	}
	return torch.FromSliceOn(device, t.T().DType(), x, shape...)
}

// Update makes one sweep of each chain.
func (t *sweep) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[blockState](state, name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	chains, d := s.Params.Chains(), s.Params.Layout.Dim()
	next := s
	next.Step, next.inner = s.Step+1, make([]infer.State, len(s.inner))
	info := infer.Info{LogPosterior: make([]float64, chains), GradNorm: make([]float64, chains), TimeStep: 1,
		Stats: map[string][]float64{}}
	owners := map[string]int{}
	err = torch.Do(func(scope *torch.Scope) error {
		rows, err := s.Params.Values()
		if err != nil {
			return err
		}
		for k := range chains {
			for i, part := range t.parts {
				made, told, err := part.update(s.inner[i*chains+k], b, s.Params.Flat, rows[k*d:(k+1)*d])
				if err != nil {
					return fmt.Errorf("%s[%d]: %w", name, i, err)
				}
				method.Keep(scope, made)
				next.inner[i*chains+k] = made
				join(&info, told, owners, i, k)
			}
		}
		next.Params.Flat, err = like(s.Params.Flat, rows, s.Params.Flat.Shape()...)
		scope.Keep(next.Params.Flat)
		return err
	})
	return next, info, err
}

// update moves the block of one chain, in the whole point too.
func (p part) update(s infer.State, b infer.Batch, flat torch.Tensor, point []float64) (infer.State, infer.Info,
	error) {
	x, err := like(flat, point)
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
	for i, v := range values {
		point[p.at[i]] = v
	}
	return made, info, err
}

// join adds what block i tells of chain k. The density is that before the first block, where the sweep began. A
// statistic that an earlier block tells too has the number of the block behind its name.
func join(all *infer.Info, told infer.Info, owners map[string]int, i, k int) {
	if i == 0 && len(told.LogPosterior) > 0 {
		all.LogPosterior[k], all.LR, all.Temperature = told.LogPosterior[0], told.LR, told.Temperature
	}
	if len(told.GradNorm) > 0 {
		all.GradNorm[k] = math.Hypot(all.GradNorm[k], told.GradNorm[0])
	}
	if slices.Contains(told.Diverged, true) {
		if all.Diverged == nil {
			all.Diverged = make([]bool, len(all.GradNorm))
		}
		all.Diverged[k] = true
	}
	for what, v := range told.Stats {
		if first, ok := owners[what]; !ok {
			owners[what] = i
		} else if first != i {
			what = fmt.Sprintf("%s_%d", what, i)
		}
		if all.Stats[what] == nil {
			all.Stats[what] = make([]float64, len(all.GradNorm))
		}
		all.Stats[what][k] = v[0]
	}
}
