package infer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// A checkpoint file is the magic line, the length of a JSON header and the header, the tensors' bytes in the header's
// order, and the SHA-256 of all that. Numbers are little-endian.
const checkpointMagic = "kelvin checkpoint 1\n"

// writeCheckpoint replaces the file in one move, after the new one is on the disk.
func writeCheckpoint(path string, h checkpointHeader, blobs [][]byte) error {
	text, err := h.marshal()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(checkpointMagic)
	_ = binary.Write(&b, binary.LittleEndian, uint64(len(text)))
	b.Write(text)
	for _, blob := range blobs {
		b.Write(blob)
	}
	sum := sha256.Sum256(b.Bytes())
	b.Write(sum[:])

	return atomicfile.ReplacePrivate(path, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}

// readCheckpoint reads and checks a file. One that does not exist is fs.ErrNotExist.
func readCheckpoint(path string) (*checkpointHeader, [][]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	bad := func(what string) (*checkpointHeader, [][]byte, error) {
		return nil, nil, fmt.Errorf("%s is truncated or damaged (%s; %d bytes); remove the folder to start again: %w", path,
			what, len(raw), ErrCheckpoint)
	}
	if len(raw) < len(checkpointMagic)+8+sha256.Size || string(raw[:len(checkpointMagic)]) != checkpointMagic {
		return bad("it does not begin as a checkpoint does")
	}
	body := raw[:len(raw)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], raw[len(body):]) {
		return bad("its checksum is wrong")
	}
	rest := body[len(checkpointMagic):]
	n := binary.LittleEndian.Uint64(rest)
	rest = rest[8:]
	if uint64(len(rest)) < n {
		return bad("its header is too long")
	}
	h := &checkpointHeader{}
	if err := json.Unmarshal(rest[:n], h); err != nil {
		return bad(err.Error())
	}
	rest = rest[n:]
	blobs := make([][]byte, len(h.Tensors))
	for i, t := range h.Tensors {
		size := t.elementBytes()
		for _, s := range t.Shape {
			// Also where the product would overflow, or a size is negative.
			if s < 0 || (s > 0 && size > len(rest)/int(s)) {
				return bad("tensor " + t.Name + " is incomplete")
			}
			size *= int(s)
		}
		if len(rest) < size {
			return bad("tensor " + t.Name + " is incomplete")
		}
		blobs[i], rest = rest[:size], rest[size:]
	}
	if len(rest) > 0 {
		return bad("there is more after the tensors")
	}
	return h, blobs, nil
}

func float64Bytes(v []float64) []byte {
	b := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	return b
}

func float64Values(b []byte) []float64 {
	v := make([]float64, len(b)/8)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

func float32Bytes(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

func float32Values(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
