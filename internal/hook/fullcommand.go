package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/flat"
	"heartbeat/orchestrate/effect"
)

const (
	// FullCommand links everything that a hook may need, babysitter runs too. FullVerb tells it to be the hook.
	FullCommand = "heartbeat"
	FullVerb    = "__stop"

	// handedOverFlag precedes the hook's own flags if another process began the hook's work.
	handedOverFlag = "--handed-over="
)

// handover is what the full command has to know of the hook that it replaces. It counts as the same hook: it began at
// the same time, serves the same session, and waits as long and under the same name.
type handover struct {
	began     int64 // machine.SinceBoot
	parent    int
	waiter    string
	idleUntil int64  // machine.SinceBoot; 0 before the wait
	paused    string // what was last said of a pause
	notes     string // what nobody has heard yet
	inputSize int64  // the bytes on stdin before this object; -1 if nothing was read
}

// becomeFull has the full command carry on in this process. Call it with nothing committed and the lock free. It
// returns only if that fails.
func (h *hook) becomeFull() error {
	return fmt.Errorf("hand over to %s, which knows of babysitter runs: %w", FullCommand, h.startFull())
}

func (h *hook) startFull() error {
	program, err := findFull()
	if err != nil {
		return err
	}
	o := handover{began: h.began, parent: h.parent, idleUntil: h.idleUntil, paused: h.paused, inputSize: int64(len(h.raw))}
	if h.waits {
		o.waiter = h.waiter
	}
	if kept, ok := h.Err.(*keptNotes); ok {
		o.notes = kept.String()
	}
	if err := becomeStdin(h.raw, o.encode()); err != nil {
		return err
	}
	args := append([]string{program, FullVerb, handedOverFlag + o.arg()}, h.args...)
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, args, os.Environ()))
}

// answerWait is how long the full command may take to say what it is. It takes 2 ms.
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
	said := make([]byte, len(CommandName))
	_ = answer.(*os.File).SetReadDeadline(time.Now().Add(answerWait)) // pipes take a deadline
	_, err = io.ReadFull(answer, said)
	_ = ask.Process.Kill() // another program may go on
	_ = ask.Wait()
	if err != nil || string(said) != CommandName {
		return "", fmt.Errorf("%s is another program, or of another release: install all of heartbeat's commands into one folder", program)
	}
	return program, nil
}

// arg returns the part on the command line; the rest follows the input on stdin.
func (o handover) arg() string { return fmt.Sprintf("%d,%d,%d", o.began, o.parent, o.inputSize) }

func (o handover) encode() []byte {
	var object flat.Object
	object.Text("waiter", o.waiter)
	object.Int("idle_until", o.idleUntil)
	object.Text("paused", o.paused)
	object.Text("notes", o.notes)
	return object.End()
}

// cutHandover takes what another process handed over from the arguments and from stdin. It leaves the input on stdin.
// The handover is nil if there is none.
func cutHandover(args []string, stdin *os.File) (*handover, []string, error) {
	if len(args) == 0 || !strings.HasPrefix(args[0], handedOverFlag) {
		return nil, args, nil
	}
	o, err := readHandover(strings.TrimPrefix(args[0], handedOverFlag), stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("take over from %s: %w: install all of heartbeat's commands from one release", CommandName, err)
	}
	return o, args[1:], nil
}

func readHandover(arg string, stdin *os.File) (*handover, error) {
	var o handover
	parts := strings.Split(arg, ",")
	if len(parts) != 3 {
		return nil, fmt.Errorf("it says %q", arg)
	}
	parent := int64(0)
	for i, n := range []*int64{&o.began, &parent, &o.inputSize} {
		var err error
		if *n, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return nil, fmt.Errorf("it says %q", arg)
		}
	}
	o.parent = int(parent)
	if o.inputSize < 0 {
		return &o, nil
	}
	b, err := io.ReadAll(io.NewSectionReader(stdin, o.inputSize, maxInput))
	if err != nil {
		return nil, err
	}
	m, err := flat.Parse(b)
	if err != nil {
		return nil, err
	}
	o.waiter, o.idleUntil, o.paused, o.notes = m.String("waiter"), m.Int("idle_until"), m.String("paused"), m.String("notes")
	return &o, m.Err()
}

