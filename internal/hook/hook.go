package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

const (
	ModeDrain   = "drain"
	ModePersist = "persist"

	idleTick = "--- IDLE TICK ---"

	// How long a hook waits for the inbox's lock. The end of a turn is told once, so
	// it waits nearly for as long as clients let their hooks run: 10 minutes, and a
	// minute where they are so old that they name no prompt. With other events, a
	// session or a person waits for the hook.
	turnLockWait    = 9 * time.Minute
	oldTurnLockWait = 45 * time.Second
	eventLockWait   = 5 * time.Second
)

// Flags are what a settings file says of the hook.
type Flags struct {
	Inbox      string
	Mode       string
	Idle       cli.Span
	SignalFile string
	Orphan     cli.OrphanFlags
	MaxEntries int
	Background cli.Span
	Form       string
	Rewake     bool
	Preamble   string
	Announce   bool
	// PreambleSet says that an empty one is meant.
	PreambleSet bool
	Settle      cli.Span
	Runs        cli.RunFlags
	// Launched says that a launcher wired this hook for its own session.
	Launched bool
	// NoInput says that whoever starts the hook tells it nothing.
	NoInput bool
	Help    bool
	Version bool
}

// Set declares the flags, with their defaults.
func (h *Flags) Set() *pflag.FlagSet {
	f := cli.NewFlags("heartbeat-stop")
	h.Mode, h.Idle, h.Form, h.Settle = ModeDrain, cli.Span(2*time.Second), string(claude.AsReason), cli.Span(cli.DefaultSettle)
	h.Background = cli.Span(defaultBackground)
	cli.AddInbox(f, &h.Inbox)
	f.Var(cli.Choice(&h.Mode, ModeDrain, ModePersist), "mode", "when the inbox is empty: drain approves the stop, persist waits")
	f.Var(&h.Idle, "idle-interval", "persist: how long to wait for an entry before an idle tick (seconds or a duration)")
	f.StringVar(&h.SignalFile, "signal-file", "", "file to touch when the stop is approved")
	h.Orphan.Add(f)
	f.IntVar(&h.MaxEntries, "max-entries", 0, "approve the stop after this many answered entries in one session (0: no limit)")
	f.Var(&h.Background, "background-timeout", "drain: how long an entry whose turn left tasks running in the background waits for them (0: not at all)")
	f.Var(cli.Choice(&h.Form, string(claude.AsReason), string(claude.AsContext)), "as", "how the text is handed to the model")
	f.BoolVar(&h.Rewake, "rewake", false, "wait in the background and wake the idle session with the next entry (needs asyncRewake: see install --rewake)")
	f.StringVar(&h.Preamble, "preamble", "", "what the model is told before the text of an entry (with --rewake: who sent it)")
	f.BoolVar(&h.Announce, "announce", false, "show the person at the terminal which entry is delivered, as is done for those of runs")
	f.Var(&h.Settle, "settle", "how long a last line without newline must stand still to be an entry")
	h.Runs.Add(f)
	h.Runs.AddStateDir(f)
	f.IntVar(&h.Runs.MinSeconds, "min-iteration-seconds", 0, "hold a run whose session's last ten iterations took no longer on average (0: no limit)")
	f.BoolVar(&h.NoInput, "no-input", false, "for a harness that gives its hooks no input: stdin is not read, and .responded says that the entry in flight is answered")
	f.BoolVar(&h.Launched, "launched", false, "serve the session of heartbeat-launch, as which other hooks on its inbox stand back")
	f.Lookup("launched").Hidden = true
	f.BoolVarP(&h.Help, "help", "h", false, "show this help")
	f.BoolVar(&h.Version, "version", false, "show the version")
	return f
}

