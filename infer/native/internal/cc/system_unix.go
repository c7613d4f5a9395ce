//go:build unix

package cc

import "syscall"

// noFollow has the opening of a symbolic link fail; a pipe does not block it.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
