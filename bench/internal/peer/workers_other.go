//go:build !unix

package peer

import "os/exec"

func together(*exec.Cmd) {}

// end ends a command; workers that it started may stay.
func end(c *exec.Cmd) error { return c.Process.Kill() }
