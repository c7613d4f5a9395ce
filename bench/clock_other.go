//go:build !linux

package bench

import "time"

var started = time.Now()

// threadTime is the time on the clock, where the system does not tell that of a thread.
func threadTime() time.Duration { return time.Since(started) }
