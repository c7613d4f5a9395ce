//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

// A peer's program that is made up: its draws are 4 chains of 1000 independent numbers of N(0, 3²), which is the law of
// v. Its first run took 400 and 4000 gradients, its second more than the limit, its third fails. 4400 gradients over
// about 4000 effective draws are 1.1; a chain's warm-up took 100.
func TestPeers(t *testing.T) {
	root, script := t.TempDir(), "#!/bin/sh\n"+`while read request
do case "$request" in
*compile*) echo '{"seconds": 1}' ;;
*'"stan","seed":1'*) echo '{"names": ["v"], "chains": 4, "draws": 1000, "warmup_gradients": 400, "gradients": 4000}' ;;
*'"stan","seed":2'*) echo '{"names": ["v"], "chains": 4, "draws": 1000, "warmup_gradients": 1, "gradients": 9999}' ;;
*) echo 'it is over' >&2; exit 1 ;;
esac; done
exit 0
`
	python := filepath.Join(root, "stan", "bin", "python")
	require.NoError(t, os.MkdirAll(filepath.Dir(python), 0o755))
	require.NoError(t, os.WriteFile(python, []byte(script), 0o755))
	var raw bytes.Buffer
	for _, chain := range chains(1000, 1, 0, 0, 0, 0) {
		for _, v := range chain {
			require.NoError(t, binary.Write(&raw, binary.LittleEndian, 3*v))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "draws"), raw.Bytes(), 0o600))
	e, err := peer.Prepare(context.Background(), root, python, io.Discard)
	require.NoError(t, err)
	p := &peers{environments: e, scratch: root, patience: time.Minute}
	s := settings{seeds: 3, limit: 5000, options: infer.Options{Chains: 4, Warmup: 1000, Draws: 1000}}
	chosen, err := choose(targets, "funnel")
	require.NoError(t, err)
	target := chosen[0].make(newMaker("funnel"))
	rows, err := p.measure(context.Background(), s, chosen[0], target, target.exact)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, "Stan", rows[0].Method)
	require.Equal(t, 2, rows[0].Failed)
	require.Contains(t, rows[0].why[0], "seed 1: more than 5000 gradients")
	require.Contains(t, rows[0].why[1], "it is over")
	s.seeds = 1
	rows, err = p.measure(context.Background(), s, chosen[0], target, target.exact)
	require.NoError(t, err)
	require.Zero(t, rows[0].Failed, rows[0].why)
	require.Equal(t, 100.0, *rows[0].WarmupGradients)
	require.InDelta(t, 1.1, *rows[0].GradientsPerESS, 0.2) // the ESS of independent draws, to a few percent
	require.Equal(t, 1, rows[1].Failed)                    // nutpie, which the program does not know
}
