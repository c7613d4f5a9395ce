package main

import (
	"fmt"
	"os"
)

// resident is the resident memory of this process in MB: the second number of /proc/self/statm, in pages.
func resident() (float64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("resident memory cannot be read: %w", err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0, fmt.Errorf("resident memory cannot be read: /proc/self/statm holds %q: %w", statm, err)
	}
	return float64(pages) * float64(os.Getpagesize()) / 1e6, nil
}
