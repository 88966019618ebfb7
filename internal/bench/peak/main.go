// Command peak runs a program and writes its peak memory, in bytes, to a file.
//
// A process takes over the peak of the one that started it (Linux keeps it
// across execve), so a big parent cannot measure a small child. This one is
// smaller than whatever it measures: it uses no package but the least.
package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: peak FILE PROGRAM [ARGUMENT...]")
	}
	program, err := exec.LookPath(os.Args[2])
	if err != nil {
		fail("peak: " + err.Error())
	}
	status, peak, err := run(program, os.Args[2:])
	if err == nil {
		err = os.WriteFile(os.Args[1], strconv.AppendInt(nil, peak, 10), 0o600)
	}
	if err != nil {
		fail("peak: " + err.Error())
	}
	os.Exit(status)
}

func fail(why string) {
	_, _ = os.Stderr.WriteString(why + "\n") // there is nobody else to tell
	os.Exit(1)
}

// run waits for the program, which has this one's stdin, stdout and stderr.
func run(program string, argv []string) (status int, peak int64, err error) {
	p, err := os.StartProcess(program, argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, 0, err
	}
	s, err := p.Wait()
	if err != nil {
		return 0, 0, err
	}
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, errors.New("the system does not tell")
	}
	peak = int64(usage.Maxrss) // KiB (getrusage(2)), but bytes on macOS
	if runtime.GOOS != "darwin" {
		peak <<= 10
	}
	return s.ExitCode(), peak, nil
}
