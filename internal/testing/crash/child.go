package crash

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// The variables by which a child is told what to do, besides the name of its
// [Command].
const (
	EnvKillAt   = "HEARTBEAT_TEST_KILL_AT"   // n[,torn]: see KillAt
	EnvFailAt   = "HEARTBEAT_TEST_FAIL_AT"   // n:ERRNO[,torn]: see FailAt, TearAt
	EnvFailFrom = "HEARTBEAT_TEST_FAIL_FROM" // n:ERRNO[,kind]...: see FailFrom
	EnvCount    = "HEARTBEAT_TEST_COUNT"     // file: one JSON line is appended for each call
	envChild    = "HEARTBEAT_TEST_CHILD"
)

var errnos = []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EROFS, unix.EDQUOT, unix.EACCES, unix.EPERM, unix.EFBIG}

// Main is a package's whole TestMain: it runs the tests or, in a child, the command
// that [Command.Name] names. A command finds its arguments in os.Args[1:] and
// returns its exit status.
func Main(m *testing.M, commands map[string]func() int) {
	Dispatch(commands)
	_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // they wait for the disk; what -parallel says counts, which is read after this
	os.Exit(m.Run())
}

// Dispatch is [Main] for a TestMain that does something else after it, such as
// testscript.Main. It returns if this process is not a child.
func Dispatch(commands map[string]func() int) {
	name := os.Getenv(envChild)
	if name == "" {
		return
	}
	run, ok := commands[name]
	if !ok {
		panic("crash: TestMain registers no command " + strconv.Quote(name))
	}
	os.Exit(Run(run))
}

// Run runs one command under the observers that the environment asks for, and
// removes them from the environment. A testscript program can use it directly.
func Run(run func() int) int {
	observers, err := fromEnviron()
	if err != nil {
		panic(err)
	}
	for _, name := range []string{EnvKillAt, EnvFailAt, EnvFailFrom, EnvCount, envChild} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	if len(observers) > 0 {
		disk.TestOnlyObserver = Chain(observers...)
	}
	return run()
}

func fromEnviron() ([]disk.Observer, error) {
	var all []disk.Observer
	for _, e := range []struct {
		name  string
		parse func(string) (disk.Observer, error)
	}{
		{EnvCount, countInto}, // first, so that it also counts the call that kills
		{EnvFailAt, parseFailAt},
		{EnvFailFrom, parseFailFrom},
		{EnvKillAt, parseKillAt},
	} {
		value := os.Getenv(e.name)
		if value == "" {
			continue
		}
		o, err := e.parse(value)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", e.name, value, err)
		}
		all = append(all, o)
	}
	return all, nil
}

func parseKillAt(value string) (disk.Observer, error) {
	number, option, hasOption := strings.Cut(value, ",")
	if hasOption && option != "torn" {
		return nil, errors.New("want n or n,torn")
	}
	n, err := strconv.Atoi(number)
	return KillAt(n, hasOption), err
}

func parseFailAt(value string) (disk.Observer, error) {
	n, errno, options, err := parseFail(value)
	switch {
	case err != nil:
		return nil, err
	case len(options) == 0:
		return FailAt(n, errno), nil
	case slices.Equal(options, []string{"torn"}):
		return TearAt(n, errno), nil
	}
	return nil, errors.New("want n:ERRNO or n:ERRNO,torn")
}

func parseFailFrom(value string) (disk.Observer, error) {
	n, errno, options, err := parseFail(value)
	if err != nil {
		return nil, err
	}
	var kinds []disk.Kind
	for _, kind := range options {
		kinds = append(kinds, disk.Kind(kind))
	}
	return FailFrom(n, errno, kinds...), nil
}

func parseFail(value string) (n int, errno syscall.Errno, options []string, err error) {
	number, rest, _ := strings.Cut(value, ":")
	words := strings.Split(rest, ",")
	if n, err = strconv.Atoi(number); err != nil {
		return 0, 0, nil, err
	}
	for _, e := range errnos {
		if unix.ErrnoName(e) == words[0] {
			return n, e, words[1:], nil
		}
	}
	return 0, 0, nil, fmt.Errorf("unknown errno %q", words[0])
}
