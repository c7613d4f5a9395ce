package gibbs

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// blockState is the state of [Blocks]: the point, and a state of the method of each block for each chain.
type blockState struct {
	Params  infer.Params
	Step    int
	Streams torch.Streams
	inner   []infer.State // those of the first block, then those of the next
}

// Position is the point.
func (s blockState) Position() infer.Params { return s.Params }

// Steps is the number of sweeps so far.
func (s blockState) Steps() int { return s.Step }

// Tensors are the point, and those of the blocks under names of their own.
func (s blockState) Tensors() (owned, shared infer.Tensors) {
	owned, shared = infer.Tensors{"params": s.Params.Flat}, infer.Tensors{}
	for i, inner := range s.inner {
		own, common := inner.Tensors()
		add(owned, i, own)
		add(shared, i, common)
	}
	return owned, shared
}

// prefix comes before the names of the tensors of state i.
func prefix(i int) string { return fmt.Sprintf("block state %d: ", i) }

func add(to infer.Tensors, i int, from infer.Tensors) {
	for n, t := range from {
		to[prefix(i)+n] = t
	}
}

// rest is what is saved of the state of a block besides its tensors.
type rest struct {
	Steps   int
	Streams torch.Streams
	Extra   []byte
}

// Save is what the blocks save.
func (s blockState) Save() infer.Saved {
	out := infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat},
		Shared: infer.Tensors{}}
	var blocks []rest
	for i, inner := range s.inner {
		saved := inner.Save()
		add(out.Tensors, i, saved.Tensors)
		add(out.Shared, i, saved.Shared)
		blocks = append(blocks, rest{saved.Steps, saved.Streams, saved.Extra})
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(blocks); err != nil {
		panic(fmt.Sprintf("gibbs: a state that gob cannot hold: %v", err)) // it is plain numbers
	}
	out.Extra = b.Bytes()
	return out
}

// Restore makes a state of what was saved.
func (t *sweep) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	s := blockState{Params: infer.Params{Layout: layout}, Step: saved.Steps, Streams: saved.Streams}
	var err error
	if s.Params.Flat, err = saved.Tensor("params"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var blocks []rest
	err = gob.NewDecoder(bytes.NewReader(saved.Extra)).Decode(&blocks)
	if chains := len(saved.Streams.Chains); err != nil || len(blocks) != len(t.parts)*chains {
		return nil, fmt.Errorf("%s: the states of its blocks cannot be read (%v): %w", name, err, infer.ErrCheckpoint)
	}
	for i, b := range blocks {
		block := i / len(saved.Streams.Chains)
		r, ok := t.parts[block].transform.(infer.Restorer)
		if !ok {
			return nil, t.blocks.fail(block, ".Method", "%T cannot go on from a checkpoint", t.blocks[block].Method)
		}
		own := infer.Saved{Steps: b.Steps, Streams: b.Streams, Extra: b.Extra, Tensors: infer.Tensors{}}
		for n, tensor := range saved.Tensors {
			if name, ok := strings.CutPrefix(n, prefix(i)); ok {
				own.Tensors[name] = tensor
			}
		}
		inner, err := r.Restore(t.parts[block].layout, own)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, block, err)
		}
		s.inner = append(s.inner, inner)
	}
	return s, nil
}
