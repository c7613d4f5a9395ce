// Package late tells a sink of package store what a run finds out at its end, after its last block.
package late

import (
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
)

// saving are the blocks that are being saved, and who asked.
var saving sync.Map // of *draws.Draws to *[]func(*draws.Draws) error

// Saving hands out a block by save, and returns who has asked for more by Ask meanwhile.
func Saving(block *draws.Draws, save func() error) (asked []func(run *draws.Draws) error, err error) {
	saving.Store(block, &asked)
	defer saving.Delete(block)
	err = save()
	return asked, err
}

// Ask has f called when the run of a block ends, with draws that have the run's attributes and notes. It does nothing
// where the block is not one that a run is saving.
func Ask(block *draws.Draws, f func(run *draws.Draws) error) {
	if to, ok := saving.Load(block); ok {
		asked := to.(*[]func(*draws.Draws) error)
		*asked = append(*asked, f)
	}
}
