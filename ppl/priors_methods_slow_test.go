//go:build slow

package ppl_test

import "testing"

func TestEveryMethodTakesEveryConstantPrior(t *testing.T) {
	crossed(t, func(int, int) bool { return true })
}
