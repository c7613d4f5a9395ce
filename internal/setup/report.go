package setup

import (
	"io"
	"time"
)

// Reporter hears how a set-up gets on. Its methods are called from one goroutine at a time.
type Reporter interface {
	// Start says that something has begun that takes a while.
	Start(text string)
	// Done says that a step has ended, and how long it took.
	Done(text string, took time.Duration)
	// Note tells something that the user should know.
	Note(text string)
	// Warn tells something that the user should change.
	Warn(text string)
	// Progress counts the bytes of a download; total is negative when it is not known.
	Progress(text string, done, total int64)
	// Log receives what the commands that set-up runs print, when the user asked to see it.
	Log() io.Writer
}

// silent is the Reporter of a caller that wants none.
type silent struct{}

func (silent) Start(string)                  {}
func (silent) Done(string, time.Duration)    {}
func (silent) Note(string)                   {}
func (silent) Warn(string)                   {}
func (silent) Progress(string, int64, int64) {}
func (silent) Log() io.Writer                { return io.Discard }

func reporterOrSilent(r Reporter) Reporter {
	if r == nil {
		return silent{}
	}
	return r
}

// log returns where commands write when the user wants to see them, and nil otherwise.
func (j *job) log() io.Writer {
	if !j.opts.Verbose {
		return nil
	}
	return j.report.Log()
}
