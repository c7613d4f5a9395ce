package cluster

import (
	"encoding/json"
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
)

// task is a group of chains of a cell, as its message says it.
type task struct {
	Run      string          `json:"run"`
	Number   int             `json:"number"`
	Job      string          `json:"job"`
	Params   json.RawMessage `json:"params"`
	Data     string          `json:"data"`  // object
	Start    string          `json:"start"` // object; "" where Point has it
	Point    []byte          `json:"point,omitempty"`
	Position infer.Position  `json:"position"`
	Want     identity        `json:"want"`
	Mixed    bool            `json:"mixed"`
	Options  settings        `json:"options"`
	Tries    int             `json:"tries"`
	Crashes  int             `json:"crashes"`
	AckWait  int             `json:"ack_wait"` // ns
	Limit    int             `json:"limit"`    // bytes of an object
	Streamed bool            `json:"streamed"` // Save takes the draws off the server

	cell, from, draws int // of the client: its cell, its first chain, the draws of each
}

// settings are the options of a run that are data.
type settings struct {
	Chains     int           `json:"chains"`
	Warmup     int           `json:"warmup"`
	Draws      int           `json:"draws"`
	Thin       int           `json:"thin"`
	Seed       uint64        `json:"seed"`
	FirstChain uint64        `json:"first_chain"`
	Cycles     *infer.Cycles `json:"cycles,omitempty"`
	Discard    bool          `json:"discard"`
	Dependent  bool          `json:"dependent_rows"`
	Native     native.Tier   `json:"native"`
	Every      int           `json:"every"`
	Model      string        `json:"model"`
}

func (s settings) options() infer.Options {
	return infer.Options{Chains: s.Chains, Warmup: s.Warmup, Draws: s.Draws, Thin: s.Thin, Seed: s.Seed,
		FirstChain: s.FirstChain, Cycles: s.Cycles, Discard: s.Discard, Native: s.Native,
		DependentRows: s.Dependent}
}

// name is that of all blocks of the task.
func (t task) name() string { return fmt.Sprintf("%06d", t.Number) }

func (t task) key() string { return fmt.Sprintf("result.%06d", t.Number) }

func (t task) stateKey() string { return fmt.Sprintf("state.%06d", t.Number) }

func (t task) subject() string { return fmt.Sprintf("%s%s.%06d", tasksSubject, t.Run, t.Number) }

// state is how far a task is, on the server. Only the worker that wrote it last may write it again.
type state struct {
	Attempt int              `json:"attempt"` // counts deliveries that began
	Worker  string           `json:"worker"`
	Crashes int              `json:"crashes"` // attempts that began since the last checkpoint
	Errors  []string         `json:"errors"`
	Files   map[string]parts `json:"files"` // of the checkpoint, by their path
}

// parts are the blocks that make up a file.
type parts struct {
	Blocks []string `json:"blocks"`
	Size   int      `json:"size"`
}

// outcome is the result of a task, written once.
type outcome struct {
	Error   string            `json:"error,omitempty"`
	Tries   int               `json:"tries"`
	Worker  string            `json:"worker"`
	Draws   string            `json:"draws,omitempty"` // the beginning of the names of their blocks
	Blocks  int               `json:"blocks,omitempty"`
	Sums    [][]byte          `json:"sums,omitempty"`  // SHA-256 of each block
	Small   []byte            `json:"small,omitempty"` // the draws, where they are few, instead of blocks
	Stats   []string          `json:"stats,omitempty"`
	Lengths []int             `json:"lengths,omitempty"` // draws of each chain
	Attrs   map[string]string `json:"attrs,omitempty"`
	Notes   []draws.Note      `json:"notes,omitempty"`
	Differs string            `json:"differs,omitempty"` // what of the machine, where that is allowed
}

// smallBytes is how large a point or the draws of a task may be to be part of its message or its result. An object
// takes several requests, and stays as long as the run too.
const smallBytes = 4 << 10

// block names a block of the draws.
func (o *outcome) block(i int) string { return fmt.Sprintf("%s.%06d", o.Draws, i) }

// TaskError is a task that failed as often as it may.
type TaskError struct {
	Cell   int    // of the sweep
	Chains [2]int // the first and the last
	Tries  int
	Text   string // of the last error
}

// Error names the chains and the last error.
func (e *TaskError) Error() string {
	return fmt.Sprintf("cell %d, chains %d to %d: failed %d times, at last with: %s", e.Cell, e.Chains[0], e.Chains[1],
		e.Tries, e.Text)
}

// event is what a worker tells while it works; it is not kept.
type event struct {
	Kind      string         `json:"kind"` // "progress", "refused", "done"
	Worker    string         `json:"worker"`
	Task      int            `json:"task"`
	Attempt   int            `json:"attempt"`
	Step      int            `json:"step"`
	Steps     int            `json:"steps"`
	Resumed   int            `json:"resumed"`
	Gradients int            `json:"gradients"`
	Mismatch  *MismatchError `json:"mismatch,omitempty"`
}
