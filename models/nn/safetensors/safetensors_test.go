package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	os.Exit(m.Run())
}

// file is a file of a header and elements.
func file(header string, elements ...byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), elements...)
}

func read(data []byte) (*File, error) { return Read(bytes.NewReader(data), len(data)) }

// Every type, in bytes written out: 1.5 = 0x3FF8…, 0x3FC00000, 0x3E00, 0x3FC0; −2 as integers in two's complement.
func TestEveryType(t *testing.T) {
	for dtype, c := range map[string]struct {
		bytes []byte
		want  []float64
	}{
		"F64": {[]byte{0, 0, 0, 0, 0, 0, 0xF8, 0x3F}, []float64{1.5}},
		"F32": {[]byte{0, 0, 0xC0, 0x3F, 0, 0, 0x80, 0xFF}, []float64{1.5, math.Inf(-1)}},
		// 1.5, the least positive number 2^−24, −65504, the largest, and −∞.
		"F16":  {[]byte{0, 0x3E, 1, 0, 0xFF, 0xFB, 0, 0xFC}, []float64{1.5, math.Ldexp(1, -24), -65504, math.Inf(-1)}},
		"BF16": {[]byte{0xC0, 0x3F, 0, 0xC0}, []float64{1.5, -2}},
		"I64":  {[]byte{0xFE, 255, 255, 255, 255, 255, 255, 255}, []float64{-2}},
		"I32":  {[]byte{0xFE, 255, 255, 255}, []float64{-2}},
		"I16":  {[]byte{0xFE, 255, 0, 1}, []float64{-2, 256}},
		"I8":   {[]byte{0xFE, 3}, []float64{-2, 3}},
		"U8":   {[]byte{0xFE, 3}, []float64{254, 3}},
		"BOOL": {[]byte{1, 0}, []float64{1, 0}},
	} {
		n, size := string(rune('0'+len(c.want))), string(rune('0'+len(c.bytes)))
		f, err := read(file(`{"x":{"dtype":"`+dtype+`","shape":[`+n+`],"data_offsets":[0,`+size+`]}}`, c.bytes...))
		require.NoError(t, err, dtype)
		v, err := f.Values("x")
		require.NoError(t, err, dtype)
		assert.Equal(t, c.want, v, dtype)
	}
	f, err := read(file(`{"x":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, 1, 0xFC))
	require.NoError(t, err)
	v, err := f.Values("x")
	require.NoError(t, err)
	assert.True(t, math.IsNaN(v[0]))
}

// Tensors of types that are not read are in the list of a file, whose other tensors are read, wherever they are. Only
// their own values are refused, by name and type. Their bytes are those of the format: eight numbers of 6 bits have 6.
func TestOtherTypes(t *testing.T) {
	for dtype, size := range map[string]int{"U16": 16, "U32": 32, "U64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8,
		"F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4} {
		header := fmt.Sprintf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"ids":{"dtype":"%s","shape":[2,4],`+
			`"data_offsets":[1,%d]},"b":{"dtype":"I8","shape":[1],"data_offsets":[%[2]d,%d]}}`, dtype, 1+size, 2+size)
		data := make([]byte, 2+size)
		data[0], data[1+size] = 7, 0xFF
		f, err := read(file(header, data...))
		require.NoError(t, err, dtype)
		require.Equal(t, Tensor{Name: "ids", DType: dtype, Shape: []int{2, 4}, begin: 1}, f.Tensors()[1])
		for name, want := range map[string]float64{"a": 7, "b": -1} {
			v, err := f.Values(name)
			require.NoError(t, err)
			require.Equal(t, []float64{want}, v, dtype)
		}
		_, err = f.Values("ids")
		require.ErrorContains(t, err, `tensor "ids": its dtype is "`+dtype+`": expected one of BF16, BOOL, F16`)
		_, err = read(file(strings.Replace(header, "[2,4]", "[2,8]", 1), data...))
		require.ErrorContains(t, err, fmt.Sprintf(`tensor "ids": its data_offsets are 1 to %d: expected the %d bytes of %s`,
			1+size, 2*size, dtype))
	}
	for dtype, n := range map[string]string{"F4": "3", "F6_E2M3": "2"} {
		_, err := read(file(`{"x":{"dtype":"`+dtype+`","shape":[`+n+`],"data_offsets":[0,1]}}`, 0))
		require.ErrorContains(t, err, `tensor "x": its shape is [`+n+`], which is no whole number of bytes of `+dtype)
	}
	_, err := read(file(`{"x":{"dtype":"U64","shape":[1152921504606846975],"data_offsets":[0,8]}}`, make([]byte, 8)...))
	require.ErrorContains(t, err, "expected the 9223372036854775800 bytes of U64")
}

