package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/term"
)

// board is what the workers have told.
type board struct {
	c       *client
	done    chan int // tasks of which a result was told
	out     io.Writer
	began   time.Time
	sub     *nats.Subscription
	lock    sync.Mutex
	last    map[int]event        // of each task
	workers map[string]time.Time // that work
	deny    *MismatchError       // the first refusal
	denied  time.Time
	ready   int
	taken   int // attempts after the first of their task
	again   int // steps that were made again, as far as told
	drawn   time.Time
	ended   bool
}

func newBoard(c *client) *board {
	b := &board{c: c, done: make(chan int, len(c.tasks)+1), out: c.o.Progress, began: time.Now(), last: map[int]event{},
		workers: map[string]time.Time{}}
	if b.out == nil && term.IsTerminal(int(os.Stderr.Fd())) {
		b.out = os.Stderr
	}
	return b
}

func (b *board) listen() (err error) {
	b.sub, err = b.c.link.nc.Subscribe(eventsSubject+b.c.bucket.run, func(m *nats.Msg) {
		var e event
		if json.Unmarshal(m.Data, &e) == nil && e.Task >= 0 && e.Task < len(b.c.tasks) {
			b.add(e)
		}
	})
	return err
}

func (b *board) add(e event) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if e.Kind == "refused" {
		if b.deny == nil {
			b.deny, b.denied = e.Mismatch, time.Now()
		}
		return
	}
	b.workers[e.Worker] = time.Now()
	if old := b.last[e.Task]; e.Attempt > old.Attempt {
		b.taken += e.Attempt - max(old.Attempt, 1)
		b.again += max(0, old.Step-e.Resumed)
	}
	if e.Attempt >= b.last[e.Task].Attempt {
		b.last[e.Task] = e
	}
	if e.Kind == "done" {
		select {
		case b.done <- e.Task:
		default: // told twice; the poll finds what is missing
		}
	}
	b.draw()
}

func (b *board) finished(n int) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.ready = n
	b.draw()
}

// refused is the mismatch where workers have refused for so long and none has taken a task.
func (b *board) refused(after time.Duration) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.deny == nil || len(b.workers) > 0 || time.Since(b.denied) < after {
		return nil
	}
	return b.deny
}

// line is the state of the run in one line.
func (b *board) line() string {
	now, live, share, rate := time.Now(), 0, 0.0, 0.0
	for _, seen := range b.workers {
		if now.Sub(seen) < 2*time.Second {
			live++
		}
	}
	for _, e := range b.last {
		if e.Steps > 0 {
			share += float64(e.Step) / float64(e.Steps)
		}
		rate += float64(e.Gradients)
	}
	text := fmt.Sprintf("%d of %d tasks, %d workers, %.0f %%, %.3g gradients/s", b.ready, len(b.c.tasks), live,
		100*share/float64(len(b.c.tasks)), rate/now.Sub(b.began).Seconds())
	if b.taken > 0 {
		text += fmt.Sprintf(", %d begun again, at least %d steps made again", b.taken, b.again)
	}
	return text
}

func (b *board) draw() {
	if b.out == nil || b.ended || time.Since(b.drawn) < 200*time.Millisecond {
		return
	}
	b.drawn = time.Now()
	_, _ = fmt.Fprintf(b.out, "\r\x1b[K%s", b.line())
}

// end shows the line for a last time, and clears it.
func (b *board) end() {
	if b == nil {
		return
	}
	if b.sub != nil {
		_ = b.sub.Unsubscribe()
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if !b.drawn.IsZero() && !b.ended {
		_, _ = fmt.Fprintf(b.out, "\r\x1b[K%s", b.line())
		_, _ = fmt.Fprint(b.out, "\r\x1b[K")
	}
	b.ended = true
}
