package testkit

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// limit bounds the private memory of the process, beside what it has already: libraries have some.
func limit(bytes uint64) error {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kilobytes uint64
		if !strings.HasPrefix(lines.Text(), "VmData:") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "VmData: %d kB", &kilobytes); err != nil {
			return err
		}
		bytes += kilobytes << 10
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &now); err != nil {
		return err
	}
	bytes = min(bytes, now.Max) // a child cannot have more than its parent
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes})
}
