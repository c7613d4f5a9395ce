package infer

import "fmt"

// DefaultMemory is what a Memory field of 0 allows, in bytes.
const DefaultMemory = 1 << 30

// MemoryError is a request that does not fit into the memory that a configuration allows. It is made before anything of that size is
// allocated.
type MemoryError struct {
	What    string // what was asked for, with its shape
	Bytes   int64  // what it takes
	Allowed int64  // what is allowed
	Field   string // the field that allows it, for example "curvature.Options.Memory"; "" for a limit that is fixed
	Instead string // what to use instead
}

// Error says how much is needed, how much is allowed, and what to do.
func (e *MemoryError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s takes %s, more than %s: %s", e.What, bytesText(e.Bytes), bytesText(e.Allowed), e.Instead)
	}
	return fmt.Sprintf("%s takes %s, and %s allows %s: %s, or raise it", e.What, bytesText(e.Bytes), e.Field, bytesText(e.Allowed), e.Instead)
}

// Unwrap makes the error an ErrConfig.
func (e *MemoryError) Unwrap() error { return ErrConfig }

// CheckMemory refuses a number of bytes, a float64 because it may exceed an int64, above what is allowed; 0 allows DefaultMemory.
func CheckMemory(what string, bytes float64, allowed int64, field, instead string) error {
	if allowed == 0 {
		allowed = DefaultMemory
	}
	if bytes <= float64(allowed) {
		return nil
	}
	return &MemoryError{What: what, Bytes: int64(min(bytes, 9e18)), Allowed: allowed, Field: field, Instead: instead}
}

// bytesText writes a number of bytes in decimal units.
func bytesText(bytes int64) string {
	v, unit := float64(bytes), "bytes"
	for _, u := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
