//go:build unix

package cc

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// noFollow has the opening of a symbolic link fail; a pipe does not block it.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

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
