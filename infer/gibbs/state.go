package gibbs

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"maps"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// blockState is the state of [Blocks]: the point, and a state of the method of each block for each chain.
type blockState struct {
	Params  infer.Params
	Step    int64
	Streams torch.Streams
	inner   [][]infer.State // by block and chain
}

// Position is the point.
func (s blockState) Position() infer.Params { return s.Params }

// Steps is the number of sweeps so far.
func (s blockState) Steps() int64 { return s.Step }

// each visits the states of the blocks, with what comes before the names of their tensors.
func (s blockState) each(visit func(prefix string, inner infer.State)) {
	for i, chains := range s.inner {
		for k, inner := range chains {
			visit(prefix(i, k), inner)
		}
	}
}

func prefix(block, chain int) string { return fmt.Sprintf("block %d chain %d: ", block, chain) }

// Tensors are the point, and those of the blocks.
func (s blockState) Tensors() (owned, shared infer.Tensors) {
	owned, shared = infer.Tensors{"params": s.Params.Flat}, infer.Tensors{}
	s.each(func(prefix string, inner infer.State) {
		own, common := inner.Tensors()
		add(owned, prefix, own)
		add(shared, prefix, common)
	})
	return owned, shared
}

func add(to infer.Tensors, prefix string, from infer.Tensors) {
	for n, t := range from {
		to[prefix+n] = t
	}
}

// savedBlock is what is saved of the state of a block besides its tensors.
type savedBlock struct {
	Steps   int64
	Streams torch.Streams
	Extra   []byte
}

// Save is what the blocks save, under one name for each tensor.
func (s blockState) Save() infer.Saved {
	out := infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat},
		Shared: infer.Tensors{}}
	var blocks []savedBlock
	s.each(func(prefix string, inner infer.State) {
		saved := inner.Save()
		add(out.Tensors, prefix, saved.Tensors)
		add(out.Shared, prefix, saved.Shared)
		blocks = append(blocks, savedBlock{saved.Steps, saved.Streams, saved.Extra})
	})
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(blocks); err != nil {
		panic(fmt.Sprintf("gibbs: a state that gob cannot hold: %v", err)) // it is plain numbers
	}
	out.Extra = b.Bytes()
	return out
}

// Restore makes a state of what was saved.
func (t *sweep) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	parts, err := t.bind(layout)
	if err != nil {
		return nil, err
	}
	s := blockState{Params: infer.Params{Layout: layout}, Step: saved.Steps, Streams: saved.Streams,
		inner: make([][]infer.State, len(parts))}
	if s.Params.Flat, err = saved.Tensor("params"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var blocks []savedBlock
	err = gob.NewDecoder(bytes.NewReader(saved.Extra)).Decode(&blocks)
	chains := len(saved.Streams.Chains)
	if err != nil || len(blocks) != len(parts)*chains {
		return nil, fmt.Errorf("%s: the states of its blocks cannot be read (%d of %d; %v): %w", name, len(blocks),
			len(parts)*chains, err, infer.ErrCheckpoint)
	}
	for i, part := range parts {
		r, ok := part.transform.(infer.Restorer)
		if !ok {
			return nil, t.blocks.fail(i, ".Method", "%T cannot go on from a checkpoint", t.blocks[i].Method)
		}
		for k := range chains {
			b := blocks[i*chains+k]
			inner, err := r.Restore(part.layout, infer.Saved{Steps: b.Steps, Streams: b.Streams, Extra: b.Extra,
				Tensors: under(saved.Tensors, prefix(i, k))})
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
			}
			s.inner[i] = append(s.inner[i], inner)
		}
	}
	return s, nil
}

// under are the tensors whose names begin with a prefix, without it.
func under(all infer.Tensors, prefix string) infer.Tensors {
	out := infer.Tensors{}
	for n := range maps.Keys(all) {
		if own, ok := strings.CutPrefix(n, prefix); ok {
			out[own] = all[n]
		}
	}
	return out
}
