package grid

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// Fingerprint tells data apart in the settings of a study: the first 16 hexadecimal digits of the SHA-256 of the number
// of inputs, the inputs, and the labels, in their order.
func Fingerprint[T int | float32 | float64](inputs []T, labels []int) string {
	hash := sha256.New()
	// A hash takes all that is written: there are no errors.
	_ = binary.Write(hash, binary.LittleEndian, int64(len(inputs)))
	for some := range slices.Chunk(inputs, 1<<16) { // in parts, because Write copies what it is given
		_ = binary.Write(hash, binary.LittleEndian, sized(some))
	}
	for _, label := range labels {
		_ = binary.Write(hash, binary.LittleEndian, int64(label))
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8])
}

// sized is a slice as binary.Write takes it, which has no size for an int.
func sized[T any](x []T) any {
	whole, ok := any(x).([]int)
	if !ok {
		return x
	}
	out := make([]int64, len(whole))
	for i, v := range whole {
		out[i] = int64(v)
	}
	return out
}