// hook is one run of the command as a hook.
type hook struct {
	Flags
	cli.Streams
	box   *inbox.Inbox
	input *claude.Input // nil with --no-input
	began int64         // host.SinceBoot at the start
	// parent is who started us; another one later means that it died.
	parent int
	// paused is what was last said of a pause: a waiting hook says it once.
	paused string
	// session are the processes without which a waiting hook serves nobody.
	session []*host.Process
	// waiter is the name by which this hook waits in the background, and wakeText
	// what it then wakes the session with.
	waiter, wakeText string
	offer            *offer // nil before the first
	complained       string // the error that was said last
	// settled is the entry that the transaction settles, nil for none.
	settled *inbox.Delivery
	// answered is that entry where it is settled as answered.
	answered *inbox.Delivery
	// says is what the person is shown of the entry that is delivered, "" for nothing.
	says string
	// lastSettled is the id of the last one that this hook settled.
	lastSettled string
	aside       []inbox.SetAside // not yet said
	// open opens runs, which are nil before that. Both are nil in the lean hook.
	open   OpenRuns
	runs   Runs
	args   []string
	raw    *rawInput // nil before the input was read
	handed *handover // nil where the hook began in this process
	// waits says that the hook is committed to be the one that waits in the background.
	waits bool
	// idleUntil is when persist ends the turn with an idle tick (host.SinceBoot), 0
	// before it waits.
	idleUntil int64
	watched   transcriptWatch
	// again is when to look again although nothing has happened, 0 for never.
	again time.Duration
}

// runHook is the command without a verb. Whatever fails, the stop is approved:
// stdout stays empty.
func runHook(args []string, s cli.Streams, open OpenRuns) int {
	h := &hook{Streams: s, open: open, began: host.SinceBoot(), parent: os.Getppid()}
	o, args, err := cutHandover(args, s.In)
	if err != nil {
		s.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
		return cli.ExitError
	}
	if h.args = args; o != nil {
		h.takeOver(o)
	}
	return h.start()
}

func (h *hook) start() int {
	s, flags := h.Streams, h.Set()
	err := cli.FlagError(flags.Parse(h.args), flags)
	switch {
	case err != nil:
	case h.Help:
		fmt.Fprint(s.Out, Page().Help())
		return cli.ExitOK
	case h.Version:
		fmt.Fprintln(s.Out, cli.VersionLine(CommandName))
		return cli.ExitOK
	default:
		err = h.Check(flags, flags.Args())
	}
	if err != nil {
		s.Complain(fmt.Errorf("%w (see heartbeat-stop --help)", err))
		return cli.ExitError
	}
	if h.open == nil && needsRuns(&h.Flags, flags.Changed) {
		err = h.becomeFull()
	}
	return h.run(err)
}

// Check refuses flags that make no sense together.
func (h *Flags) Check(f *pflag.FlagSet, rest []string) error {
	h.PreambleSet, h.Orphan.Given = f.Changed("preamble"), f.Changed("on-orphan")
	if err := h.checkRewake(f); err != nil {
		return err
	}
	switch {
	case h.NoInput && (h.Rewake || h.Launched):
		return errors.New("--no-input is for a harness that is no client: without the client's input there is no session to serve or to wake")
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case h.Inbox == "":
		return cli.ErrNoInbox
	case h.MaxEntries < 0:
		return fmt.Errorf("--max-entries is %d: it must be 0 or more", h.MaxEntries)
	}
	if err := h.Runs.Check(); err != nil {
		return err
	}
	return h.Orphan.Check()
}

// checkRewake refuses what has no meaning for a hook in the background.
func (h *Flags) checkRewake(f *pflag.FlagSet) error {
	for _, name := range []string{"mode", "idle-interval", "as", "background-timeout"} {
		if h.Rewake && f.Changed(name) {
			return fmt.Errorf("--%s is about a hook that ends the turn itself: with --rewake it says nothing, leave it out", name)
		}
	}
	return nil
}

