//go:build !slow

package testkit

// Slow says that all cases of a test are asked for, also those that add minutes: make test-slow.
const Slow = false
