package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// glance looks at a run so rarely that its updates stay many in a call. A timer says when, because Due is asked after
// every transition of a chain, which may take less than to read the clock.
type glance struct {
	*attempt
	due   atomic.Bool
	timer *time.Timer
}

const glanceEvery = 50 * time.Millisecond

func (a *attempt) glance() *glance {
	g := &glance{attempt: a}
	g.due.Store(true)
	g.timer = time.AfterFunc(glanceEvery, func() { g.due.Store(true) })
	return g
}

func (g *glance) Due() bool { return g.due.Load() }

func (g *glance) Observe(p infer.Progress) {
	g.due.Store(false)
	g.timer.Reset(glanceEvery)
	g.look(p)
}

func (a *attempt) look(p infer.Progress) {
	a.step.Store(int64(p.Step))
	a.resumed.Store(int64(p.Resumed))
	a.gradients.Store(int64(p.Gradients))
	a.steps.Store(int64(p.Steps))
}

// recordVariable names the environment variable with a folder, in which a worker keeps a file for each attempt.
const recordVariable = "KELVIN_CLUSTER_RECORD"

// record keeps in a file how far an attempt is. It is written after every update, so that it is right where the process
// is killed; updates are then made one in a call.
type record struct {
	*attempt
	file *os.File
	line []byte
}

// newRecord makes the file RUN-TASK-ATTEMPT-WORKER. Its line is the step that the attempt resumed from and its last.
func (a *attempt) newRecord() (*record, error) {
	f, err := atomicfile.Open(filepath.Join(os.Getenv(recordVariable), fmt.Sprintf("%s-%06d-%06d-%s", a.task.Run,
		a.task.Number, a.state.Attempt, a.name)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	return &record{attempt: a, file: f}, err
}

func (r *record) Observe(p infer.Progress) {
	r.line = fmt.Appendf(r.line[:0], "%20d %20d\n", p.Resumed, p.Step)
	_, _ = r.file.WriteAt(r.line, 0)
	r.look(p)
}

func (r *record) close() { _ = r.file.Close() }
