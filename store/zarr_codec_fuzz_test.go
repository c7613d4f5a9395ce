package store

import (
	"os"
	"testing"
)

// A chunk of any bytes is an error, or as many bytes as it should be.
func FuzzDecompress(f *testing.F) {
	for i := range len(zarrCompressors) + 1 {
		f.Add(uint8(i), uint16(8), []byte("\x08\x00\x00\x00\x00\x00\x00\x00"))
	}
	for _, name := range []string{"lz4_1", "lz4_0", "lz4hc_1", "zlib_1", "zstd_1"} {
		packed, err := os.ReadFile("testdata/blosc/" + name + ".bin")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(4), uint16(8*2100), packed)
	}
	f.Fuzz(func(t *testing.T, which uint8, want uint16, packed []byte) {
		a := &zarrArray{}
		if int(which) < len(zarrCompressors) {
			a.compressor = zarrCompressors[which]
		}
		raw, err := a.decompress(packed, int(want))
		if err == nil && len(raw) != int(want) {
			t.Fatalf("%s: %d bytes, want %d", a.compressor, len(raw), want)
		}
	})
}
