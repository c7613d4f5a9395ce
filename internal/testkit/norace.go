//go:build !race

package testkit

// watched says whether this is a build for the race detector.
const watched = false
