//go:build slow && linux

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDeployed runs a program in a folder that holds it, the shared libraries that it names, and nothing else: no
// compiler, no Go, no headers, no /proc.
func TestDeployed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root folder of a process")
	}
	root := t.TempDir()
	program := filepath.Join(root, "program")
	// libtorch comes as shared libraries, which need libc's; what else there is goes into the program.
	out, err := exec.Command("go", "build", "-ldflags",
		"-s -w -extldflags '-static-libgcc -static-libstdc++'", "-o", program, "./testdata/deployed").CombinedOutput()
	require.NoError(t, err, "%s", out)
	size := length(t, program)
	libraries := copyLibraries(t, program, root)

	cmd := exec.Command("/program")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("program %.0f MB, libraries %.0f MB\n%s", float64(size)/1e6, float64(libraries)/1e6, out)
	assert.Regexp(t, `(?m)^gradient vm \(.*no C compiler`, string(out))
	// The posterior has the precision 4 + 1/2² and the mean Σy / 4.25.
	exact := (1.2 - 0.4 + 2.3 + 0.7) / 4.25
	assert.Less(t, math.Abs(figure(t, out, "mean")-exact), 4*figure(t, out, "mcse"))
	assert.Less(t, figure(t, out, "mcse"), 0.03, "4000 draws with a standard deviation of 0.485")
}

// copyLibraries copies the shared libraries of a program, and the loader, to their places below root. It returns their
// size in bytes.
func copyLibraries(t *testing.T, program, root string) (bytes int64) {
	t.Helper()
	out, err := exec.Command("ldd", program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	found := regexp.MustCompile(`(?m)(?:=> |^\s*)(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1)
	require.Greater(t, len(found), 5, "%s", out)
	for _, f := range found {
		to := filepath.Join(root, f[1])
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		in, err := os.Open(f[1])
		require.NoError(t, err)
		file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
		require.NoError(t, err)
		n, err := io.Copy(file, in)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.NoError(t, file.Close())
		bytes += n
	}
	return bytes
}

func length(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// figure is a number that the program printed behind a name.
func figure(t *testing.T, out []byte, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(fmt.Sprintf(`(?m)^%s (\S+)$`, name)).FindSubmatch(out)
	require.NotNil(t, found, "%s", out)
	v, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return v
}
