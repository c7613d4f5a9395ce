package infer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
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

	return atomicfile.Write(path, b.Bytes(), 0o600)
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
			if s < 0 || (s > 0 && size > len(rest)/s) {
				return bad("tensor " + t.Name + " is incomplete")
			}
			size *= s
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

type savedTensorInfo struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	DType int    `json:"dtype"` // libtorch's number: 6 float32, 7 float64
}

// elementBytes is how many bytes an element takes in the file: float32 is kept as it is, all others become float64.
func (i savedTensorInfo) elementBytes() int {
	if i.dtype() == gotch.Float {
		return 4
	}
	return 8
}

func (i savedTensorInfo) dtype() gotch.DType { return gotch.CKind2DType(int32(i.DType)) }

func (i savedTensorInfo) String() string { return fmt.Sprintf("%v %v", i.Shape, i.dtype()) }

// exact are the types whose values float64 holds without loss.
var exact = []gotch.DType{gotch.Double, gotch.Half, gotch.BFloat16, gotch.Int, gotch.Int16, gotch.Int8, gotch.Uint8,
	gotch.Bool}

const (
	checkpointName = "checkpoint.kelvin"
	drawsName      = "draws.kelvin"
	lockName       = "lock"
	begunName      = "begun" // is there until the first checkpoint is
)

func describe(name string, t torch.Tensor) (savedTensorInfo, error) {
	shape, err := torch.Shape(t)
	if err != nil {
		return savedTensorInfo{}, err
	}
	dtype, err := torch.DTypeOfTensor(t)
	return savedTensorInfo{Name: name, Shape: shape, DType: int(dtype.CInt())}, err
}

// saveTensor copies the values of a tensor, without loss.
func saveTensor(name string, t torch.Tensor) (savedTensorInfo, []byte, error) {
	info, err := describe(name, t)
	if err != nil {
		return info, nil, err
	}
	if info.dtype() == gotch.Float {
		values, err := torch.ToSlice[float32](t)
		return info, float32Bytes(values), err
	}
	if !slices.Contains(exact, info.dtype()) {
		return info, nil, fmt.Errorf("a tensor of type %v cannot be saved: %w", info.dtype(), ErrCheckpoint)
	}
	values, err := torch.ToSlice[float64](t)
	return info, float64Bytes(values), err
}

// restoreTensor makes the tensor again, on the device of the one that it replaces.
func restoreTensor(info savedTensorInfo, blob []byte, like torch.Tensor) (torch.Tensor, error) {
	device := torch.CPU
	if like != (torch.Tensor{}) {
		var err error
		if device, err = torch.DeviceOf(like); err != nil {
			return torch.Tensor{}, err
		}
	}
	if info.dtype() == gotch.Float {
		return torch.FromSliceOn(device, gotch.Float, float32Values(blob), info.Shape...)
	}
	return torch.FromSliceOn(device, info.dtype(), float64Values(blob), info.Shape...)
}
