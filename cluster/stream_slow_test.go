//go:build slow && linux

package cluster_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The run of TestOneGigabyte: 256 chains of 500 draws of 1000 values are 1.02 GB, in 256 tasks of 4 MB.
const wideChains, wideDraws, wideDim = 256, 500, 1000

func wide(c *ppl.Ctx) { c.Sample("x", dist.Normal(0, 1).Expand(wideDim)) }

// wideOptions are those of some chains; all start at 0.
func wideOptions(p infer.Program, first, chains int) (infer.Options, error) {
	flat, err := torch.FromSlice(make([]float64, wideDim))
	return infer.Options{Chains: chains, FirstChain: uint64(first), Group: 1, Warmup: 10, Draws: wideDraws, Seed: 8,
		Start: infer.Params{Layout: p.Layout(), Flat: flat}, Observer: infer.Silent}, err
}

// wideReport is what the client of TestOneGigabyte prints: a hash of each chain, and its memory.
type wideReport struct {
	Chains []string
	Peak   int
}

func init() {
	cluster.Register("wide", func([]byte, infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(wide, nil)
		return cluster.Spec{Program: program, Method: sghmc(1)}, err
	})
	children["KELVIN_TEST_CLIENT"] = func(text string) error {
		url, path, _ := strings.Cut(text, " ")
		p, err := ppl.Compile(wide, nil)
		if err != nil {
			return err
		}
		o, err := wideOptions(p, 0, wideChains)
		if err != nil {
			return err
		}
		sink := &store.ZarrSink{Path: path, Options: store.ZarrOptions{Zlib: -1, Chunk: 125}}
		hashes := make([]hash.Hash, wideChains)
		for c := range hashes {
			hashes[c] = sha256.New()
		}
		o.Discard, o.Save = true, func(run string, from []int, block *draws.Draws) error {
			for c := range hashes {
				hashRows(hashes[c], block, c)
			}
			return sink.Save(run, from, block)
		}
		_, err = cluster.Sample(context.Background(), p, sghmc(1), cluster.Options{Options: o, Job: "wide", URL: url})
		if err != nil {
			return err
		}
		if err := sink.Close(); err != nil {
			return err
		}
		var r wideReport
		for c := range hashes {
			r.Chains = append(r.Chains, fmt.Sprintf("%x", hashes[c].Sum(nil)))
		}
		if r.Peak, err = peak("self"); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
}

func hashRows(h hash.Hash, d *draws.Draws, chain int) {
	for i := range d.Len(chain) {
		var row []byte
		for _, x := range d.Row(chain, i) {
			row = binary.LittleEndian.AppendUint64(row, math.Float64bits(x))
		}
		h.Write(row)
	}
}

// peak is the largest resident memory that a process has had, in bytes.
func peak(pid string) (int, error) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return int(kib << 10), err
		}
	}
	return 0, fmt.Errorf("no VmHWM in the status of process %s", pid)
}

// 1 GB of draws goes from two workers over a server to a Zarr store, and none of these processes ever has 300 MB in
// memory, of which libtorch takes two thirds. All bits are those of local runs.
func TestOneGigabyte(t *testing.T) {
	dir := t.TempDir()
	server := child(t, "KELVIN_TEST_SERVER="+filepath.Join(dir, "server")+" 127.0.0.1:0")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	scanner := bufio.NewScanner(out)
	require.True(t, scanner.Scan())
	url := scanner.Text()
	workers := []*exec.Cmd{child(t, "KELVIN_TEST_WORKER="+url), child(t, "KELVIN_TEST_WORKER="+url)}
	for _, w := range workers {
		require.NoError(t, w.Start())
	}
	path := filepath.Join(dir, "draws.zarr")
	client := child(t, "KELVIN_TEST_CLIENT="+url+" "+path)
	client.Stderr = os.Stderr
	text, err := client.Output()
	require.NoError(t, err)
	var r wideReport
	require.NoError(t, json.Unmarshal(text, &r))

	const most = 300_000_000
	assert.Less(t, r.Peak, int(most))
	seen := []int{r.Peak}
	for _, w := range append(workers, server) {
		bytes, err := peak(strconv.Itoa(w.Process.Pid))
		require.NoError(t, err)
		assert.Less(t, bytes, int(most))
		seen = append(seen, bytes)
	}
	t.Logf("seen: client, workers and server had %d bytes", seen)

	var stored int
	require.NoError(t, filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		stored += int(info.Size())
		return err
	}))
	assert.GreaterOrEqual(t, stored, int(8*wideChains*wideDraws*wideDim))
	p, err := ppl.Compile(wide, nil)
	require.NoError(t, err)
	for c := range wideChains {
		o, err := wideOptions(p, c, 1)
		require.NoError(t, err)
		want, err := infer.Sample(t.Context(), p, sghmc(1), o)
		require.NoError(t, err)
		h := sha256.New()
		hashRows(h, want, 0)
		require.Equal(t, fmt.Sprintf("%x", h.Sum(nil)), r.Chains[c], "chain %d", c)
	}
}
