//go:build unix

package main

import (
	"syscall"
	"time"
)

// processor is the processor time of this process.
func processor() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