// A file that the reference implementation wrote (0.8.0, save_file of NumPy arrays): testdata/README.md.
func TestReferenceFile(t *testing.T) {
	f, err := Open("testdata/reference.safetensors")
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	assert.Equal(t, map[string]string{"format": "np"}, f.Metadata)
	shapes := map[string][]int{}
	for _, tensor := range f.Tensors() {
		shapes[tensor.Name+" "+tensor.DType] = tensor.Shape
	}
	assert.Equal(t, map[string][]int{"0.weight F32": {2, 3}, "0.bias F64": {2}, "half F16": {3}, "scalar F32": {},
		"empty F32": {0, 4}, "count I64": {2}, "mask BOOL": {2}}, shapes)
	for name, want := range map[string][]float64{
		"0.weight": {0, 0.5, 1, 1.5, 2, 2.5}, "0.bias": {-1, 1e300}, "half": {1.5, -0.25, 65504}, "scalar": {3},
		"empty": {}, "count": {1 << 53, -7}, "mask": {1, 0},
	} {
		v, err := f.Values(name)
		require.NoError(t, err)
		assert.Equal(t, want, v, name)
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	tensors := []Tensor{{Name: "b", DType: "F32", Shape: []int{2}}, {Name: "ä", DType: "F64", Shape: []int{1, 3}},
		{Name: "none", DType: "F64", Shape: []int{0}}, {Name: "one", DType: "F64"}}
	values := map[string][]float64{"b": {0.1, -3}, "ä": {math.Pi, math.Inf(1), -0.1}, "one": {7}}
	require.NoError(t, Write(path, tensors, values, map[string]string{"by": "kelvin"}))
	f, err := Open(path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	assert.Equal(t, map[string]string{"by": "kelvin"}, f.Metadata)
	for name, want := range map[string][]float64{"b": {float64(float32(0.1)), -3}, "ä": values["ä"], "none": {},
		"one": {7}} {
		v, err := f.Values(name)
		require.NoError(t, err)
		assert.Equal(t, want, v, name)
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Zero(t, binary.LittleEndian.Uint64(data)%8, "elements are aligned")
}

// Bad files are errors that say what is wrong and what was expected.
func TestBadFiles(t *testing.T) {
	entry := func(rest string) string { return `{"w":{` + rest + `}}` }
	good := file(entry(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), make([]byte, 8)...)
	_, err := read(good)
	require.NoError(t, err)
	huge := append([]byte{}, good...)
	binary.LittleEndian.PutUint64(huge, 1<<60)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "it has 0 bytes: expected 8 for the length of the header"},
		{huge, "its header claims 1152921504606846976 bytes: expected at most the 62 that follow"},
		{good[:len(good)-1],
			`tensor "w": its data_offsets are 0 to 8: expected the 8 bytes of F32 [2] within the 7 of the file`},
		{good[:20], "its header claims 54 bytes: expected at most the 12 that follow"},
		{append(good[:len(good):len(good)], 1), "it has 9 bytes of elements: expected the 8 of its tensors"},
		{file(entry(`"dtype":"F8","shape":[2],"data_offsets":[0,2]`), 0, 0),
			`tensor "w": its dtype is "F8": expected one of BF16, BOOL, F16`},
		{file(entry(`"dtype":"U8","shape":[3],"data_offsets":[0,2]`), 0, 0),
			`tensor "w": its data_offsets are 0 to 2: expected the 3 bytes of U8 [3]`},
		{file(entry(`"dtype":"U8","shape":[-1],"data_offsets":[0,2]`), 0, 0),
			`tensor "w": its shape is [-1]: expected sizes`},
		{file(entry(`"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]`)),
			"its shape is [4294967296 4294967296]: expected sizes from 0 whose product is below 2^60"},
		{file(entry(`"dtype":"U8","shape":[2.5],"data_offsets":[0,2]`), 0, 0),
			`tensor "w": its entry in the header: json`},
		{file(entry(`"dtype":"U8","shape":[2]`), 0, 0),
			`tensor "w": its entry must have dtype, shape and two data_offsets`},
		{file(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
			0, 0), `tensor "w": it is in the header twice`},
		{file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
			0), `it begins at byte 0: expected 1, where the one before ends`},
		{file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 0, 0), "it begins at byte 1: expected 0"},
		{file(`[]`), "its header does not begin with {"},
		{file(`{"a":`), "its entry in the header: "},
		{file(`{} x`), "its header goes on after the object"},
		{file("{\"\xff\":1}"), "its header is no UTF-8"},
		{file(`{"__metadata__":{"a":1}}`), "its __metadata__: expected texts"},
	} {
		_, err := read(c.data)
		var e *Error
		require.ErrorAs(t, err, &e, c.want)
		assert.ErrorContains(t, err, c.want)
	}
	_, err = Read(nil, 100)
	require.ErrorContains(t, err, "there are no bytes to read")
	path := filepath.Join(t.TempDir(), "bad.safetensors")
	require.NoError(t, os.WriteFile(path, huge, 0o600))
	_, err = Open(path)
	require.ErrorContains(t, err, path+": its header claims")
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "it is no regular file")

	f, err := read(file(entry(`"dtype":"I64","shape":[1],"data_offsets":[0,8]`), 1, 0, 0, 0, 0, 0, 0x20, 0))
	require.NoError(t, err)
	_, err = f.Values("w")
	require.ErrorContains(t, err, `tensor "w": its element 0 is 9007199254740993: expected whole numbers up to 2^53`)
	_, err = f.Values("v")
	require.ErrorContains(t, err, `tensor "v": it is not in the file, which has ["w"]`)
	f, err = read(file(entry(`"dtype":"BOOL","shape":[1],"data_offsets":[0,1]`), 2))
	require.NoError(t, err)
	_, err = f.Values("w")
	require.ErrorContains(t, err, "its element 0 is 2: expected 0 or 1")
}

func TestWriteErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	for want, tensors := range map[string][]Tensor{
		`tensor "a": its dtype is "F16": expected F64 or F32`: {{Name: "a", DType: "F16",
			Shape: []int{1}}},
		`tensor "a": it has 1 values: expected the 2 of shape [2]`: {{Name: "a", DType: "F64",
			Shape: []int{2}}},
		`tensor "big": its element 0 is 1e+300: expected what F32 holds`: {{Name: "big", DType: "F32",
			Shape: []int{1}}},
		`tensor "a": the name is taken`: {{Name: "a", DType: "F64"},
			{Name: "a", DType: "F64"}},
		`tensor "__metadata__": the name is taken: expected names that differ`: {{Name: "__metadata__", DType: "F64"}},
	} {
		err := Write(path, tensors, map[string][]float64{"a": {1}, "big": {1e300}, "__metadata__": {1}}, nil)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		require.NoFileExists(t, path)
	}
}

// Any bytes are an error or a file whose tensors can be read, written and read again alike.
func FuzzRead(f *testing.F) {
	reference, err := os.ReadFile("testdata/reference.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reference)
	f.Add(file(`{"w":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},"__metadata__":{"a":"b"}}`, 1, 2, 3, 4))
	f.Add(file(`{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}   `))
	f.Add(file(`{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
		1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := read(data)
		if err != nil {
			return
		}
		values := map[string][]float64{}
		tensors := file.Tensors()
		for i := range tensors {
			v, err := file.Values(tensors[i].Name)
			if err != nil {
				return
			}
			values[tensors[i].Name], tensors[i].DType = v, "F64"
		}
		path := filepath.Join(t.TempDir(), "again")
		if err := Write(path, tensors, values, file.Metadata); err != nil {
			t.Fatal(err)
		}
		again, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = again.Close() }()
		for name, want := range values {
			have, err := again.Values(name)
			if err != nil || len(have) != len(want) {
				t.Fatal(name, err, len(have), len(want))
			}
			for i := range want {
				if math.Float64bits(have[i]) != math.Float64bits(want[i]) {
					t.Fatal(strings.ToValidUTF8(name, "?"), i, have[i], want[i])
				}
			}
		}
	})
}
