//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package setup

import (
	"context"
	"errors"
)

// lockFile refuses: set-up does not run here.
func lockFile(context.Context, string, func(holder string)) (release func(), err error) {
	return nil, errors.New("this system has no file locks that Kelvin knows")
}
