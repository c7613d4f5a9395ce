package store

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBlosc(t *testing.T) {
	const n = 2100
	for _, name := range []string{"lz4_1", "lz4_0", "lz4hc_1", "zlib_1", "zstd_1"} {
		packed, err := os.ReadFile("testdata/blosc/" + name + ".bin")
		require.NoError(t, err)
		raw, err := unblosc(packed, 8*n)
		require.NoError(t, err, name)
		for i := range n {
			require.Equal(t, float64(i/3), math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])), name)
		}
		for cut := 0; cut < len(packed); cut += 3 { // damage is an error, whatever it is
			_, err := unblosc(packed[:cut], 8*n)
			require.ErrorIs(t, err, ErrFormat)
		}
		for i := range packed {
			bad := append([]byte{}, packed...)
			bad[i] ^= 0xff
			_, _ = unblosc(bad, 8*n)
		}
	}
}

func TestZarrTypes(t *testing.T) {
	for dtype, raw := range map[string][]byte{
		">f8": {0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, "<f4": {0, 0, 0xc0, 0x3f}, "|i1": {0xff}, "|u1": {0xff}, "<i2": {0xfe,
			0xff}, ">u4": {0, 0, 1, 0}, "|b1": {1},
	} {
		a := &zarrArray{dtype: dtype}
		want := map[string]float64{">f8": 1.5, "<f4": 1.5, "|i1": -1, "|u1": 255, "<i2": -2, ">u4": 256, "|b1": 1}[dtype]
		assert.Equal(t, []float64{want}, a.decode(raw), dtype)
	}
	a := &zarrArray{shape: []int{3, 3}, chunks: []int{2, 2}}
	to := make([]float64, 9)
	for c, index := range [][]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
		a.place(to, []float64{1, 2, 3, 4}, index)
		_ = c
	}
	assert.Equal(t, []float64{1, 2, 1, 3, 4, 3, 1, 2, 1}, to)
}
