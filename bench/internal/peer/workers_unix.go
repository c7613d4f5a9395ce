//go:build unix

package peer

import (
	"os/exec"
	"syscall"
)

// together makes a command lead a group of its own, so that end reaches the workers that it starts.
func together(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// end ends a command and its workers.
func end(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
