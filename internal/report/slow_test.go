//go:build slow

package report

import "testing"

// The size that the package comment promises.
func TestSizeOfManyDraws(t *testing.T) {
	bounded(t, "thousand", many(t, 4, 1000, 1000), Options{}, 1000)
}
