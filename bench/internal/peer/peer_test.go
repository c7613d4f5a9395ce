package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Draws lie chain by chain, draw by draw, name by name.
func TestReadDraws(t *testing.T) {
	var raw bytes.Buffer
	for c := range 2 {
		for i := range 3 {
			for j := range 2 {
				require.NoError(t, binary.Write(&raw, binary.LittleEndian, float64(100*c+10*i+j)))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "draws")
	require.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
	a := Answer{Names: []string{"mu", "theta[1]"}, Chains: 2, Draws: 3}
	got, err := ReadDraws(file, a)
	require.NoError(t, err)
	require.Equal(t, map[string][][]float64{"mu": {{0, 10, 20}, {100, 110, 120}},
		"theta[1]": {{1, 11, 21}, {101, 111, 121}}}, got)
	a.Draws = 4
	_, err = ReadDraws(file, a)
	require.ErrorContains(t, err, "96 bytes of draws for 2 chains, 4 draws and 2 names")
	a.Draws, a.Names = 3, []string{"mu", "mu"}
	_, err = ReadDraws(file, a)
	require.ErrorContains(t, err, "twice")
}

// interpreter is a group's environment whose Python is a shell script.
func interpreter(t *testing.T, script string) *Environments {
	t.Helper()
	root := t.TempDir()
	bin := filepath.Join(root, Groups[0].Name, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "cache"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\n"+script), 0o755))
	return &Environments{root: root, messages: io.Discard}
}

func TestProcess(t *testing.T) {
	e := interpreter(t, `read request
case "$request" in *gradient*) echo '{"us": 1.5}' ;; esac
read request
echo '{"error": "RuntimeError: no"}'
read request
echo 'it is over' >&2
exit 1`)
	p, err := e.Start(context.Background(), Groups[0])
	require.NoError(t, err)
	defer p.Close()
	a, err := p.Ask("gradient", Request{}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1.5, a.US)
	_, err = p.Ask("gradient", Request{}, time.Minute)
	require.EqualError(t, err, "RuntimeError: no")
	_, err = p.Ask("gradient", Request{}, time.Minute)
	require.ErrorContains(t, err, "the program ended")
	_, err = p.Ask("gradient", Request{}, time.Minute)
	require.ErrorContains(t, err, "the program ended")

	e = interpreter(t, "read request\nexec sleep 60")
	p, err = e.Start(context.Background(), Groups[0])
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Ask("sample", Request{}, 100*time.Millisecond)
	require.ErrorContains(t, err, "sample took more than 100ms")
}
