package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// blockBytes is about how large the objects are that hold the draws of a task, so that the client needs no more of them
// in memory.
const blockBytes = 1 << 20

// rowBytes is the size of a draw and its statistics.
func rowBytes(dim, stats int) int { return 8 * (dim + stats) }

// packRows writes the draws of all chains, one after the other: values and statistics of each draw, as float64. emit
// gets them in blocks of whole draws; a block is valid until it returns.
func packRows(d *draws.Draws, emit func(block []byte) error) error {
	width := rowBytes(d.Dim(), len(d.Stats()))
	var block []byte
	for c := range d.Chains() {
		for i := range d.Len(c) {
			if len(block) > 0 && len(block)+width > blockBytes {
				if err := emit(block); err != nil {
					return err
				}
				block = block[:0]
			}
			for _, x := range slices.Concat(d.Row(c, i), d.StatRow(c, i)) {
				block = binary.LittleEndian.AppendUint64(block, math.Float64bits(x))
			}
		}
	}
	if len(block) == 0 {
		return nil
	}
	return emit(block)
}

// unpackRows reads what packRows has written: next gives the blocks, and add gets the draws of chain from and those
// after it.
func unpackRows(from, dim int, o *outcome, next func() ([]byte, error),
	add func(chain int, x, stats []float64) error) error {
	width := rowBytes(dim, len(o.Stats))
	row := make([]float64, width/8)
	var raw []byte
	for c, n := range o.Lengths {
		for i := range n {
			if len(raw) == 0 && width > 0 {
				var err error
				if raw, err = next(); err != nil {
					return err
				}
			}
			if len(raw) < width {
				return fmt.Errorf("the draws of chain %d are cut off", from+c)
			}
			for j := range row {
				row[j] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*j:]))
			}
			raw = raw[width:]
			if err := finite(from+c, i, row[:dim]); err != nil {
				return err
			}
			if err := add(from+c, row[:dim], row[dim:]); err != nil {
				return err
			}
		}
	}
	if len(raw) > 0 {
		return fmt.Errorf("there are %d bytes more than the draws have", len(raw))
	}
	return nil
}

func packStart(p infer.Params) ([]byte, error) {
	t, err := packTensor("start", p.Flat)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = gob.NewEncoder(&out).Encode(t)
	return out.Bytes(), err
}

func unpackStart(raw []byte, l *infer.Layout) (infer.Params, error) {
	var t tensor
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(&t); err != nil {
		return infer.Params{}, fmt.Errorf("the start: %w", err)
	}
	flat, err := t.unpack()
	return infer.Params{Layout: l, Flat: flat}, err
}
