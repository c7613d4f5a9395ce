package infer_test

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// counter is a transform whose numbers are known beforehand: each update adds one to every element. After update n the
// position is the start plus n, and the update tells lp = −n − k/8 for chain k, grad_norm = n and own = 2n. It cannot
// be restored.
type counter struct {
	failAt   int                              // the update that fails; 0 for none
	diverges func(update int, chain int) bool // nil for never
	plain    bool                             // tells nothing about its updates but what diverged
	lr       infer.Schedule                   // the step size that an update tells; nil for 0.5
}

// counterState is the state of counter. The constant is one tensor that all states of a run share.
type counterState struct {
	params   infer.Params
	constant torch.Tensor
	n        int
}

var errCounter = fmt.Errorf("the counter is stuck")

func (c counter) Init(p infer.Params) (infer.State, error) {
	// It keeps the point as it is, without a copy.
	return counterState{params: p, constant: torch.Scalar(1)}, nil
}

func (c counter) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[counterState](state, "counter")
	if err != nil {
		return nil, infer.Info{}, err
	}
	s.n++
	if s.n == c.failAt {
		return nil, infer.Info{}, errCounter
	}
	k := s.params.Chains()
	info := infer.Info{LR: 0.5}
	if c.lr != nil {
		info.LR = c.lr(s.n - 1)
	}
	if c.diverges != nil {
		info.Diverged = make([]bool, k)
		for i := range k {
			info.Diverged[i] = c.diverges(s.n, i)
		}
	}
	if !c.plain {
		info.Stats = map[string][]float64{"own": nil, "also": nil}
		for i := range k {
			info.LogPosterior = append(info.LogPosterior, -float64(s.n)-float64(i)/8)
			info.GradNorm = append(info.GradNorm, float64(s.n))
			info.Stats["own"] = append(info.Stats["own"], 2*float64(s.n))
			info.Stats["also"] = append(info.Stats["also"], float64(i))
		}
	}
	s.params.Flat, err = raw.Of(s.params.Flat.T().Add(s.constant.T(), false))
	return s, info, err
}

func (s counterState) Position() infer.Params { return s.params }
func (s counterState) Steps() int             { return s.n }
func (s counterState) Save() infer.Saved {
	return infer.Saved{Steps: s.n, Tensors: infer.Tensors{"params": s.params.Flat, "constant": s.constant}}
}

// restorable is a counter that can be restored.
type restorable struct{ counter }

func (restorable) Restore(l *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	constant, err := saved.Tensor("constant")
	return counterState{params: infer.Params{Layout: l, Flat: flat}, constant: constant, n: saved.Steps}, err
}

// preparing is a counter that looks at three batches before each epoch, and remembers the data that it sees and that
// its updates see.
type preparing struct {
	counter
	seen, prepared *[]float64
	count          int
}

func (*preparing) Due(_ infer.State, epoch bool) bool { return epoch }

func (p *preparing) Prepare(s infer.State, epoch bool, next func() (infer.Batch, error)) (infer.State, error) {
	p.count++
	for range 3 {
		b, err := next()
		if err != nil {
			return nil, err
		}
		*p.prepared = append(*p.prepared, floats(b.Get("x"))...)
	}
	return s, nil
}

func (p *preparing) Update(s infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	*p.seen = append(*p.seen, floats(b.Get("x"))...)
	return p.counter.Update(s, b)
}

// Tensors are what the state owns, and what it shares with others.
func (s counterState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
