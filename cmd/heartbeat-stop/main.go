// The hook starts once per turn and lives for a moment: looking up the
// container's CPU quota, and following it, would only make it later.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command heartbeat-stop is a Claude Code Stop hook that delivers the next entry
// of a JSONL inbox after every turn, and the verbs that go with it.
//
// As a hook it prints nothing but the protocol on stdout, and exits with status
// 2, by which Claude Code feeds stderr to the model, only to hand an entry over.
package main

import (
	"fmt"
	"heartbeat/internal/words"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"heartbeat/internal/host/guardian"
)

// Exit statuses. There is no 2 among them, on purpose: see exitWake.
const (
	exitOK           = 0
	exitError        = 1
	exitDeadLettered = 3   // send --wait: the entry was set aside
	exitTimedOut     = 124 // as timeout(1) has it
)

func main() {
	guardian.Serve()
	// A panic in another goroutine, or a fault of the runtime, would exit with
	// status 2; this makes it abort by signal instead.
	debug.SetTraceback("crash")
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are the process's own, or a test's.
type streams struct {
	in       *os.File
	out, err io.Writer
}

func (s streams) complain(err error) {
	fmt.Fprintf(s.err, "heartbeat-stop: %s\n", words.Sentence(err.Error()))
}

func (s streams) note(format string, args ...any) {
	fmt.Fprintf(s.err, "heartbeat-stop: %s\n", words.Sentence(fmt.Sprintf(format, args...)))
}

func run(args []string, s streams) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.err, "heartbeat-stop: internal error: %v: please report it with this:\n%s", p, debug.Stack())
			status = exitError
		}
	}()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return runVerb(args[0], args[1:], s)
	}
	return runHook(args, s)
}
