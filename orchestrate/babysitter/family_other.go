//go:build !linux

package babysitter

import "syscall"

// familyAttr makes a program the first of a family.
func familyAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
