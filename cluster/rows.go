package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// packRows writes the draws of all chains, one after the other: values and statistics of each draw, as float64.
func packRows(d *draws.Draws) ([]byte, error) {
	var out []byte
	names := d.Stats()
	columns := make([][]float64, len(names))
	for c := range d.Chains() {
		for i, name := range names {
			var err error
			if columns[i], err = d.Stat(name, c); err != nil {
				return nil, err
			}
		}
		for i := range d.Len(c) {
			for _, x := range d.Row(c, i) {
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
			}
			for _, column := range columns {
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(column[i]))
			}
		}
	}
	return out, nil
}

// addRows adds the draws of a task, whose first chain is from.
func addRows(d *draws.Draws, from, dim int, o outcome, raw []byte) error {
	width := dim + len(o.Stats)
	row := make([]float64, width)
	for c, n := range o.Lengths {
		for range n {
			if len(raw) < 8*width {
				return fmt.Errorf("the draws of chain %d are cut off", from+c)
			}
			for i := range row {
				row[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
			}
			raw = raw[8*width:]
			if err := d.AppendChain(from+c, row[:dim], row[dim:]); err != nil {
				return err
			}
		}
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
