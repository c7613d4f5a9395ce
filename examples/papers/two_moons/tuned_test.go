package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of each method the least NLL is chosen, but never a setting that left updates out.
func TestChoose(t *testing.T) {
	trials := []trial{{Method: "a", NLL: 2}, {Method: "a", NLL: 1}, {Method: "a", NLL: 0.5, Held: 1}, {Method: "b"}}
	choose(trials)
	var chosen []bool
	for _, x := range trials {
		chosen = append(chosen, x.Chosen)
	}
	require.Equal(t, []bool{false, true, false, true}, chosen)
}

// A candidate changes settings of its own method only, and every candidate is one that the study has a row for.
func TestCandidates(t *testing.T) {
	for _, reference := range []bool{false, true} {
		texts := map[string]bool{}
		for _, c := range candidates(reference) {
			s := tuned{}
			c.set(&s)
			require.NotEqual(t, tuned{}, s, c.text)
			require.False(t, texts[c.method+c.text], c.text)
			texts[c.method+c.text] = true
			require.True(t, slices.ContainsFunc(methods, func(m method) bool { return m.name == c.method }), c.method)
			if !reference {
				continue
			}
			shown := false
			for _, row := range compared {
				shown = shown || row.method == c.method
			}
			require.True(t, shown, c.method)
		}
	}
}
