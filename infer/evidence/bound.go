package evidence

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// bound is what TI, SMC and AIS share, bound to a target: a transform that only drives itself.
type bound struct {
	name   string
	target infer.Target
	path   path.Path
	accept float64 // the mean acceptance to which step sizes adapt
}

// bind checks what the configurations share. A nil ladder adapts.
func bind(typ string, target infer.Target, p path.Path, ladder []float64, accept float64) (bound, error) {
	if target.LogPosterior == nil {
		return bound{}, fmt.Errorf("%s: the log posterior is nil: %w", typ, infer.ErrConfig)
	}
	if err := p.Check(); err != nil {
		return bound{}, err
	}
	if ladder != nil {
		if err := fullLadder(typ, ladder); err != nil {
			return bound{}, err
		}
	}
	if accept == 0 {
		accept = 0.75
	}
	if !(accept > 0 && accept < 1) {
		return bound{}, &infer.FieldError{Type: typ, Field: "TargetAccept", Value: accept,
			Allowed: "it must be above 0 and below 1"}
	}
	return bound{typ, target, p, accept}, nil
}

// fullLadder refuses a ladder that does not lead from 0 to 1.
func fullLadder(typ string, ladder []float64) error {
	if err := path.CheckLadder(typ, ladder); err != nil {
		return err
	}
	if last := ladder[len(ladder)-1]; ladder[0] != 0 || last != 1 {
		return &infer.FieldError{Type: typ, Field: "Ladder", Value: fmt.Sprintf("from %v to %v", ladder[0], last),
			Allowed: "it must lead from 0, where log Z is known, to 1"}
	}
	return nil
}

// Name is the method's.
func (b bound) Name() string { return b.name }

func (b bound) Init(infer.Params) (infer.State, error) {
	return nil, fmt.Errorf("%s makes whole runs: use evidence.Run, infer.Run or infer.Sample: %w", b.name, infer.ErrConfig)
}

func (b bound) Update(infer.State, infer.Batch) (infer.State, infer.Info, error) {
	_, err := b.Init(infer.Params{})
	return nil, infer.Info{}, err
}

// open makes what evaluates the path in a run, and log Z at β = 0.
func (b bound) open(job infer.Job) (e *path.Evaluator, logZ0 float64, err error) {
	if e, err = b.path.OnJob(b.target, job); err == nil {
		logZ0, err = e.LogZ0()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", b.name, err)
	}
	if math.IsNaN(logZ0) || math.IsInf(logZ0, 0) {
		return nil, 0, fmt.Errorf("%s: log Z at β = 0 is %v: %w", b.name, logZ0, infer.ErrNonFinite)
	}
	return e, logZ0, nil
}

// resume reads what [save] wrote into state, which errors call what.
func (b bound) resume(job infer.Job, state any, what string) error {
	if err := gob.NewDecoder(bytes.NewReader(job.Resume)).Decode(state); err != nil {
		return fmt.Errorf("%s: the %s cannot be read: %v: %w", b.name, what, err, infer.ErrCheckpoint)
	}
	return nil
}

// save hands out a snapshot of the state of a run where one is due.
func save(job infer.Job, state any) error {
	if job.Snapshot == nil || job.Due != nil && !job.Due() {
		return nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return err
	}
	return job.Snapshot(b.Bytes())
}
