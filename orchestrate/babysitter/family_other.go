//go:build !linux

package babysitter

import "syscall"

// familyAttr makes a program the leader of a process group.
func familyAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
