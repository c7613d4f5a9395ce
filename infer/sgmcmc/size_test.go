package sgmcmc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files of samplers hold their equations. What grows beyond these limits is not a matter of one sampler: it belongs
// in infer/method, or in a package below infer/internal.
func TestSamplersAreShort(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	all := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code := 0
		for line := range strings.Lines(string(text)) {
			all++
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				code++
			}
		}
		limit := 130
		if file == "sghmc.go" {
			limit = 80
		}
		assert.LessOrEqual(t, code, limit, "lines of code of %s", file)
	}
	assert.Greater(t, all, 700, "lines that were counted")
	assert.LessOrEqual(t, all, 1100, "lines of the package")
}
