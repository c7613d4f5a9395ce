//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockFile takes an exclusive lock on path. While another process holds it, it calls waiting once, with who that is, and
// waits until the lock is free or ctx ends.
func lockFile(ctx context.Context, path string, waiting func(holder string)) (release func(), err error) {
	dir := filepath.Dir(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, (&Cache{Dir: dir}).unwritable(err)
	}
	for told := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fail(err, "name a cache folder on a local disk with --cache DIR or $KELVIN_CACHE", "the cache folder %s cannot be locked", dir)
		}
		if !told {
			waiting(holderOf(path))
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("stopped while waiting for another set-up: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintln(f, os.Getpid()) // only a help to whoever waits
	}
	return func() {
		_ = f.Truncate(0)
		_ = f.Close()
	}, nil
}

// holderOf returns " (process N)" for the process that holds the lock, or nothing.
func holderOf(path string) string {
	text, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return fmt.Sprintf(" (process %s)", pid)
	}
	return ""
}
