package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/flat"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	recovery "heartbeat/recover"
)

const (
	// FullCommand links everything that a hook may need, babysitter runs too. With FullVerb it acts as the hook.
	FullCommand = "heartbeat"
	FullVerb    = "__stop"

	// handedOverFlag precedes the hook's own flags if another process began the hook's work. What that process knows then
	// comes on stdin, before the input.
	handedOverFlag = "--handed-over"
)

// becomeFull replaces this process by the full command. It must be called with nothing committed and the lock free. It
// returns only an error.
func (h *hook) becomeFull() error {
	return fmt.Errorf("hand over to %s, which knows of babysitter runs: %w", FullCommand, h.startFull())
}

func (h *hook) startFull() error {
	program, err := findFull()
	if err != nil {
		return err
	}
	b, err := h.handover()
	if err != nil {
		return err
	}
	f, err := unnamedFile() // a pipe would not hold the input
	if err == nil {
		_, err = f.WriteAt(b, 0) // it is read from its start
	}
	if err == nil {
		err = unix.Dup2(int(f.Fd()), unix.Stdin)
	}
	if err != nil {
		return err
	}
	return cli.Become(program, append([]string{FullVerb, handedOverFlag}, h.args...))
}

// handover returns what the full command reads from stdin.
func (h *hook) handover() ([]byte, error) {
	o := h.carried
	if !h.waits {
		o.Waiter = ""
	}
	if kept, ok := h.Err.(*words.Head); ok {
		o.Notes = kept.String()
	}
	b, err := flat.JSON(o)
	return append(b, h.raw...), err
}

// answerWait is how long the full command may take to name itself. It takes 2 ms.
const answerWait = 10 * time.Second

// findFull returns the path of the full command, after asking the program there what it is. Another program of that
// name is refused, because it would decide the hook's exit status: many programs exit with [ExitWake] when they do not
// understand their arguments, and Claude Code would give the model what they print, at every Stop.
func findFull() (string, error) {
	program, err := cli.Beside(FullCommand)
	if err != nil {
		return "", err
	}
	ask := exec.Command(program, FullVerb, "--version")
	answer, err := ask.StdoutPipe()
	if err == nil {
		err = ask.Start()
	}
	if err != nil {
		return "", fmt.Errorf("ask %s what it is: %w", program, err)
	}
	name := make([]byte, len(CommandName))
	_ = answer.(*os.File).SetReadDeadline(time.Now().Add(answerWait)) // pipes take a deadline
	_, err = io.ReadFull(answer, name)
	_ = ask.Process.Kill() // another program may still run
	_ = ask.Wait()
	if err != nil || string(name) != CommandName {
		return "", fmt.Errorf("%s is another program, or of another release: install all of heartbeat's commands into one folder", program)
	}
	return program, nil
}

// takeOver makes h the hook that another process began, if the first argument says so, and removes that argument.
func (h *hook) takeOver() error {
	if len(h.args) == 0 || !strings.HasPrefix(h.args[0], handedOverFlag) {
		return nil
	}
	var o carried
	err := h.stdin.next(&o)
	if err == nil && o.Began == 0 {
		err = errors.New("it says something else")
	}
	if err != nil {
		return fmt.Errorf("take over from %s: %w: install all of heartbeat's commands from one release", CommandName, err)
	}
	h.args, h.carried, h.waits = h.args[1:], o, o.Waiter != ""
	return nil
}

// unlinkedFile returns a file that only its descriptor reaches.
func unlinkedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "heartbeat-input-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}

// Runs is what a hook does for babysitter runs. The lean hook that Claude Code starts cannot do it: when it meets a run,
// it becomes the full command.
type Runs interface {
	// Greet is called at each event before the hook acts on it. It returns what to show at the terminal, "" for nothing.
	Greet() (shown string)
	// Step takes a step of each run, and reports whether that brought entries.
	Step(ctx context.Context) (brought bool)
	// Advance steps the runs of a hook that would end the turn, and waits for what is over soon. It reports whether to
	// poll the inbox again.
	Advance(ctx context.Context) (again bool)
	// Pass steps the runs with what was answered, at a Stop that delivers an entry or may deliver none. settled is the id
	// of the entry that the hook settled last.
	Pass(ctx context.Context, settled string)
	// Accept accepts the answer to an entry of a run. missing is why the answer does not settle the entry, "" if it does.
	Accept(d *inbox.Delivery, reply string) (missing string)
	// SettledElsewhere returns why an entry of a run need not be delivered, "" if it must be.
	SettledElsewhere(e inbox.Entry) (why string)
	// Announce returns what to show at the terminal of an entry of a run.
	Announce(e inbox.Entry) string
}

// Surroundings are what a hook lets its runs know and use.
type Surroundings struct {
	Flags        *Flags
	Input        *claude.Input // nil with --no-input
	Box          *inbox.Inbox
	Age          func() time.Duration // returns how long the hook has run
	Note         func(format string, args ...any)
	Complain     func(error)
	Ask          func(effects []string) // has a person told which effects wait for one
	ComplainOnce func(error)            // prints an error unless it was the last one printed
	PollAgainIn  func(time.Duration)    // has a waiting hook poll after that time even if nothing happens
}

// OpenRuns opens the runs that the hook drives.
type OpenRuns func(Surroundings) Runs

// errNeedsRuns has the lean hook become the full command, with the inbox unchanged.
var errNeedsRuns = errors.New("the entry is a babysitter run's")

func (h *hook) acceptResult(f *recovery.Flight) (missing string, err error) {
	if m, ofRun := effect.MarkOf(f.Entry); !ofRun || m.Effect == "" {
		return "", nil
	}
	if h.runs == nil {
		return "", errNeedsRuns
	}
	return h.runs.Accept(f.Entry, f.LastReply()), nil
}

func (h *hook) settledElsewhere(e inbox.Entry) (why string, err error) {
	if h.runs == nil {
		return "", errNeedsRuns
	}
	return h.runs.SettledElsewhere(e), nil
}
