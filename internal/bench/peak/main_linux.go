// Command peak runs a program and writes its peak memory, in bytes, to a file.
//
// A process takes over the peak of the one that started it (Linux keeps it
// across execve), so a big parent cannot measure a small child. This one is
// smaller than whatever it measures: it uses no package but the least.
package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func main() {
	program, err := exec.LookPath(os.Args[2])
	if err == nil {
		err = run(os.Args[1], program, os.Args[2:])
	}
	if err != nil {
		_, _ = os.Stderr.WriteString("peak: " + err.Error() + "\n")
		os.Exit(1)
	}
}

// run waits for the program, which has this one's stdin, stdout and stderr.
func run(report, program string, argv []string) error {
	p, err := os.StartProcess(program, argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	s, err := p.Wait()
	if err == nil && !s.Success() {
		err = &exec.ExitError{ProcessState: s}
	}
	if err != nil {
		return err
	}
	peak := s.SysUsage().(*syscall.Rusage).Maxrss << 10 // KiB (getrusage(2))
	return os.WriteFile(report, strconv.AppendInt(nil, peak, 10), 0o600)
}
