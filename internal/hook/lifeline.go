package hook

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

// errSessionGone ends a wait: nobody would read the decision.
var errSessionGone = errors.New("the session is gone")

// lifeline is what a waiting hook serves: without these processes nobody would read its
// decision.
type lifeline struct {
	// parent is who started us; another one later means that it died.
	parent    int
	processes []*host.Process // none before the wait
	// ownerDied is closed once the process is gone that has the entry in flight; nil where
	// nobody else has it.
	ownerDied <-chan struct{}
	// owners are those that had an entry so far, and live. Sessions that take turns are
	// followed once each.
	owners map[recovery.Process]<-chan struct{}
}

// watchOwner has a waiting hook look again at once when the owner of the entry in flight
// dies. It reports whether that is one that had no entry before.
func (l *lifeline) watchOwner(o *recovery.Owner) (first bool) {
	died, known := l.owners[o.Process]
	if !known {
		if l.owners == nil {
			l.owners = map[recovery.Process]<-chan struct{}{}
		}
		died = host.WatchProcess(o.PID).Died()
		l.owners[o.Process] = died
	}
	l.ownerDied = died
	return !known
}

// stillWanted reports why nothing may be taken any more: the wait was ended, or
// the session has died just now.
func (l *lifeline) stillWanted(ctx context.Context) error {
	for _, p := range l.processes {
		if p.Gone() {
			return errSessionGone
		}
	}
	return context.Cause(ctx)
}

// waitContext ends with a signal, or when the session dies: the client itself, or the
// process that started the hook. The client is the process pid, 0 if that is not known.
func (l *lifeline) waitContext(pid int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	parent := host.WatchProcess(l.parent)
	client := parent
	if pid != 0 {
		client = host.WatchProcess(pid)
	}
	l.processes = []*host.Process{parent, client}
	if os.Getppid() != l.parent {
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

// recheck is when a waiting hook looks again although nothing has happened.
type recheck struct {
	again time.Duration // 0 for never
}

// lookAgainIn has a waiting hook look after that time, even if nothing happens.
// The clock may be set meanwhile, so that it looks from time to time in between.
func (r *recheck) lookAgainIn(d time.Duration) {
	d = min(max(d, minRecheck), maxRecheck)
	if r.again == 0 || d < r.again {
		r.again = d
	}
}

const minRecheck, maxRecheck = 10 * time.Millisecond, time.Minute
