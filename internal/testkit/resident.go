package testkit

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Resident is the memory of this process that is in RAM, in bytes. A system that does not tell it skips the test.
func Resident(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("resident memory is read from /proc, which this system does not have: %v", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return int(pages) * os.Getpagesize()
}

// Grown asserts that memory grew by less than a number of bytes since it was before. Under the race detector it asserts
// nothing: the detector's own memory grows with each place and goroutine that it watches.
func Grown(t testing.TB, before, less int, why ...any) {
	t.Helper()
	if grown := Resident(t) - before; !watched {
		assert.Less(t, grown, less, why...)
	}
}

// GrownInRounds asserts that memory grew by less than a number of bytes in one of some rounds. A leak grows in each of
// them; the memory that threads keep for later allocations grows in some.
func GrownInRounds(t testing.TB, rounds int, less int, round func()) {
	t.Helper()
	least := int(math.MaxInt64)
	for range rounds {
		before := Resident(t)
		round()
		least = min(least, Resident(t)-before)
	}
	if !watched {
		assert.Less(t, least, less)
	}
}
