//go:build unix

package ccompiler

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// group has a process and its children end together.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// owner is the number of the user whom a file belongs to.
func owner(info fs.FileInfo) (int, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}

// writable says why a folder cannot be written to.
func writable(dir string) error { return syscall.Access(dir, 2) }
