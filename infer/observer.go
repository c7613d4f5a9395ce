package infer

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// Observer sees a run as it goes, one call at a time: after every update, or every transition of a chain that runs
// freely. It must not keep what it is given.
//
// An observer that has a method Due() bool is called only where that is true. Updates in native code are then made many
// in a call, which is several times faster for a small model; Due is asked after each call, of about 4 ms.
type Observer interface {
	Observe(Progress)
}

// ObserverFunc is a function as an observer.
type ObserverFunc func(Progress)

// Observe calls f.
func (f ObserverFunc) Observe(p Progress) { f(p) }

// Silent is the observer that shows nothing.
var Silent Observer = silent{}

type silent struct{}

func (silent) Observe(Progress) {}

func (silent) Due() bool { return false }

// seldom is an observer that says when it wants to be told.
type seldom interface{ Due() bool }

// watches says whether an observer wants to be told now.
func watches(o Observer) bool {
	s, ok := o.(seldom)
	return !ok || s.Due()
}

// show tells an observer that wants to be told, and returns what Until says. Panics name the one that panicked.
func (g *group) show(p Progress) (ends bool) {
	if calling("function Due of the observer", func() bool { return watches(g.observer) }) {
		calling("observer", func() bool { g.observer.Observe(p); return true })
	}
	return g.o.Until != nil && calling("function Until", func() bool { return g.o.Until(p) })
}

// Progress is where a run stands.
type Progress struct {
	Method     string // its name, such as "sgmcmc.SGHMC"
	Chains     int    // that run at once
	FirstChain uint64 // the number of the first of them
	Step       int    // updates done, of all runs of a resumed run; transitions of all chains where they run freely
	Steps      int    // asked for; 0 for passes over the data
	Warming    bool   // in the warm-up
	Draws      int    // draws of each chain so far
	Held       int    // updates of single chains that were held because something was not finite
	Divergent  int    // transitions that diverged after the warm-up
	Gradients  int    // evaluated by this process, one for each chain
	StepSize   float64
	Elapsed    time.Duration // since this run started or was resumed
	Resumed    int           // the step that this run was resumed after; 0 when it started afresh

	// For methods that are updated, and nil for those that drive themselves: the state and what its update told.
	State State
	Info  Info
	// Transform made the state. Optional interfaces tell more about it, for example [Thermal].
	Transform Transform
}

// String is the state of the run in one line.
func (p Progress) String() string {
	var b strings.Builder
	phase := "sampling"
	if p.Warming {
		phase = "warm-up"
	}
	fmt.Fprintf(&b, "%s, %d chains, %s", p.Method, p.Chains, phase)
	if p.Steps > 0 {
		fmt.Fprintf(&b, " %.0f %%", 100*float64(p.Step)/float64(p.Steps))
	}
	if seconds := p.Elapsed.Seconds(); seconds > 0 {
		fmt.Fprintf(&b, ", %.3g gradients/s", float64(p.Gradients)/seconds)
	}
	if p.Held > 0 {
		fmt.Fprintf(&b, ", %d held", p.Held)
	}
	if p.Divergent > 0 {
		fmt.Fprintf(&b, ", %d divergent", p.Divergent)
	}
	if p.StepSize > 0 {
		fmt.Fprintf(&b, ", step size %.3g", p.StepSize)
	}
	if t, ok := kineticTemperature(p); ok {
		fmt.Fprintf(&b, ", T_K/T %.3f", t)
	}
	if made := p.Step - p.Resumed; made > 0 && p.Step < p.Steps {
		left := time.Duration(float64(p.Elapsed) * float64(p.Steps-p.Step) / float64(made))
		fmt.Fprintf(&b, ", %v left", left.Round(time.Second))
	}
	return b.String()
}

// kineticTemperature is the kinetic temperature of all momenta of all chains over the temperature set: 1 on average
// where a sampler simulates its target. It is false for methods without momenta, and at temperature 0.
func kineticTemperature(p Progress) (float64, bool) {
	thermal, ok := p.Transform.(Thermal)
	if !ok || p.State == nil || !(p.Info.Temperature > 0) {
		return 0, false
	}
	rows, err := thermal.KineticTemperatures(p.State)
	if err != nil || len(rows) == 0 {
		return 0, false
	}
	layout := p.State.Position().Layout
	sum := 0.0
	for _, row := range rows {
		for i, site := range layout.Sites {
			sum += row[i] * float64(site.Size)
		}
	}
	return sum / float64(len(rows)*layout.Dim()) / p.Info.Temperature, true
}

// progressLine draws a run on one line of a terminal, whenever it is due.
type progressLine struct {
	due   atomic.Bool
	timer *time.Timer
	drawn bool
}

// newProgressLine is, where standard error is no terminal, one that logs, and silent without a logger.
func newProgressLine(logger *slog.Logger) Observer {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		if logger == nil {
			return Silent
		}
		return newProgressLog(logger, logEvery)
	}
	l := &progressLine{}
	l.timer = time.AfterFunc(progressEvery, func() { l.due.Store(true) })
	return l
}

// Due is true now and then.
func (l *progressLine) Due() bool { return l.due.Load() }

// The first line comes late, so that short runs leave no trace.
const progressEvery = 200 * time.Millisecond

func (l *progressLine) Observe(p Progress) {
	if !l.due.Swap(false) {
		return
	}
	l.drawn = true
	_, _ = fmt.Fprintf(os.Stderr, "\r\x1b[K%s", p)
	l.timer.Reset(progressEvery)
}

// end clears the line.
func (l *progressLine) end() {
	l.timer.Stop()
	if l.drawn {
		_, _ = fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	l.drawn = false
}

// logEvery is how often a run without a terminal says where it stands.
const logEvery = time.Minute

// progressLog logs where a run stands, now and then.
type progressLog struct {
	progressLine
	logger *slog.Logger
	every  time.Duration
}

func newProgressLog(logger *slog.Logger, every time.Duration) *progressLog {
	l := &progressLog{logger: logger, every: every}
	l.timer = time.AfterFunc(every, func() { l.due.Store(true) })
	return l
}

func (l *progressLog) Observe(p Progress) {
	if l.due.Swap(false) {
		l.logger.Info(p.String(), "step", p.Step, "steps", p.Steps, "draws", p.Draws, "divergent", p.Divergent,
			"held", p.Held)
		l.timer.Reset(l.every)
	}
}
