//go:build !race

package resident

// watched says whether this is a build for the race detector.
const watched = false
