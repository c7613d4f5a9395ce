//go:build linux

package main

import "syscall"

// limitMemory bounds the address space of the process, so that a huge request fails at once.
func limitMemory(bytes uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: bytes, Max: bytes})
}
