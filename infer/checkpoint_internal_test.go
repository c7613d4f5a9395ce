package infer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// example is a header with every field, and the bytes of its tensors.
func example() (checkpointHeader, [][]byte) {
	return checkpointHeader{
			Model: "pima \"quoted\" π", Method: "*sgmcmc.sghmc",
			Sites:  []Site{{Name: "b", Size: 1}, {Name: "w", Shape: []int{2, 1}, Offset: 1, Size: 2}},
			Chains: 2, Seed: 1<<64 - 1, Warmup: 3, Thin: 2, NoDraws: true, Data: "full", Position: Position{Epoch: 4, Index: 1},
			Steps: 9, Held: 1,
			Stats: []string{"lp", "grad_norm", "held"}, Counts: []int{3, 2}, DrawsCRC: 1<<63 + 1, State: 9,
			Extra:   []byte("more"),
			Streams: torch.Streams{Seed: 1<<64 - 1, Chains: []uint64{0, 1<<64 - 2}, Offset: 1<<64 - 3},
			Tensors: []savedTensorInfo{{Name: "momenta", Shape: []int{2, 3}, DType: 6},
				{Name: "params", Shape: []int{2}, DType: 7}, {Name: "scalar", DType: 7}},
		}, [][]byte{
			float32Bytes([]float32{1, 2, 3, 4, 5, 6}), float64Bytes([]float64{7, 8}), float64Bytes([]float64{9}),
		}
}

// sealed is a file with this header text and these bytes after it, with the right length and checksum.
func sealed(header, rest []byte) []byte {
	b := []byte(checkpointMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(header)))
	b = append(append(b, header...), rest...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// What is written is read back: every field, also numbers that JSON's floating-point numbers could not hold.
func TestCheckpointRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), checkpointName)
	_, _, err := readCheckpoint(path)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	h, blobs := example()
	require.NoError(t, writeCheckpoint(path, h, blobs))
	got, gotBlobs, err := readCheckpoint(path)
	require.NoError(t, err)
	if diff := cmp.Diff(&h, got); diff != "" {
		t.Error(diff)
	}
	assert.Equal(t, blobs, gotBlobs)

	// The format, written out: a change of it breaks checkpoints that exist.
	text, err := h.marshal()
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, sealed(text, bytes.Join(blobs, nil)), raw)
	assert.NoFileExists(t, path+".new")
}

// Headers that are wrong though the checksum is right, as only another program would write them, are refused as well.
func TestCheckpointWithABadHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), checkpointName)
	for want, c := range map[string]struct{ header, rest string }{
		"invalid character":            {"nonsense", ""},
		"unexpected end of JSON input": {"", ""},
		"cannot unmarshal string":      {`{"steps": "many"}`, ""},
		"tensor params is incomplete": {`{"tensors": [{"name": "params", "shape": [2], "dtype": 7}]}`,
			"fifteen bytes.."},
		"tensor a is incomplete": {`{"tensors": [{"name": "a", "shape": [-1], "dtype": 7}]}`, "sixteen bytes..."},
		"tensor negative is incomplete": {`{"tensors": [{"name": "negative", "shape": [-1, -2], "dtype": 7}]}`,
			"sixteen bytes..."},
		"tensor large is incomplete": {`{"tensors": [{"name": "large", "shape": [9223372036854775807], "dtype": 7}]}`,
			"sixteen bytes..."},
		// 8·2³²·2²⁹ is 0 in 64 bits
		"tensor overflow is incomplete": {
			`{"tensors": [{"name": "overflow", "shape": [4294967296, 536870912], "dtype": 7}]}`, "sixteen bytes..."},
		"there is more after the tensors;": {`{"tensors": [{"name": "params", "shape": [2], "dtype": 6}]}`, "ten bytes."},
	} {
		require.NoError(t, os.WriteFile(path, sealed([]byte(c.header), []byte(c.rest)), 0o644))
		_, _, err := readCheckpoint(path)
		assert.ErrorIs(t, err, ErrCheckpoint)
		assert.ErrorContains(t, err, want)
	}
	// A header longer than the file.
	b := binary.LittleEndian.AppendUint64([]byte(checkpointMagic), 1<<40)
	sum := sha256.Sum256(b)
	require.NoError(t, os.WriteFile(path, append(b, sum[:]...), 0o644))
	_, _, err := readCheckpoint(path)
	assert.ErrorContains(t, err, "its header is too long")
}

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	os.Exit(m.Run())
}

// FuzzReadCheckpoint reads any bytes, as they are and as the header and tensors of a file with the right checksum: the
// answer is an ErrCheckpoint, or tensors of the sizes that the header says, which together are the rest of the file.
func FuzzReadCheckpoint(f *testing.F) {
	h, blobs := example()
	text, err := h.marshal()
	if err != nil {
		f.Fatal(err)
	}
	rest := bytes.Join(blobs, nil)
	f.Add(sealed(text, rest), []byte{})
	f.Add(text, rest)
	f.Add(text, rest[:len(rest)-1])
	f.Add([]byte(checkpointMagic), make([]byte, 40))
	shapes := `{"shape": [-1, -8]}, {"shape": [4611686018427387904, 4]}, {"shape": [0, 9223372036854775807]}`
	f.Add([]byte(`{"tensors": [`+shapes+`]}`), []byte("12345678"))
	path := filepath.Join(f.TempDir(), checkpointName)
	f.Fuzz(func(t *testing.T, header, rest []byte) {
		for _, raw := range [][]byte{append(bytes.Clone(header), rest...), sealed(header, rest)} {
			if err := os.WriteFile(path, raw, 0o644); err != nil {
				t.Fatal(err)
			}
			h, blobs, err := readCheckpoint(path)
			if err != nil {
				if !errors.Is(err, ErrCheckpoint) {
					t.Fatalf("not an ErrCheckpoint: %v", err)
				}
				continue
			}
			if len(blobs) != len(h.Tensors) {
				t.Fatalf("%d tensors for %d in the header", len(blobs), len(h.Tensors))
			}
			total := 0
			for i, info := range h.Tensors {
				size := info.elementBytes()
				for _, s := range info.Shape {
					size *= s
				}
				if len(blobs[i]) != size {
					t.Fatalf("tensor %d of shape %v has %d bytes", i, info.Shape, len(blobs[i]))
				}
				total += size
			}
			if total > len(raw) {
				t.Fatalf("%d bytes of tensors in a file of %d", total, len(raw))
			}
		}
	})
}