// run acts on the event, unless a failure keeps it from that.
func (h *hook) run(failure error) int {
	var err error
	if h.raw = new(rawInput); !h.NoInput {
		if h.input, err = h.readInput(); err != nil {
			return h.untold(err)
		}
	}
	if failure != nil {
		return h.failed(failure)
	}
	if h.box, err = cli.OpenInbox(h.Inbox, inbox.Options{LockWait: h.lockWait()}); err != nil {
		return h.failed(err)
	}
	if h.standsBack() {
		return cli.ExitOK
	}
	if h.open != nil {
		h.openRuns()
	}
	return h.dispatch()
}

// lockWait is how long this event may wait for the inbox's lock.
func (h *hook) lockWait() time.Duration {
	switch in := h.input; {
	case in != nil && !h.endsTurn():
		return eventLockWait
	case in != nil && in.PromptID != "":
		return turnLockWait
	}
	return oldTurnLockWait
}

// dispatch acts on the event. An event of a subagent is nobody's answer, and an
// unknown one none of our business: both leave everything as it is.
func (h *hook) dispatch() int {
	in := h.input
	if in == nil {
		return h.stop()
	}
	if in.AgentID != "" {
		return cli.ExitOK
	}
	if in.Event == claude.EventSessionStart && in.Source == "compact" {
		return cli.ExitOK // the same session goes on in the same process
	}
	if h.runs != nil {
		h.runs.Greet()
	}
	if h.Rewake {
		if status, ok := h.inBackground(); ok {
			return status
		}
	}
	switch in.Event {
	case claude.EventStop, "":
		return h.stop()
	case claude.EventStopFailure:
		return h.stopFailure()
	case claude.EventSessionStart:
		return h.record(func(tx *inbox.Tx) error {
			return tx.StartSessionWith(in.SessionID, claude.PID(), recovery.StartNote(in.TranscriptPath))
		})
	case claude.EventSessionEnd:
		return h.record(h.endSession)
	case claude.EventUserPromptSubmit:
		if strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification) {
			return h.record(h.toldOfTask)
		}
	case claude.EventNotification:
		return h.notified()
	}
	return cli.ExitOK
}

// record commits what an event beside Stop tells. A failure is said and has no
// other effect: such an event's exit status decides nothing.
func (h *hook) record(change func(*inbox.Tx) error) int {
	tx, err := h.box.Begin(context.Background())
	if err == nil {
		if err = change(tx); err == nil {
			err = tx.Commit()
		}
		err = errors.Join(err, h.end(tx))
	}
	if err != nil {
		h.Complain(err)
	}
	return cli.ExitOK
}

// end closes a transaction, and says what it found.
func (h *hook) end(tx *inbox.Tx) error {
	if due := tx.NextDue(); !due.IsZero() {
		h.lookAgainIn(time.Until(due))
	}
	for _, w := range tx.Warnings() {
		h.Note("%s", w)
	}
	return tx.Close()
}

// lookAgainIn has a waiting hook look after that time, even if nothing happens.
// The clock may be set meanwhile, so that it looks from time to time in between.
func (h *hook) lookAgainIn(d time.Duration) {
	d = min(max(d, minRecheck), maxRecheck)
	if h.again == 0 || d < h.again {
		h.again = d
	}
}

const minRecheck, maxRecheck = 10 * time.Millisecond, time.Minute

// failed approves the stop because of an error.
func (h *hook) failed(err error) int {
	if errors.Is(err, errNotPrinted) {
		h.Complain(fmt.Errorf("%w: the stop is approved", err))
	} else {
		h.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
	}
	return h.signal()
}

// approve ends the turn: an empty stdout, and the signal for the launcher.
func (h *hook) approve() int { return h.signal() }

func (h *hook) signal() int {
	if h.SignalFile == "" || h.input != nil && !h.endsTurn() {
		return cli.ExitOK
	}
	if err := disk.Touch(h.SignalFile); err != nil {
		h.Complain(fmt.Errorf("touch the signal file: %w", err))
	}
	return cli.ExitOK
}

func (h *hook) endsTurn() bool {
	return h.input.Event == claude.EventStop || h.input.Event == "" || h.input.Event == claude.EventStopFailure
}
