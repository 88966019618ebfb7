package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// errNobodyTook means that a launcher ended without having done anything, so another would end the same way.
var errNobodyTook = errors.New("no session took the prompt")

const (
	askRest      = time.Second // the pause while somebody else works on the inbox
	askGrace     = time.Minute // how long a launcher may take to end its session before it is killed
	askDrain     = time.Hour   // bounds the turn of another's entry after that
	askLast      = time.Second // how long the outcome may take to show once the sessions have ended
	askOutages   = 5           // this many sessions in a row that an API error ended are followed by another
	maxAskReport = 1 << 20     // bounds what is read of a launcher's report
)

// askWorker runs one launcher after another until a prompt is settled. A nil worker only waits.
type askWorker struct {
	client   []string // a whole command, with a prompt
	project  string
	settings recovery.Settings

	outages  int
	report   supervise.Report
	log, own words.Tail // what the last launcher printed: its sessions' output and its own
}

// work returns once the entry is settled or no progress can be expected. No session runs by then.
func (w *askWorker) work(ctx context.Context, box *inbox.Inbox, r inbox.Receipt) (outcomes.Outcome, error) {
	if w == nil {
		return outcomes.Await(ctx, box, r, cli.WatchPoll)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var outcome outcomes.Outcome
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, failed = outcomes.Await(waiting, box, r, cli.WatchPoll)
	}()
	for ctx.Err() == nil {
		more, err := w.once(ctx, box, r)
		if err != nil {
			return outcomes.Outcome{}, err
		}
		if !more {
			break
		}
		select { // the outcome may show a moment later
		case <-done:
			if ctx.Err() == nil {
				return outcome, failed
			}
		case <-ctx.Done():
		case <-time.After(askRest):
		}
	}
	// An outcome that arrived while the last session ended counts.
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLast)
	defer cancel()
	o, err := outcomes.Await(soon, box, r, cli.WatchPoll)
	switch {
	case ctx.Err() != nil:
		return o, context.Cause(ctx)
	case soon.Err() != nil && err != nil:
		return o, errNobodyTook
	}
	return o, err
}

// once runs a launcher, unless a living session will come to the entry. more is whether another may get further.
func (w *askWorker) once(ctx context.Context, box *inbox.Inbox, mine inbox.Receipt) (more bool, err error) {
	f := see.Glance(ctx, box, nil)
	w.report = supervise.Report{}
	if s := f.Current(); s != nil && s.EndedAt == nil && s.Life == machine.Alive || f.Waiter != nil && f.Waiter.Life == machine.Alive {
		return true, nil
	}
	if err := w.launch(ctx, box, mine); err != nil {
		return false, err
	}
	r := w.report
	switch {
	case r.Answered+r.Redelivered+r.DeadLettered+r.Dropped > 0 || r.Reason == supervise.Busy:
		w.outages = 0
	case r.Reason == supervise.Left && w.outages < askOutages && see.Glance(ctx, box, nil).Backoff != nil:
		w.outages++ // the next launcher waits the back-off out
	default:
		return false, nil
	}
	return true, nil
}

// turnsUntil counts the turns up to an entry's own. Later entries belong to other commands, which would find them half
// done. The entry in flight may need no turn and does not count: a turn too few only takes another launcher.
func turnsUntil(box *inbox.Inbox, id string) (turns int) {
	v, err := box.View()
	if err != nil {
		return 1 // the launcher reports what is wrong
	}
	defer func() { _ = v.Close() }() // only read
	mine := 1
	_ = v.Waits(nil, func(e inbox.Waiting) bool {
		if e.Doomed == "" {
			turns++
		}
		if e.ID == id {
			mine = max(1, turns)
		}
		return e.ID != id
	})
	return mine
}

// launch runs a launcher for the turns up to an entry's own, until it has ended. When ctx ends, it is told to end.
func (w *askWorker) launch(ctx context.Context, box *inbox.Inbox, mine inbox.Receipt) error {
	program, err := cli.Beside("heartbeat-launch")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "heartbeat-ask-")
	if err != nil {
		return cli.Status(cli.ExitLater, fmt.Errorf("ask: make a folder for the launcher's report: %w: make room there, or set TMPDIR, and run it again", err))
	}
	defer func() { _ = os.RemoveAll(dir) }() // only this user can write there
	report := filepath.Join(dir, "report.json")
	args := []string{
		"--inbox", box.Path(), "--cwd", w.project, "--timeout", "0", "--drain-timeout", askDrain.String(), "--until-drained=false",
		"--max-entries", strconv.Itoa(turnsUntil(box, mine.ID)), "--output", "log", "--report", report, "--",
	}
	// In its own process group, so that the terminal's signals reach this process alone.
	cmd := guardian.Group(ctx, syscall.SIGTERM, program, slices.Concat(cli.HookArguments(w.settings), args, w.client)...)
	cmd.Cancel = func() error { return endLauncher(cmd.Process.Pid, box, mine) }
	w.log, w.own = words.Tail{Most: maxLastLines}, words.Tail{Most: maxLastLines}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &w.log, &w.own, askGrace
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return nil // nothing was to be started any more
		}
		return cli.Status(cli.ExitLater, fmt.Errorf("ask: start %s: %w: run it again", program, err))
	}
	_ = cmd.Wait() // the report has the outcome, or if there was no room for it the status
	w.report.Exit = cmd.ProcessState.ExitCode()
	if text, err := disk.ReadGiven(report, maxAskReport); err == nil {
		_ = json.Unmarshal(text, &w.report) // a truncated report counts as none
	}
	return nil
}

// endLauncher ends a launcher. It ends a turn of this command's own entry at once; what somebody else sent earlier is
// answered first, because the limit was not set for that.
func endLauncher(pid int, box *inbox.Inbox, mine inbox.Receipt) error {
	launcher := machine.Entry{PID: pid, Start: machine.ProcessStart(pid)}
	died := machine.WatchProcess(pid).Died()
	news := box.Watch(cli.WatchPoll)
	defer func() { _ = news.Close() }() // only read
	if err := errors.Join(signalEnd(launcher), awaitSign(context.Background(), box, launcher, supervise.ItEnds, died)); err != nil {
		return err
	}
	for supervise.InFlight(box.Dir()) { // else it ends by itself
		if whereIs(box, mine.ID) == inbox.FoundInFlight {
			return signalEnd(launcher)
		}
		select {
		case <-died:
			return nil
		case <-news.C:
		}
	}
	return nil
}

// lastWords quotes the last lines of the last launcher and its session, to append to a sentence.
func (w *askWorker) lastWords() string {
	if w == nil {
		return ""
	}
	text := lastLine(&w.own, "")
	if session := lastLine(&w.log, "the session "); session != "" {
		text += "; " + session
	}
	if text == "" {
		return ""
	}
	return words.Line(" (" + text + ")")
}

// whyOf explains why nothing moves in the inbox, without what [askWorker.lastWords] quotes.
func whyOf(box *inbox.Inbox, w *askWorker) string {
	f := see.Look(context.Background(), box)
	if w.lastWords() != "" {
		f.GaveUp = nil
	}
	_, sentence := f.Explain()
	return sentence
}

const maxLastLines = 16 << 10 // how many bytes of a launcher's output are kept

// lastLine returns the last line of an output that contains what, from there on.
func lastLine(output *words.Tail, what string) string {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(output.String()), "\n")) {
		if at := strings.Index(line, what); at >= 0 {
			return line[at:]
		}
	}
	return ""
}
