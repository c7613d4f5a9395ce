// Package thread keeps what an OS thread is doing: which levels of vmap are open, whether its evaluation is recorded,
// whether first derivatives alone will be taken of it, and whether it is to be fast. Callers hold their goroutine on
// its thread meanwhile.
package thread

// #include "thread.h"
import "C"

import "fmt"

// Level is a level of vmap.
type Level struct{ Number, Size int64 }

// Push notes that a level of vmap is open.
func Push(l Level) error {
	t := C.kelvin_this_thread()
	if t.levels == C.KELVIN_THREAD_LEVELS {
		return fmt.Errorf("vmap: more than %d levels are open", t.levels)
	}
	t.level[t.levels], t.size[t.levels] = C.long(l.Number), C.long(l.Size)
	t.levels++
	return nil
}

// Pop notes that the innermost level is closed.
func Pop() { C.kelvin_this_thread().levels-- }

// Levels are those that are open, the innermost one last.
func Levels() []Level {
	t := C.kelvin_this_thread()
	var out []Level
	for i := range int(t.levels) {
		out = append(out, Level{int64(t.level[i]), int64(t.size[i])})
	}
	return out
}

// GradientOnly notes that first derivatives alone are taken of what is evaluated until the function that it returns is
// called.
func GradientOnly() (done func()) {
	t := C.kelvin_this_thread()
	t.gradient_only++
	return func() { t.gradient_only-- }
}

// IsGradientOnly says whether no second derivatives will be taken.
func IsGradientOnly() bool { return C.kelvin_this_thread().gradient_only > 0 }

// Evaluate notes that what follows is an evaluation that is to be fast, until the function that it returns is called.
func Evaluate() (done func()) {
	t := C.kelvin_this_thread()
	t.evaluations++
	return func() { t.evaluations-- }
}

// Checks says whether values may be read to check them: no evaluation that is to be fast and no recording is in
// progress.
func Checks() bool {
	t := C.kelvin_this_thread()
	return t.evaluations == 0 && t.recording == 0
}

// Record sets the number of the recording in progress, 0 for none.
func Record(number int64) { C.kelvin_this_thread().recording = C.long(number) }

// Recording is the number of the recording in progress; 0 for none.
func Recording() int64 { return int64(C.kelvin_this_thread().recording) }

// Shorten asks loops over time for at most so many steps, the first ones, until the function that it returns is called.
// That says how many steps the loops have that were shortened: 0 where none was, and -1 where they differ.
func Shorten(steps int) (done func() (full int)) {
	t := C.kelvin_this_thread()
	steps0, full0 := t.short_steps, t.full_steps
	t.short_steps, t.full_steps = C.long(steps), 0
	return func() int {
		full := t.full_steps
		t.short_steps, t.full_steps = steps0, full0
		return int(full)
	}
}

// Steps is how many of n steps a loop over time is to have. Where they are fewer, it must be a function of the steps
// that does not tell one from another but by their data, so that more steps are more of the same.
func Steps(n int) int {
	t := C.kelvin_this_thread()
	if t.short_steps == 0 || n <= int(t.short_steps) {
		return n
	}
	if t.full_steps == 0 {
		t.full_steps = C.long(n)
	} else if t.full_steps != C.long(n) {
		t.full_steps = -1
	}
	return int(t.short_steps)
}
