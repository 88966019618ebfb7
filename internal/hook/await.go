package hook

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// awaitEntry returns once it has a text to wake the session with, or another hook waits instead.
func (h *hook) awaitEntry(ctx context.Context, w *inbox.Watcher) error {
	retry := firstRetry
	for {
		o, err := h.poll(ctx, h.decideWake, Runs.Step)
		switch {
		case err == nil && (o == delivered || o == leave):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errSessionGone):
			return err
		case err != nil:
			if h.complainOnce(err) { // nobody sees that while the session sleeps: status and log show it
				h.record(func(tx *inbox.Tx) error {
					return tx.In(h.input.SessionID).FailAlone(recovery.HookError, words.Sentence(err.Error()))
				})
			}
			h.pollAgainIn(retry)
			retry = min(2*retry, maxRetry)
		default:
			retry = firstRetry
		}
		if _, err := h.untilNews(ctx, w, nil); err != nil {
			return err
		}
	}
}

// untilNews returns when it is time to poll again. idled says that idle fired first.
func (h *hook) untilNews(ctx context.Context, w *inbox.Watcher, idle <-chan time.Time) (idled bool, err error) {
	var due <-chan time.Time
	if h.again > 0 {
		due = time.After(h.again)
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-w.C:
	case <-h.ownerDied:
		h.ownerDied = nil
	case <-due:
	case <-idle:
		return true, nil
	}
	return false, nil
}

// offer is a delivery that this hook tried to commit. If that commit's fate is unknown, the next poll may find the entry
// in flight, and only this hook can hand it over.
type offer struct {
	evidence recovery.Evidence
	text     string
}

// sessionIsReady reports whether the session may be woken: it has not ended, and has had time for its first prompt.
func (h *hook) sessionIsReady(s inbox.Session) (bool, error) {
	if s.EndedAt != nil {
		return false, nil
	}
	if pid := h.clientPID(); pid != 0 && pid == s.PID && s.Life() == machine.Gone {
		return false, errSessionGone // another process has its id
	}
	if rest := startWait - h.age(); h.input.Event == claude.EventSessionStart && rest > 0 {
		h.pollAgainIn(rest)
		return false, nil
	}
	return true, nil
}

// wokenWith returns the evidence of a delivery that is to wake the session.
func (h *hook) wokenWith(spill string) recovery.Evidence {
	e := h.evidence()
	e.Wake = recovery.Wake{Woken: true, Token: h.token(), Spill: spill}
	return e
}

// errSessionGone ends a wait: nobody would read the decision.
var errSessionGone = errors.New("the session is gone")

// lifeline holds the processes without which nobody would read a waiting hook's decision.
type lifeline struct {
	processes []*machine.Process // empty before the wait
	// ownerDied is closed once the process that has the entry in flight is gone; nil if no other process has it.
	ownerDied <-chan struct{}
	// owners are the watched processes that have had an entry. Each is watched once, even if sessions take turns.
	owners map[inbox.Process]<-chan struct{}
}

// watchOwner has a waiting hook poll as soon as the owner of the entry in flight dies. first says that this owner was
// not watched before.
func (l *lifeline) watchOwner(o *recovery.Owner) (first bool) {
	died, known := l.owners[o.Process]
	if !known {
		if l.owners == nil {
			l.owners = map[inbox.Process]<-chan struct{}{}
		}
		died = machine.WatchProcess(o.PID).Died()
		l.owners[o.Process] = died
	}
	l.ownerDied = died
	return !known
}

// stillWanted returns an error if nothing may be delivered any more: the wait was ended, or the session has just died.
func (l *lifeline) stillWanted(ctx context.Context) error {
	if slices.ContainsFunc(l.processes, (*machine.Process).Gone) {
		return errSessionGone
	}
	return context.Cause(ctx)
}

// waitContext returns a context that ends at a signal, or when the client or the process that started the hook dies.
func (h *hook) waitContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	parent := machine.WatchProcess(h.Parent)
	client := parent
	if pid := h.clientPID(); pid != 0 {
		client = machine.WatchProcess(pid)
	}
	h.processes = []*machine.Process{parent, client}
	if os.Getppid() != h.Parent {
		cancel(errSessionGone) // it died before the wait began
	}
	go func() {
		select {
		case s := <-signals:
			cancel(cli.EndedBy{Signal: s.(syscall.Signal)})
		case <-client.Died():
			cancel(errSessionGone)
		case <-parent.Died():
			cancel(errSessionGone)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// pollAgainIn has a waiting hook poll after d even if nothing happens. d is capped, because the clock may be set
// meanwhile.
func (w *wait) pollAgainIn(d time.Duration) {
	d = min(max(d, minRecheck), maxRecheck)
	if w.again == 0 || d < w.again {
		w.again = d
	}
}

const minRecheck, maxRecheck = 10 * time.Millisecond, time.Minute
