package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise"
)

var stopVerb = cli.Verb{
	Name:  "stop",
	Short: "end the launcher of an inbox, and its session, in order",
	Long: `End the launcher that works on an inbox, as SIGTERM does: it delivers nothing more,
lets the entry in flight be answered (for --drain-timeout at the most), ends its
session, and ends with status 0. What waits goes on waiting. stop returns once the
launcher has ended. A launcher that is ending already is not told again.

With --now it does not wait for the answer. The launcher's --on-orphan decides what
becomes of the entry: retry gives it back, uncounted, deadletter sets it aside as
stopped, and drop drops it. A second SIGTERM does the same.

The hook is another command, heartbeat-stop: heartbeat hook --help.

Exit status: 0 no launcher works on the inbox (any more), or it was told (--no-wait);
1 it could not be told; 128+n signal n ended it.`,
	Example: `heartbeat stop
heartbeat stop --now`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		var o stopFlags
		i.Add(f)
		f.BoolVar(&o.now, "now", false, "do not wait for the entry in flight to be answered")
		f.BoolVar(&o.noWait, "no-wait", false, "return once the launcher is told, before it has ended")
		return onInbox("", i.OpenRead, cli.NoArgs, func(box *inbox.Inbox, _ []string, s cli.Streams) error { return stop(box, &i, o, s) })
	},
}

type stopFlags struct{ now, noWait bool }

// stopped is what stop prints with --json.
type stopped struct {
	PID   int  `json:"pid"` // of the launcher; 0: none
	Ended bool `json:"ended"`
}

func stop(box *inbox.Inbox, i *cli.InboxFlags, o stopFlags, s cli.Streams) error {
	r, err := stopLauncher(box, o)
	if err != nil {
		return err
	}
	sentence := fmt.Sprintf("the launcher (process %d) is told to end: heartbeat status shows how far it is", r.PID)
	switch {
	case r.PID == 0:
		sentence = "no launcher works on " + box.Path()
	case r.Ended:
		sentence = fmt.Sprintf("the launcher (process %d) has ended", r.PID)
	}
	return reportDone(i, s, r, sentence)
}

func stopLauncher(box *inbox.Inbox, o stopFlags) (r stopped, err error) {
	launcher, err := launcherOf(box)
	if err != nil || launcher.PID == 0 {
		return r, err
	}
	r.PID = launcher.PID
	ctx, cancel := program.UntilSignal(0)
	defer cancel()
	died := machine.WatchProcess(launcher.PID).Died()
	ending, sign := isSigned(box, launcher, supervise.ItEnds), supervise.ItEnds
	if ending {
		sign = supervise.ItEndsAtOnce
	}
	if o.now || !ending { // a second signal means --now
		err = signalEnd(launcher)
	}
	if err == nil && o.now {
		// After an earlier signal this was the second one, unless only the launcher's --timeout had begun its end.
		if err = awaitSign(ctx, box, launcher, sign, died); err == nil && !isSigned(box, launcher, supervise.ItEndsAtOnce) {
			err = signalEnd(launcher)
		}
	}
	ours := machine.Nearest(os.Getppid(), func(pid int) bool { return pid == launcher.PID }) != 0
	if err != nil || o.noWait || ours { // the launcher waits for its session, and the session for this command
		return r, err
	}
	select {
	case <-died:
		r.Ended = true
		return r, nil
	case <-ctx.Done():
	}
	by, _ := errors.AsType[cli.EndedBy](context.Cause(ctx)) // nothing else ends it
	return r, cli.Silent(by.Status())
}

// The system's list of locks may miss one while others change: it is read this often before a lock counts as missing.
const (
	holderTries = 10
	holderRest  = 50 * time.Millisecond
)

// launcherOf returns the process that holds the launcher's lock, or none, and an error for one that stop may not end.
func launcherOf(box *inbox.Inbox) (its machine.Entry, err error) {
	for try := range holderTries {
		if try > 0 {
			time.Sleep(holderRest)
		}
		its = machine.Entry{PID: lockHolder(box)}
		if its.PID == 0 {
			return its, nil
		}
		its.Start = machine.ProcessStart(its.PID)
		again := lockHolder(box) // the number may belong to another process by now
		if again == 0 {
			return machine.Entry{}, nil
		}
		if err = nil; again != its.PID || its.PID > 0 && its.Start == 0 {
			err = errors.New("another launcher takes the inbox right now: try again")
		} else if its.PID > 0 {
			break
		}
	}
	switch {
	case err != nil:
		return its, err
	case its.PID < 0:
		return its, errors.New("the launcher's process cannot be seen from here, because it is in another container: stop it there")
	case machine.Name(its.PID) == "heartbeat-host":
		return its, fmt.Errorf("a hosted session works on %s (process %d): `heartbeat-host cancel --warm ID` ends it, and `heartbeat-host list` shows its ID", box.Path(), its.PID)
	}
	if agent := machine.Nearest(its.PID, func(pid int) bool { return machine.Name(pid) == "heartbeat-nats" }); agent != 0 {
		return its, fmt.Errorf("the launcher of %s (process %d) is that of a fleet's agent (process %d), which would start another: `heartbeat-nats drain AGENT` ends the agent, and `heartbeat-nats status` shows its name",
			box.Path(), its.PID, agent)
	}
	return its, nil
}

// lockHolder returns the process that holds the launcher's lock, 0 for none, -1 if unknown: a lock that is not listed is
// of another container, whose ids mean nothing here. The holder's sign counts only where no locks are listed (macOS).
func lockHolder(box *inbox.Inbox) int {
	if l := see.LauncherOf(box); l != nil {
		return l.PID
	}
	path := box.LaunchLock()
	if there, err := disk.Exists(path); err != nil || !there {
		return 0
	}
	lock, err := disk.AcquireLock(context.Background(), path, time.Millisecond)
	if !errors.Is(err, disk.ErrLocked) {
		_ = lock.Release() // nothing was written
		return 0
	}
	if pid, err := strconv.Atoi(see.SignOf(box)[0]); err == nil && pid > 0 && runtime.GOOS != "linux" {
		return pid
	}
	return -1
}

// signalEnd sends a launcher, never a process that reused its id, the signal to end, unless it has just ended.
func signalEnd(launcher machine.Entry) error {
	if err := guardian.Send(launcher, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the launcher, process %d: %w: run this as its user", launcher.PID, err)
	}
	return nil
}

const (
	// endingPoll is how often to check that a launcher has noted the first signal: two at once count as one.
	endingPoll     = 5 * time.Millisecond
	endingPatience = 5 * time.Second // how long that may take
)

// isSigned reports whether the launcher's sign, not that of another one that was killed, begins with these words.
func isSigned(box *inbox.Inbox, launcher machine.Entry, words string) bool {
	sign := see.SignOf(box)
	return sign[0] == strconv.Itoa(launcher.PID) && strings.HasPrefix(sign[1], words)
}

// awaitSign waits for such a sign, at most endingPatience, or until the launcher dies.
func awaitSign(ctx context.Context, box *inbox.Inbox, launcher machine.Entry, words string, died <-chan struct{}) error {
	for deadline := time.Now().Add(endingPatience); ctx.Err() == nil && time.Now().Before(deadline) && !isSigned(box, launcher, words); {
		select {
		case <-time.After(endingPoll):
		case <-died:
			return nil
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
