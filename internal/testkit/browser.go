package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// chromium is a Chromium that runs here, or empty.
var chromium = sync.OnceValue(func() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			dir, err := os.MkdirTemp("", "kelvin")
			if err != nil {
				return ""
			}
			defer os.RemoveAll(dir)
			if dom, _, err := dump(program, dir, "data:text/html,<p>works</p>"); err == nil && strings.Contains(dom, "works") {
				return program
			}
		}
	}
	return ""
})

// dump returns the elements of a page after its scripts have run, and what Chromium logs.
func dump(program, dir, address string) (dom, log string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--enable-logging=stderr", "--v=0", "--user-data-dir="+dir, "--virtual-time-budget=1000", "--dump-dom", address)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	return string(out), stderr.String(), err
}

var scripts = regexp.MustCompile(`(?s)<(script|style)\b[^>]*>.*?</(?:script|style)>`)

// Browser opens a page in Chromium and returns its elements after the scripts have run, without the scripts. Anything
// on the console is a failure.
func Browser(t *testing.T, page, hash string) string {
	t.Helper()
	program := chromium()
	if program == "" {
		t.Skip("there is no Chromium that runs here: plots are not looked at")
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := atomicfile.Write(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	dom, log, err := dump(program, t.TempDir(), "file://"+file+hash)
	if err != nil {
		t.Fatalf("Chromium: %v\n%s", err, log)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the console says: %s", line)
		}
	}
	return scripts.ReplaceAllString(dom, "")
}
