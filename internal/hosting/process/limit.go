package process

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// limiterName is the argv[0] of this program while it becomes a client whose memory
// is limited.
const limiterName = "heartbeat-limit"

// limited is what to start: the client itself, or this program, which limits itself
// and then becomes the client. To limit this process meanwhile would not be safe.
func (o Options) limited() (path string, command []string) {
	if o.MemoryMax <= 0 {
		return o.Path, o.Command
	}
	self, err := os.Executable()
	if err != nil {
		return o.Path, o.Command
	}
	return self, append([]string{limiterName, strconv.FormatInt(o.MemoryMax, 10), o.Path}, o.Command...)
}

// Serve must be the first call of a program that uses [Start]. It does not return in
// the process that becomes a client whose memory is limited.
func Serve() {
	if len(os.Args) < 4 || os.Args[0] != limiterName {
		return
	}
	err := become(os.Args[1], os.Args[2], os.Args[3:])
	fmt.Fprintf(os.Stderr, "limit the memory of %s: %v\n", os.Args[2], err)
	os.Exit(126)
}

func become(limit, path string, command []string) error {
	n, err := strconv.ParseUint(limit, 10, 63)
	if err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		return err
	}
	return syscall.Exec(path, command, os.Environ())
}
