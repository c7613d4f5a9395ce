package ppl

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// mark notes in a recording where the model is, so that an operation that the compiler refuses has a site and a line. A
// loop over time has those of its first step.
func (s *Site) mark() {
	steps := s.ctx.steps
	if s.Kind == KindData || !ts.KelvinRecorded() || strings.Count(steps, "[") != strings.Count(steps, "[0]") {
		return
	}
	mark(fmt.Sprintf("at site %q, or behind it%s", s.Name, line()))
}

func mark(text string) {
	if ts.KelvinRecorded() {
		ts.MustEmpty([]int64{thread.MarkSize, 0, int64(thread.Mark(text))}, gotch.Double, gotch.CPU)
	}
}

// line is where the model called this package.
func line() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "github.com/kelvin-ppl/kelvin/ppl.") {
			return fmt.Sprintf(" (%s:%d)", path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
