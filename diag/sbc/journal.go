package sbc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// journal is the file of a run: a line that says which run it is, then a line of ranks for each replication. A line
// that is not whole, at the end, is of a run that was killed while it wrote.
type journal struct{ f *os.File }

type heading struct {
	SBC   int    `json:"sbc"` // version of the format
	Seed  uint64 `json:"seed"`
	Draws int    `json:"draws"`
}

// open reads what is there into a result and leaves the file at its end.
func open(o Options, r *Result) (*journal, error) {
	f, err := atomicfile.Open(o.File, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{f}
	if err := j.restore(o, r); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *journal) restore(o Options, r *Result) error {
	if !atomicfile.TryLock(j.f) {
		return errors.New("another run uses it")
	}
	text, err := io.ReadAll(j.f)
	if err != nil {
		return err
	}
	want := heading{SBC: 1, Seed: o.Seed, Draws: o.Draws}
	first, err := json.Marshal(want)
	if err != nil {
		return err
	}
	other := func(line []byte) error {
		return fmt.Errorf("it is of %q, and this run would begin with %s: name another file",
			bytes.TrimSpace(line[:min(len(line), 100)]), first)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if len(whole) == 0 && !bytes.HasPrefix(first, text) { // no line that this run could have begun
		return other(text)
	}
	for i, line := range bytes.SplitAfter(whole, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if i == 0 {
			var have heading
			if err := json.Unmarshal(line, &have); err != nil || have != want {
				return other(line)
			}
			continue
		}
		ranks := map[string]int{}
		if err := json.Unmarshal(line, &ranks); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if have := names(ranks); i > 1 && fmt.Sprint(have) != fmt.Sprint(names(r.Ranks)) || len(have) == 0 {
			return fmt.Errorf("line %d has the quantities %q, others have %q", i+1, have, names(r.Ranks))
		}
		for name, rank := range ranks {
			if rank < 0 || rank > o.Draws {
				return fmt.Errorf("line %d: the rank of %q is %d, expected 0 to %d", i+1, name, rank, o.Draws)
			}
		}
		r.add(ranks)
	}
	if err := j.f.Truncate(int64(len(whole))); err != nil {
		return err
	}
	if _, err := j.f.Seek(int64(len(whole)), io.SeekStart); err != nil {
		return err
	}
	if len(whole) == 0 {
		return j.write(want)
	}
	return nil
}

func (j *journal) add(ranks map[string]int) error {
	if j == nil {
		return nil
	}
	return j.write(ranks)
}

func (j *journal) write(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = j.f.Write(append(line, '\n'))
	}
	return err
}

func (j *journal) close() error { return errors.Join(atomicfile.Present(j.f), j.f.Close()) }
