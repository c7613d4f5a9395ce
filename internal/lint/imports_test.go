package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// family is the method family that a package belongs to, "" for none. What other families use is none.
func family(dir string) string {
	parts := strings.Split(dir, "/")
	if len(parts) < 2 || parts[0] != "infer" || slices.Contains([]string{"infer/optim", "infer/path", "infer/curvature",
		"infer/hmc/kernel", "infer/method"}, dir) || slices.Contains([]string{"internal", "native"}, parts[1]) {
		return ""
	}
	return parts[1]
}

// within says whether a package is one of the rooms, or below one.
func within(dir string, rooms ...string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool { return dir == r || strings.HasPrefix(dir, r+"/") })
}

// Imports point one way, as section 1 of docs/design.md has it.
func TestImportsPointOneWay(t *testing.T) {
	all, err := imports("../..")
	require.NoError(t, err)
	require.Greater(t, len(all), 50)
	for dir, names := range all {
		for _, name := range names {
			wrong := false
			switch {
			case within(dir, "torch"):
				wrong = within(name, "infer", "dist", "ppl", "models", "draws", "diag", "store")
			case within(dir, "dist"):
				wrong = within(name, "infer", "ppl", "models", "diag", "store")
			case dir == "infer":
				wrong = family(name) != "" || within(name, "dist", "ppl", "models", "store", "diag")
			case family(dir) == "svi":
				wrong = within(name, "models", "store")
			case within(dir, "infer"):
				wrong = within(name, "dist", "ppl", "models", "store")
			case within(dir, "ppl"):
				wrong = family(name) != "" || within(name, "models", "store")
			case dir == "serve":
				wrong = within(name, "infer", "dist", "ppl", "models", "torch") &&
					!within(name, "infer/hmc/kernel", "infer/native/portable")
			case within(dir, "draws", "diag", "store", "data"):
				wrong = within(name, "infer", "dist", "ppl", "models", "torch") &&
					dir != "data/batch"
			case within(dir, "models"):
				wrong = family(name) != "" && !(dir == "models/nn" && name == "infer/laplace")
			}
			wrong = wrong || within(name, "examples", "bench") && !within(dir, "examples", "bench", "internal")
			if from, to := family(dir), family(name); from != "" && to != "" && from != to {
				wrong = true
			}
			if wrong {
				t.Errorf("%s imports %s", dir, name)
			}
		}
	}
}

// Rooms of plain Go build without libtorch: nothing that they need imports gotch.
func TestPlainGoNeedsNoLibtorch(t *testing.T) {
	all, err := imports("../..")
	require.NoError(t, err)
	var needs func(dir string, seen map[string]bool) string
	needs = func(dir string, seen map[string]bool) string {
		for _, name := range all[dir] {
			if strings.HasPrefix(name, "github.com/sugarme/gotch") {
				return dir
			}
			if all[name] != nil && !seen[name] {
				seen[name] = true
				if by := needs(name, seen); by != "" {
					return by
				}
			}
		}
		return ""
	}
	require.Equal(t, "torch", needs("torch", map[string]bool{}))
	for dir := range all {
		if within(dir, "draws", "data", "diag", "store", "serve", "infer/hmc/kernel", "infer/native/portable",
			"models/nn/kernels", "models/nn/safetensors", "cmd/kelvin", "internal/setup",
			"internal/gotch") && dir != "data/batch" {
			require.Empty(t, needs(dir, map[string]bool{}), dir)
		}
	}
}
