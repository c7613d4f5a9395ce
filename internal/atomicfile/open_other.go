//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

const noFollow = 0
