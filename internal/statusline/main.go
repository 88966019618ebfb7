package statusline

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/host"
	"heartbeat/internal/meter"
	"heartbeat/internal/release"
)

// CommandName is the name of the command.
const CommandName = "heartbeat-meter"

const help = `Usage: heartbeat-meter --inbox PATH [--then COMMAND]

Book what a Claude Code session has spent to the meter beside an inbox. It is a
status line: the client runs it after each answer, with what it knows as JSON on
stdin, and shows what it prints. heartbeat install and heartbeat-launch wire it.

  --inbox PATH     the inbox
  --then COMMAND   go on as this line for /bin/sh, with the same on stdin: the
                   status line that a person had before
  --help           show this and exit
  --version        print the version and exit

Without --then it prints nothing. It is silent on errors.
`

// Main is the whole command; it does not return.
func Main() {
	o, err := parse(os.Args[1:])
	switch {
	case err != "":
		_, _ = os.Stderr.WriteString(CommandName + ": " + err + " (see " + CommandName + " --help)\n")
		os.Exit(1)
	case o.help:
		_, _ = os.Stdout.WriteString(help)
		os.Exit(0)
	case o.version:
		_, _ = os.Stdout.WriteString(CommandName + " " + release.Version() + "\n")
		os.Exit(0)
	}
	stdin := read(os.Stdin)
	book(o.inbox, stdin)
	if o.then != "" {
		become(o.then, stdin)
	}
	os.Exit(0)
}

type options struct {
	inbox, then   string
	help, version bool
}

// parse reads the arguments without a package for flags, which would cost a good part
// of the start.
func parse(args []string) (o options, err string) {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		var into *string
		switch {
		case args[i] == "--help" || args[i] == "-h":
			return options{help: true}, ""
		case args[i] == "--version":
			return options{version: true}, ""
		case name == "--inbox":
			into = &o.inbox
		case name == "--then":
			into = &o.then
		default:
			return o, "unexpected argument " + strconv.Quote(args[i])
		}
		if !joined {
			if i++; i == len(args) {
				return o, name + " needs a value"
			}
			value = args[i]
		}
		*into = value
	}
	if o.inbox == "" {
		return o, "--inbox is missing: it names the inbox beside which to count"
	}
	return o, ""
}

// maxStatus is the most that is read of stdin. The client gives some thousand bytes.
const maxStatus = 1 << 20

func read(from io.Reader) []byte {
	all := make([]byte, 0, 16<<10)
	for len(all) < maxStatus {
		if len(all) == cap(all) {
			all = append(all, 0)[:len(all)]
		}
		n, err := from.Read(all[len(all):min(cap(all), maxStatus)])
		all = all[:len(all)+n]
		if err != nil {
			break // what there is may suffice
		}
	}
	return all
}

// book is silent, and never keeps the person's line from being shown.
func book(inbox string, stdin []byte) {
	defer func() { _ = recover() }()
	r, err := meter.ParseStatus(stdin)
	if err != nil {
		return
	}
	inbox, err = filepath.Abs(inbox)
	if err != nil {
		return
	}
	pid, _ := strconv.Atoi(os.Getenv("CLAUDE_PID")) // 0 if unknown: then all are one
	r.Client = meter.ClientName(host.KnownBoot(host.BootID()), pid, host.ProcessStart(pid))
	r.Wait = time.Second // the person's line comes after it
	_, _ = meter.Advance(filepath.Dir(inbox), r)
}

// become replaces this process by the person's line. It returns where that cannot be.
func become(then string, stdin []byte) {
	f, err := source(stdin)
	if err != nil || unix.Dup2(int(f.Fd()), 0) != nil {
		return
	}
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", then}, os.Environ())
}

// source is a file from which another program can read these bytes: a pipe that holds
// them all, or else a file without a name.
func source(b []byte) (*os.File, error) {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return nil, err
	}
	unix.CloseOnExec(ends[0])
	from, to := os.NewFile(uintptr(ends[0]), "stdin"), os.NewFile(uintptr(ends[1]), "stdin")
	defer to.Close() // the reader sees the end
	_ = unix.SetNonblock(ends[1], true)
	n, err := unix.Write(ends[1], b)
	if n == len(b) {
		return from, err
	}
	from.Close() // it has a part only
	f, err := os.CreateTemp("", CommandName+"-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	if _, err := f.Write(b); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}
