//go:build !linux

package main

import (
	"fmt"
	"runtime"
)

// resident is the resident memory of this process in MB.
func resident() (float64, error) {
	return 0, fmt.Errorf("resident memory is read from /proc/self/statm, which %s does not have: run this on Linux",
		runtime.GOOS)
}
