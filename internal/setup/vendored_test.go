package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With -vendor the adapted gotch is a folder of the module, go.mod leads there and there is no go.work. A second run
// makes the folder anew; what set-up has not made stays, and a go.work that would go before is named.
func TestVendor(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{version: "1.13.0"})
	p, dir := parts(t), newModule(t, plainModule)
	for range 2 {
		res, err := runSetup(t, m, p, Options{Dir: dir, Vendor: "third/gotch"})
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, "third/gotch"), res.Copy)
		assert.NoFileExists(t, filepath.Join(dir, "go.work"))
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		require.NoError(t, err)
		assert.Contains(t, string(text), "replace github.com/sugarme/gotch v0.9.1 => ./third/gotch\n")
		project, err := FindProject(t.Context(), m.System, dir)
		require.NoError(t, err)
		used, err := InUse(project)
		require.NoError(t, err)
		assert.Equal(t, res.Copy, used.Dir)
		left, err := filepath.Glob(filepath.Join(dir, "third", "*"))
		require.NoError(t, err)
		assert.Equal(t, []string{res.Copy}, left)
		assert.NoFileExists(t, filepath.Join(res.Copy, "old"))
		require.NoError(t, os.WriteFile(filepath.Join(res.Copy, "old"), nil, 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mine"), 0o755))
	for to, words := range map[string]string{"mine": "set-up has not made it", "../x": "no folder below",
		".": "no folder below", "/x": "no folder below"} {
		_, err := runSetup(t, m, p, Options{Dir: dir, Vendor: to})
		require.ErrorContains(t, err, words, to)
	}
	other := newModule(t, plainModule)
	_, err := runSetup(t, m, p, Options{Dir: other})
	require.NoError(t, err)
	_, err = runSetup(t, m, p, Options{Dir: other, Vendor: "gotch"})
	require.ErrorContains(t, err, "would go before go.mod")
}
