package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Functions, methods, fields, variables and types count where a user sees them; unexported ones and T do not.
func TestGotchTensors(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"torch/t.go": "package torch\n\nimport \"github.com/sugarme/gotch/ts\"\n\ntype Tensor struct{ t *ts.Tensor }\n\n" +
			"func (x Tensor) T() *ts.Tensor { return x.t }\n",
		"ppl/a.go": "package ppl\n\nimport gt \"github.com/sugarme/gotch/ts\"\n\ntype Values map[string]*gt.Tensor\n\n" +
			"type S struct {\n\tX *gt.Tensor\n\ty *gt.Tensor\n}\n\nfunc (S) M() []*gt.Tensor { return nil }\n\n" +
			"var V func(*gt.Tensor)\n\nfunc hidden(*gt.Tensor) {}\n",
		"internal/b/b.go": "package b\n\nimport \"github.com/sugarme/gotch/ts\"\n\nvar X *ts.Tensor\n",
	} {
		file := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	found, err := gotchTensors(root)
	require.NoError(t, err)
	require.Len(t, found, 4)
	for i, name := range []string{"Values", "S.X", "M", "V"} {
		assert.Contains(t, found[i], name+" has gotch's tensor")
	}
}
