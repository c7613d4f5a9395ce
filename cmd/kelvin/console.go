package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
)

// width is where the times of the steps stand.
const width = 100

// console shows how a set-up gets on. On a terminal the step at work is one line that is written over when it ends, and
// a download has a bar; elsewhere every message is a line.
type console struct {
	w        io.Writer
	terminal bool
	open     int // characters of the line to be written over
	bar      *progressbar.ProgressBar
	tenth    int64 // of a download, last reported off a terminal
}

func newConsole(w io.Writer, terminal bool) *console {
	return &console{w: w, terminal: terminal}
}

// clear takes the unfinished line away.
func (c *console) clear() {
	if c.bar != nil {
		_ = c.bar.Clear()
		c.bar = nil
	}
	if c.open > 0 {
		fmt.Fprintf(c.w, "\r%s\r", strings.Repeat(" ", c.open))
		c.open = 0
	}
}

// Start shows what is being done.
func (c *console) Start(text string) {
	c.clear()
	text += " …"
	if !c.terminal {
		fmt.Fprintln(c.w, text)
		return
	}
	fmt.Fprint(c.w, text)
	c.open = utf8.RuneCountInString(text)
}

// Done shows a finished step with its time.
func (c *console) Done(text string, took time.Duration) {
	c.clear()
	dots := max(3, width-utf8.RuneCountInString(text))
	fmt.Fprintf(c.w, "%s %s %6.1f s\n", text, strings.Repeat(".", dots), took.Seconds())
}

// Note shows something that the user should know.
func (c *console) Note(text string) {
	c.clear()
	fmt.Fprintf(c.w, "note: %s\n", text)
}

// Warn shows something that the user should change.
func (c *console) Warn(text string) {
	c.clear()
	fmt.Fprintf(c.w, "warning: %s\n", text)
}

// Progress shows how much of a download has arrived: a bar on a terminal, a line for every tenth elsewhere.
func (c *console) Progress(text string, done, total int64) {
	if !c.terminal {
		if total <= 0 {
			return
		}
		if tenth := done * 10 / total; tenth != c.tenth {
			c.tenth = tenth
			fmt.Fprintf(c.w, "%s: %d %% of %d MB\n", text, tenth*10, total>>20)
		}
		return
	}
	if c.bar == nil {
		c.clear()
		c.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(c.w),
			progressbar.OptionSetDescription(text),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetWidth(30),
		)
	}
	_ = c.bar.Set64(done)
}

// Log receives what commands print when the user wants to see it.
func (c *console) Log() io.Writer { return c.w }
