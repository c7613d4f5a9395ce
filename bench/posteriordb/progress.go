package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// progressLine is the line of a terminal that says where a run stands. It is written again a few times a second.
type progressLine struct {
	w    io.Writer
	name string
	last time.Time
}

const eraseLine = "\r\x1b[K"

func (l *progressLine) show(p hmc.Progress) {
	if now := time.Now(); now.Sub(l.last) > 200*time.Millisecond {
		l.last = now
		fmt.Fprintf(l.w, "%s%s: %v", eraseLine, l.name, p)
	}
}

// clear takes the line away, if there is one.
func (l *progressLine) clear() {
	if !l.last.IsZero() {
		fmt.Fprint(l.w, eraseLine)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
