//go:build !linux

package process

import "syscall"

func run(path string, command []string, attr *syscall.ProcAttr, bury func(syscall.WaitStatus)) (int, error) {
	pid, status, err := children.start(func() (int, error) { return syscall.ForkExec(path, command, attr) })
	if err == nil {
		go func() { bury(<-status) }()
	}
	return pid, err
}

// Adopt does nothing: this system has no subreapers.
func Adopt() {}
