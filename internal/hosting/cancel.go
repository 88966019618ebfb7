package hosting

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/host"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

// cancelled is what cancel prints with --json.
type cancelled struct {
	SessionID string        `json:"sessionId"`
	Status    folder.Status `json:"status"` // after it
	// Finished says that the host was dead and that the session was finished here.
	Finished bool `json:"finished,omitempty"`
	// Already says that the session had ended before.
	Already bool `json:"already,omitempty"`
}

func cancel(o *verbs.Cancel, s cli.Streams) error {
	h, err := find(&o.Look)
	if err != nil {
		return err
	}
	c, err := h.cancel(o.Grace)
	if err == nil && o.Wait && h.worked { // also for the report of one that has ended
		ctx, stop, status := untilSignal()
		defer stop()
		err = status(h.awaitEnd(ctx))
		c.Status = h.status
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(s, c)
	}
	_, err = fmt.Fprintln(s.Out, c.sentence())
	return err
}

func (c cancelled) sentence() string {
	switch {
	case c.Already:
		return fmt.Sprintf("session %s has ended already: %s", c.SessionID, c.Status)
	case c.Finished:
		return fmt.Sprintf("session %s, whose host was killed, is finished: %s", c.SessionID, c.Status)
	case c.Status.Ended():
		return fmt.Sprintf("session %s has ended: %s", c.SessionID, c.Status)
	}
	return fmt.Sprintf("session %s is asked to end: %s shows what becomes of it", c.SessionID, words.Shell(command, "status", c.SessionID))
}

// cancel asks the session's host to end it, or finishes for a dead one.
func (h *hosted) cancel(grace time.Duration) (cancelled, error) {
	c := cancelled{SessionID: h.ID, Status: h.State.Status, Already: h.status.Ended()}
	if c.Already {
		return c, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), askTimeout)
	defer stop()
	err := attach.Host{Folder: h.Dir()}.Cancel(ctx, grace)
	if err == nil {
		return c, nil
	}
	if err := h.reopen(); err != nil {
		return c, err
	}
	switch {
	case h.status.Ended():
		c.Status, c.Already = h.State.Status, true
		return c, nil
	case h.status == folder.Dead:
		c.Finished = true
		c.Status, err = h.finish()
		return c, err
	case errors.Is(err, attach.ErrNotRunning) || errors.Is(err, context.DeadlineExceeded):
		// It has not got as far as its socket, or hangs.
		return c, h.signal()
	}
	return c, err
}

// signal has the host end the session as its guild does.
func (h *hosted) signal() error {
	p := h.State.Host
	if p == nil {
		return fmt.Errorf("session %s is only starting: try again", h.ID)
	}
	alive, known := p.Alive()
	if !known {
		return fmt.Errorf("the host of session %s is process %d of another machine or container: cancel it there", h.ID, p.PID)
	}
	if !alive {
		return fmt.Errorf("the host of session %s has just ended: try again", h.ID)
	}
	if !h.MayHold(p.PID) {
		return fmt.Errorf("process %d, which the record of session %s names as its host, does not hold the session's lock: nothing was signalled", p.PID, h.ID)
	}
	its := host.Entry{PID: p.PID, Start: p.Start}
	if err := guardian.Send(its, syscall.SIGTERM); err != nil {
		return fmt.Errorf("signal the host of session %s, process %d: %w", h.ID, p.PID, err)
	}
	_ = guardian.Send(its, syscall.SIGCONT) // a stopped process gets the signal only when it continues
	return nil
}

// finish does what the session's dead host left undone.
func (h *hosted) finish() (folder.Status, error) {
	outcome, err := session.Finish(context.Background(), h.Dir())
	if errors.Is(err, session.ErrHosted) {
		return h.awaitFinish(err)
	}
	if err != nil && !errors.Is(err, session.ErrFinished) {
		return h.State.Status, err
	}
	if err := h.reopen(); err != nil {
		return folder.Status(outcome.State), nil
	}
	return h.status, nil
}

// finishTimeout is longer than finishing a session takes, of which most is the report to
// a guild that cannot be reached.
const finishTimeout = 2 * time.Minute

// awaitFinish waits for another process that finishes the session. why is returned if
// that does not come to an end.
func (h *hosted) awaitFinish(why error) (folder.Status, error) {
	ctx, stop := context.WithTimeout(context.Background(), finishTimeout)
	defer stop()
	if err := h.awaitEnd(ctx); err != nil || !h.status.Ended() {
		return h.State.Status, why
	}
	return h.status, nil
}

// awaitEnd returns once the session has ended, or its host is dead.
func (h *hosted) awaitEnd(ctx context.Context) error {
	for {
		if err := h.reopen(); err != nil {
			return err
		}
		if !h.worked {
			return nil
		}
		select {
		case <-time.After(logPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