// takeOver makes h the hook that another process began.
func (h *hook) takeOver(o *handover) {
	h.began, h.parent, h.waiter, h.idleUntil, h.paused = o.began, o.parent, o.waiter, o.idleUntil, o.paused
	h.waits = o.waiter != ""
	h.handed = o
}

// becomeStdin makes these bytes the stdin of the program that replaces this one.
func becomeStdin(parts ...[]byte) error {
	f, err := withoutName(parts...)
	if err == nil {
		err = unix.Dup2(int(f.Fd()), unix.Stdin)
	}
	return err
}

// withoutName returns a file of these bytes, at its start, that only its descriptor reaches.
func withoutName(parts ...[]byte) (*os.File, error) {
	f, err := unnamedFile()
	for _, b := range parts {
		if err == nil {
			_, err = f.Write(b)
		}
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return f, err
}

// unlinkedFile returns a file in the folder for temporary files that only its descriptor reaches.
func unlinkedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "heartbeat-input-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Runs is what a hook does for babysitter runs. The hook that Claude Code starts has none: when a run comes up, it
// becomes the full command, which has.
type Runs interface {
	// Greet sees each event before the hook acts on it. It returns what the person at the terminal is shown as a
	// session starts, "" for nothing.
	Greet() (shown string)
	// Step takes a step of each run, and reports whether that brought entries.
	Step(ctx context.Context) (brought bool)
	// Advance steps the runs of a hook that would end the turn, and waits for what is over soon. It reports whether to
	// look into the inbox again.
	Advance(ctx context.Context) (again bool)
	// Pass tells the runs what was answered, at a Stop that delivers an entry or may deliver none. settled is the id of
	// the entry that the hook settled last.
	Pass(ctx context.Context, settled string)
	// Take accepts the answer to an entry of a run. missing says why the answer does not settle it, "" if it does.
	Take(d *inbox.Delivery, reply string) (missing string)
	// SettledElsewhere says why an entry of a run need not be delivered, "" if it must be.
	SettledElsewhere(e inbox.Entry) (why string)
	// Announce returns what the person at the terminal is shown of an entry of a run.
	Announce(e inbox.Entry) string
}

// Surroundings are what a hook lets its runs know and use.
type Surroundings struct {
	Flags *Flags
	Input *claude.Input // nil with --no-input
	Box   *inbox.Inbox
	// Age returns how long the hook has run.
	Age      func() time.Duration
	Note     func(format string, args ...any)
	Complain func(error)
	// Ask has a person told of the effects that wait for one.
	Ask func(effects []string)
	// ComplainOnce says an error unless it was the last one said.
	ComplainOnce func(error)
	// LookAgainIn has a waiting hook look after that time even if nothing happens.
	LookAgainIn func(time.Duration)
}

// OpenRuns opens the runs that the hook drives.
type OpenRuns func(Surroundings) Runs

// errNeedsRuns leaves the inbox unchanged: its entry needs a hook that knows of runs.
var errNeedsRuns = errors.New("the entry is a babysitter run's")

func (h *hook) openRuns() {
	h.runs = h.open(Surroundings{
		Flags: &h.Flags, Input: h.input, Box: h.box, Age: h.age,
		Note:         func(format string, args ...any) { h.Note(format, args...) },
		Complain:     func(err error) { h.Complain(err) },
		Ask:          h.runsAsk,
		ComplainOnce: func(err error) { h.complainOnce(err) },
		LookAgainIn:  h.lookAgainIn,
	})
}

func (h *hook) passRuns(ctx context.Context) {
	if h.runs != nil {
		h.runs.Pass(ctx, h.lastSettled)
	}
}

// takeResult says why the answer to an entry does not settle it, "" if it does.
func (h *hook) takeResult(d *inbox.Delivery, reply string) (missing string, err error) {
	if m, ofRun := effect.MarkOf(d); !ofRun || m.Effect == "" {
		return "", nil
	}
	if h.runs == nil {
		return "", errNeedsRuns
	}
	return h.runs.Take(d, reply), nil
}

// settledElsewhere says why an entry need not be delivered, "" if it must be.
func (h *hook) settledElsewhere(e inbox.Entry) (why string, err error) {
	if _, ofRun := effect.MarkIn(e.Metadata); !ofRun {
		return "", nil
	}
	if h.runs == nil {
		return "", errNeedsRuns
	}
	return h.runs.SettledElsewhere(e), nil
}
