//go:build !linux

package testkit

import "errors"

func limit(uint64) error { return errors.ErrUnsupported }
