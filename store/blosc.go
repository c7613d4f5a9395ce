package store

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
)

// unblosc unpacks a buffer of Blosc 1, the compressor that zarr-python has by default, with the inner compressors LZ4 and zlib and
// the byte shuffle. Others are an [ErrUnsupported] that names them.
//
// A buffer is a header of 16 bytes (version, inner version, flags, type size, bytes, block size, packed bytes), the
// offset of each block, and the blocks. A block is one stream, or one for each byte of the type where that is allowed
// and pays; a stream is its length and its bytes, plain if the length is that of the data.
//
// Source: c-blosc, README_CHUNK_FORMAT; LZ4 block format description.
func unblosc(b []byte, want int) ([]byte, error) {
	bad := because(ErrFormat, "blosc: the buffer is damaged")
	if len(b) < 16 {
		return nil, bad
	}
	flags, typeSize := b[2], int(b[3])
	n, blockSize := int(binary.LittleEndian.Uint32(b[4:])), int(binary.LittleEndian.Uint32(b[8:]))
	if n != want || typeSize < 1 {
		return nil, bad
	}
	if flags&2 != 0 { // stored as it was
		if len(b) < 16+n {
			return nil, bad
		}
		return b[16 : 16+n], nil
	}
	if flags&4 != 0 {
		return nil, because(ErrUnsupported, "blosc with bit shuffle; Kelvin reads byte shuffle and none")
	}
	inner := [8]string{"blosclz", "lz4", "snappy", "zlib", "zstd", "unknown", "unknown", "unknown"}[flags>>5]
	if inner != "lz4" && inner != "zlib" {
		return nil, because(ErrUnsupported, "blosc with %s; Kelvin reads blosc with lz4 (or lz4hc) and zlib", inner)
	}
	if n == 0 {
		return nil, nil
	}
	if blockSize < 1 || blockSize > n {
		return nil, bad
	}
	blocks := (n + blockSize - 1) / blockSize
	if len(b) < 16+4*blocks {
		return nil, bad
	}
	out := make([]byte, 0, n)
	for k := range blocks {
		size := min(blockSize, n-k*blockSize)
		at := int(binary.LittleEndian.Uint32(b[16+4*k:]))
		streams := 1
		// Whole blocks are split by the bytes of the type, unless the flag says not to.
		if flags&0x10 == 0 && size == blockSize && typeSize <= 16 && blockSize/typeSize >= 128 && blockSize%typeSize == 0 {
			streams = typeSize
		}
		block := make([]byte, 0, size)
		for range streams {
			if at < 0 || at+4 > len(b) {
				return nil, bad
			}
			packed := int(int32(binary.LittleEndian.Uint32(b[at:])))
			at += 4
			if packed < 0 || packed > len(b)-at {
				return nil, bad
			}
			part, err := unpackStream(inner, b[at:at+packed], size/streams)
			if err != nil {
				return nil, err
			}
			block = append(block, part...)
			at += packed
		}
		if flags&1 != 0 && typeSize > 1 {
			block = unshuffle(block, typeSize)
		}
		out = append(out, block...)
	}
	return out, nil
}

func unpackStream(inner string, b []byte, n int) ([]byte, error) {
	if len(b) == n {
		return b, nil
	}
	if inner == "lz4" {
		return unlz4(b, n)
	}
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, because(ErrFormat, "blosc: %v", err)
	}
	out := make([]byte, n)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, because(ErrFormat, "blosc: %v", err)
	}
	return out, nil
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

// unlz4 unpacks a block of LZ4 that holds n bytes: sequences of literals and a copy of earlier output.
func unlz4(b []byte, n int) ([]byte, error) {
	bad := because(ErrFormat, "lz4: the block is damaged")
	out := make([]byte, 0, n)
	length := func(nibble int) int { // 15 goes on in further bytes
		if nibble < 15 {
			return nibble
		}
		for len(b) > 0 {
			c := b[0]
			b = b[1:]
			nibble += int(c)
			if c != 255 || nibble > n+15 {
				break
			}
		}
		return nibble
	}
	for len(b) > 0 {
		token := b[0]
		b = b[1:]
		literals := length(int(token >> 4))
		if literals > len(b) || literals > n-len(out) {
			return nil, bad
		}
		out, b = append(out, b[:literals]...), b[literals:]
		if len(b) == 0 {
			break
		}
		if len(b) < 2 {
			return nil, bad
		}
		back := int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		match := length(int(token&15)) + 4
		if back < 1 || back > len(out) || match > n-len(out) {
			return nil, bad
		}
		for range match {
			out = append(out, out[len(out)-back])
		}
	}
	if len(out) != n {
		return nil, bad
	}
	return out, nil
}
