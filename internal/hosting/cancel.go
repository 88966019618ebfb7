package hosting

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

var cancelVerb = cli.Verb{
	Name:  "cancel",
	Args:  "ID",
	IDs:   sessionIDs,
	Short: "end a session",
	Long: `End a session: its client gets SIGTERM, and its whole process tree SIGKILL after the
grace; it is reported as cancelled. cancel returns once the host has accepted the
request, with --wait once the session has ended. If the host was killed, cancel finishes
the session itself.

With --warm nothing more is delivered, and the entry in flight has --drain-timeout to be
answered. An entry without an answer by then is settled by the session's --on-orphan:
retry gives it back, uncounted, deadletter sets it aside as stopped.

` + whichID + `

Exit status: 0 the session ends, or has ended; 1 it does not: there is no such
session, or more than one, or its host cannot be reached.`,
	Example: "heartbeat-host cancel ses-1 --grace 30s --wait",
	Build: func(f *pflag.FlagSet) cli.Action {
		var o oneFlags
		end := attach.End{Grace: -1, Most: time.Minute}
		var grace cli.Span
		var wait bool
		o.add(f)
		f.Var(&grace, "grace", "how long the client may take before it is killed (default: what the session was started with)")
		f.Lookup("grace").DefValue = ""
		f.BoolVar(&end.Warm, "warm", false, "let the entry in flight be answered first, and deliver nothing more")
		f.Var((*cli.Span)(&end.Most), "drain-timeout", "with --warm: how long that may take")
		f.BoolVar(&wait, "wait", false, "return once the session has ended and its host is done")
		return o.action(f, func(h *hosted, s cli.Streams) error {
			c, err := h.cancel(end, wait)
			if err != nil {
				return err
			}
			return o.show(s, c, c.sentence())
		}, func() error {
			if f.Changed("drain-timeout") && !end.Warm {
				return errors.New("--drain-timeout is about --warm: leave it out")
			}
			if f.Changed("grace") {
				end.Grace = time.Duration(grace)
			}
			return nil
		})
	},
}

// cancelled is the JSON of cancel.
type cancelled struct {
	SessionID string        `json:"sessionId"`
	Status    folder.Status `json:"status"`
	Finished  bool          `json:"finished,omitempty"` // its host was dead
	Already   bool          `json:"already,omitempty"`  // it had ended before
}

func (h *hosted) cancel(end attach.End, wait bool) (cancelled, error) {
	c, err := h.requestEnd(end)
	if err == nil && wait && h.Host != 0 { // an ended session may still have to send its report
		err = untilSignal(h.awaitEnd)
		c.Status = h.Status
	}
	return c, err
}

func (c cancelled) sentence() string {
	switch {
	case c.Already:
		return fmt.Sprintf("session %s has ended already: %s", c.SessionID, c.Status)
	case c.Finished && c.Status == folder.Dead:
		return fmt.Sprintf("session %s has no record and no prompt: heartbeat-host gc removes what is left of it", c.SessionID)
	case c.Finished:
		return fmt.Sprintf("session %s, whose host was killed, is finished: %s", c.SessionID, c.Status)
	case c.Status.Ended():
		return fmt.Sprintf("session %s has ended: %s", c.SessionID, c.Status)
	}
	return fmt.Sprintf("session %s is asked to end: %s shows what becomes of it", c.SessionID, words.Shell(command, "status", c.SessionID))
}

// requestEnd makes the session's host end it, or completes what a dead host left.
func (h *hosted) requestEnd(end attach.End) (cancelled, error) {
	c := cancelled{SessionID: h.ID, Status: h.State.Status, Already: h.Status.Ended()}
	if c.Already {
		return c, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), askTimeout)
	defer stop()
	err := attach.Host{Folder: h.Dir()}.Cancel(ctx, end)
	if err == nil {
		return c, nil
	}
	if err := h.reopen(); err != nil {
		return c, err
	}
	switch {
	case h.Status.Ended():
		c.Status, c.Already = h.State.Status, true
		return c, nil
	case h.Status == folder.Dead:
		c.Finished = true
		c.Status, err = h.finish()
		return c, err
	case end.Warm:
		return c, fmt.Errorf("ask the session's host: %w: try again, or cancel it without --warm", err)
	case errors.As(err, new(attach.Refused)):
		return c, err
	}
	return c, h.signal() // the host has no socket yet, is of another release, or hangs
}

// signal ends the session by a signal to its host, as its guild does.
func (h *hosted) signal() error {
	p := h.State.Host
	if p == nil {
		return fmt.Errorf("session %s is still starting: try again", h.ID)
	}
	alive, known := p.Alive()
	if !known {
		return fmt.Errorf("the host of session %s is process %d of another machine or container: cancel it there", h.ID, p.PID)
	}
	if !alive {
		return fmt.Errorf("the host of session %s has just ended: try again", h.ID)
	}
	if open, _ := machine.HasOpen(p.PID, h.LockPath()); !open { // the record may be forged
		return fmt.Errorf("process %d, which the record of session %s names as its host, does not hold the session's lock: nothing was signalled", p.PID, h.ID)
	}
	if err := guardian.Send(machine.Entry{PID: p.PID, Start: p.Start}, syscall.SIGTERM); err != nil {
		return fmt.Errorf("signal the host of session %s, process %d: %w", h.ID, p.PID, err)
	}
	return nil
}

// finish completes what the session's dead host left.
func (h *hosted) finish() (folder.Status, error) {
	outcome, err := session.Finish(context.Background(), h.Dir(), false)
	if errors.Is(err, session.ErrHosted) { // another process may be finishing it
		ctx, stop := context.WithTimeout(context.Background(), finishTimeout)
		defer stop()
		if waited := h.awaitEnd(ctx); waited == nil && h.Status.Ended() {
			err = nil
		}
	}
	if err != nil && !errors.Is(err, session.ErrFinished) {
		return h.State.Status, err
	}
	if h.reopen() != nil { // its folder is gone
		return outcome.State, nil
	}
	return h.Status, nil
}

// finishTimeout exceeds the time to finish a session, most of which goes to a guild that cannot be reached.
const finishTimeout = 2 * time.Minute

// awaitEnd returns once the session has ended or its host is dead.
func (h *hosted) awaitEnd(ctx context.Context) error {
	for {
		if err := h.reopen(); err != nil {
			return err
		}
		if h.Host == 0 {
			return nil
		}
		select {
		case <-time.After(logPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
