//go:build !linux

package fuzzing

import "errors"

func limit(uint64) error { return errors.ErrUnsupported }
