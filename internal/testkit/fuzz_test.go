// The race detector takes more memory for itself than the limit allows.
//go:build !race

package testkit

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sink []byte

// The limit holds: a process that takes half of it goes on, one that takes twice as much ends.
func TestLimit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux bounds the memory of a process so")
	}
	if os.Getenv(memory) != "" {
		LimitMemory()
		sink = make([]byte, 256<<20)
		for i := range sink {
			sink[i] = 1
		}
		println("half")
		sink = append(make([]byte, 1<<30), 1)
		println("twice")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLimit$")
	cmd.Env = append(os.Environ(), memory+"=536870912")
	out, err := cmd.CombinedOutput()
	require.Error(t, err) // in words of the runtime that differ with where the memory was wanted
	assert.Contains(t, string(out), "half")
	assert.False(t, strings.Contains(string(out), "twice"))
}
