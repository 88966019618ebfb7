//go:build !linux

package command

import "syscall"

func family() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func onOneThread() (release func()) { return func() {} }
