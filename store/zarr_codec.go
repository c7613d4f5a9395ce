package store

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// zarrCompressors are the compressors that Kelvin reads; it writes zlib, whose Adler-32 finds damage.
var zarrCompressors = []string{"zlib", "gzip", "zstd", "lz4", "blosc"}

func (a *zarrArray) compress(raw []byte) ([]byte, error) {
	if a.compressor == "" {
		return raw, nil
	}
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, a.level)
	if err == nil {
		if _, err = w.Write(raw); err == nil {
			err = w.Close()
		}
	}
	return b.Bytes(), err
}

// decompress undoes the compression; want is how many bytes there should be.
func (a *zarrArray) decompress(packed []byte, want int) (raw []byte, err error) {
	switch a.compressor {
	case "":
		raw = packed
	case "blosc":
		raw, err = unblosc(packed, want)
	case "lz4": // numcodecs puts the number of bytes before the block
		if len(packed) < 4 || binary.LittleEndian.Uint32(packed) != uint32(want) {
			return nil, because(ErrFormat, "lz4: the chunk is damaged, or not of %d bytes", want)
		}
		raw, err = unpackStream("lz4", packed[4:], want)
	default:
		raw, err = unpackStream(a.compressor, packed, want)
	}
	if err != nil {
		return nil, err
	}
	if len(raw) != want {
		return nil, because(ErrFormat, "the chunk has %d bytes, want %d", len(raw), want)
	}
	return raw, nil
}

// unpackStream undoes one stream of a compressor, at most want bytes and one more.
func unpackStream(compressor string, packed []byte, want int) (raw []byte, err error) {
	var r io.Reader
	switch compressor {
	case "lz4":
		raw = make([]byte, want)
		n, err := lz4.UncompressBlock(packed, raw)
		if err != nil {
			return nil, because(ErrFormat, "lz4: %v", err)
		}
		return raw[:n], nil
	case "zlib":
		r, err = zlib.NewReader(bytes.NewReader(packed))
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(packed))
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(64<<20)); err == nil {
			defer d.Close()
			r = d
		}
	}
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(r, int64(want+1)))
	}
	if err != nil {
		return nil, because(ErrFormat, "%s: %v", compressor, err)
	}
	return raw, nil
}

// unblosc unpacks a buffer of Blosc 1, the compressor that zarr-python has by default for Zarr version 2,
// with the inner compressors LZ4, zlib and Zstandard and the byte shuffle. Others are an
// [ErrUnsupported] that names them.
//
// A buffer is a header of 16 bytes (version, inner version, flags, type size, bytes, block size, packed bytes), the
// offset of each block, and the blocks. A block is one stream, or one for each byte of the type if that is allowed and
// pays. A stream is its length and its bytes, plain if the length is that of the data.
//
// Source: c-blosc, README_CHUNK_FORMAT.
func unblosc(b []byte, want int) ([]byte, error) {
	if len(b) < 16 {
		return nil, errBlosc
	}
	flags, typeSize := b[2], int(b[3])
	n, blockSize := int(binary.LittleEndian.Uint32(b[4:])), int(binary.LittleEndian.Uint32(b[8:]))
	if n != want || typeSize < 1 {
		return nil, errBlosc
	}
	if flags&2 != 0 { // stored as it was
		if len(b) < 16+n {
			return nil, errBlosc
		}
		return b[16 : 16+n], nil
	}
	if flags&4 != 0 {
		return nil, because(ErrUnsupported, "blosc with bit shuffle; Kelvin reads byte shuffle and none")
	}
	inner := [8]string{"blosclz", "lz4", "snappy", "zlib", "zstd", "unknown", "unknown", "unknown"}[flags>>5]
	if inner != "lz4" && inner != "zlib" && inner != "zstd" {
		return nil, because(ErrUnsupported,
			"blosc with %s; Kelvin reads blosc with lz4 (or lz4hc), zlib and zstd", inner)
	}
	if n == 0 {
		return nil, nil
	}
	if blockSize < 1 || blockSize > n {
		return nil, errBlosc
	}
	blocks := (n + blockSize - 1) / blockSize
	if len(b) < 16+4*blocks {
		return nil, errBlosc
	}
	out := make([]byte, 0, n)
	for k := range blocks {
		size := min(blockSize, n-k*blockSize)
		streams := 1
		// Whole blocks are split by the bytes of the type, unless the flag says not to.
		if flags&0x10 == 0 && size == blockSize && typeSize <= 16 && blockSize/typeSize >= 128 && blockSize%typeSize == 0 {
			streams = typeSize
		}
		block, err := bloscBlock(b, int(binary.LittleEndian.Uint32(b[16+4*k:])), inner, size, streams)
		if err != nil {
			return nil, err
		}
		if flags&1 != 0 && typeSize > 1 {
			block = unshuffle(block, typeSize)
		}
		out = append(out, block...)
	}
	return out, nil
}

var errBlosc = because(ErrFormat, "blosc: the buffer is damaged")

// bloscBlock unpacks the streams of a block that begins at a place.
func bloscBlock(b []byte, at int, inner string, size, streams int) ([]byte, error) {
	block := make([]byte, 0, size)
	for range streams {
		if at < 0 || at+4 > len(b) {
			return nil, errBlosc
		}
		packed := int(int32(binary.LittleEndian.Uint32(b[at:])))
		at += 4
		if packed < 0 || packed > len(b)-at {
			return nil, errBlosc
		}
		part := b[at : at+packed]
		if packed != size/streams {
			var err error
			if part, err = unpackStream(inner, part, size/streams); err != nil {
				return nil, err
			}
			if len(part) != size/streams {
				return nil, errBlosc
			}
		}
		block = append(block, part...)
		at += packed
	}
	return block, nil
}

// unshuffle puts the bytes of each number together again; a rest shorter than a number was left as it was.
func unshuffle(b []byte, size int) []byte {
	out, n := make([]byte, len(b)), len(b)/size
	for j := range size {
		for i := range n {
			out[i*size+j] = b[j*n+i]
		}
	}
	copy(out[n*size:], b[n*size:])
	return out
}
