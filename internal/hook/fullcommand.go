package hook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/internal/flat"
)

const (
	// FullCommand has everything that a hook may need, babysitter runs too, and
	// FullVerb is how it is told to be the hook.
	FullCommand = "heartbeat"
	FullVerb    = "__stop"

	// handedOverFlag comes before the flags of the hook where another process began
	// its work.
	handedOverFlag = "--handed-over="
	// heldInput is from where on an input is kept in a file and not in memory, for the
	// full command to read.
	heldInput = 1 << 20
)

// handover is what the full command has to know of the hook in whose place it runs.
// It counts as the same hook: it is no later, serves the same session, and waits as
// long and under the same name.
type handover struct {
	began     int64 // host.SinceBoot
	parent    int
	waiter    string
	idleUntil int64  // host.SinceBoot, 0 before the wait
	paused    string // what was said of a pause
	notes     string // what nobody heard yet
	inputSize int64  // of what follows on stdin, -1 where nothing was read
}

// becomeFull has the full command carry on in this process. Nothing was committed and
// the lock is free. It only returns where that fails.
func (h *hook) becomeFull() error {
	err := h.startFull()
	return fmt.Errorf("hand over to %s, which knows of babysitter runs: %w", FullCommand, err)
}

func (h *hook) startFull() error {
	program, err := findFull()
	if err != nil {
		return err
	}
	o := handover{began: h.began, parent: h.parent, idleUntil: h.idleUntil, paused: h.paused, inputSize: -1}
	if h.waits {
		o.waiter = h.waiter
	}
	if kept, ok := h.Err.(*keptNotes); ok {
		o.notes = kept.String()
	}
	if h.raw != nil {
		o.inputSize = h.raw.size
		if err := h.raw.becomeStdin(o.encode()); err != nil {
			return err
		}
	}
	args := append([]string{program, FullVerb, handedOverFlag + o.arg()}, h.args...)
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, args, os.Environ()))
}

// arg is what is said on the command line: the rest follows the input on stdin.
func (o handover) arg() string { return fmt.Sprintf("%d,%d,%d", o.began, o.parent, o.inputSize) }

func (o handover) encode() []byte {
	var object flat.Object
	object.Text("waiter", o.waiter)
	object.Int("idle_until", o.idleUntil)
	object.Text("paused", o.paused)
	object.Text("notes", o.notes)
	return object.End()
}

// cutHandover takes what another process handed over from the arguments and from
// stdin, on which the input is left. It is nil where nobody did.
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

// takeOver makes the hook the one that was begun by another process.
func (h *hook) takeOver(o *handover) {
	h.began, h.parent, h.waiter, h.idleUntil, h.paused = o.began, o.parent, o.waiter, o.idleUntil, o.paused
	h.waits = o.waiter != ""
	h.handed = o
}

// rawInput is the input as it was read, kept for the full command.
type rawInput struct {
	size int64
	text []byte
	file *os.File // has the text where it is long
}

func keepRaw(text []byte) *rawInput {
	r := &rawInput{size: int64(len(text)), text: text}
	if len(text) > heldInput && r.write() == nil { // otherwise memory has it
		r.text = nil
	}
	return r
}

func (r *rawInput) write() (err error) {
	if r.file, err = unnamedFile(); err != nil {
		return err
	}
	if _, err = r.file.Write(r.text); err != nil {
		err = errors.Join(err, r.file.Close())
		r.file = nil
	}
	return err
}

// becomeStdin has the next program read the input on stdin, with what follows it.
func (r *rawInput) becomeStdin(rest []byte) error {
	if err := r.append(rest); err != nil {
		return err
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unix.Dup2(int(r.file.Fd()), unix.Stdin)
}

// append puts rest behind the input, in place of what an earlier call put there.
func (r *rawInput) append(rest []byte) error {
	if r.file == nil {
		if err := r.write(); err != nil {
			return err
		}
	}
	if err := r.file.Truncate(r.size); err != nil {
		return err
	}
	_, err := r.file.WriteAt(rest, r.size)
	return err
}
