// Package progress shows a run on the terminal, for the examples.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bar is an observer that draws a progress bar on a terminal; elsewhere it is silent.
type Bar struct {
	out  io.Writer
	name string
	bar  *progressbar.ProgressBar
	last time.Time
}

// New makes a bar for one run. It is drawn on f when f is a terminal.
func New(f *os.File, name string) *Bar {
	b := &Bar{out: io.Discard, name: name}
	if term.IsTerminal(int(f.Fd())) {
		b.out = f
	}
	return b
}

// Observe moves the bar.
func (b *Bar) Observe(p infer.Progress) {
	done := p.Step == p.Steps
	if b.out == io.Discard || (!done && time.Since(b.last) < 100*time.Millisecond) {
		return
	}
	b.last = time.Now()
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(p.Steps, progressbar.OptionSetWriter(b.out), progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish())
	}
	text := b.name
	if p.Held > 0 {
		text += fmt.Sprintf(" (%d not finite)", p.Held)
	}
	if t, ok := kineticTemperature(p); ok {
		text += fmt.Sprintf(" T_K/T %.3f", t)
	}
	b.bar.Describe(text)
	_ = b.bar.Set64(p.Step)
}
