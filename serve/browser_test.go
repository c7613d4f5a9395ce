//go:build slow && linux

package serve_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page predicts in Chromium what the model predicts here.
func TestBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	dir := t.TempDir()
	wasm := filepath.Join(dir, "browser.wasm")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", wasm, "./testdata/browser")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	for name, from := range map[string]string{"index.html": "testdata/browser/index.html",
		"sales.kelvin": "testdata/app/model.kelvin",
		"wasm_exec.js": filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec.js")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), read(t, from), 0o644))
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	page, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
		"--user-data-dir="+t.TempDir(), "--dump-dom", server.URL).Output()
	require.NoError(t, err)
	found := regexp.MustCompile(`<output id="prediction">([^<]*)</output>`).FindSubmatch(page)
	require.NotNil(t, found, string(page))
	got, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	y, err := load(t, "testdata/app/model.kelvin").Predict(nil, 1, map[string][]float64{"x": {1.5, 1}}, 3, "y")
	require.NoError(t, err)
	want, err := y.Mean("y")
	require.NoError(t, err)
	t.Logf("%v in the browser, %v here", got, want[0])
	require.InDelta(t, want[0], got, 1e-14*(1+want[0]))
}
