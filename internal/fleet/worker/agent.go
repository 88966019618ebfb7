package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/claim"
	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// lockWait is how long the agent waits for the inbox's own lock.
const lockWait = 30 * time.Second

// Agent is a running agent.
type Agent struct {
	o      Options
	conn   *link.Conn
	up     *upstream.Upstream
	box    *inbox.Inbox
	ledger *upstream.Ledger
	pulls
	reads
	works
	standing
	retries map[string]retry // by what was tried
	keep    keeper
	self    message.Presence
	told    telling
}

// pulls is how the agent takes messages.
type pulls struct {
	consumer   jetstream.Consumer
	ackWait    time.Duration
	maxDeliver int
	pulled     chan pulled
	pulling    context.CancelFunc // nil while no message is asked for
	behind     map[uint64]behind  // by sequence
}

// reads is what the agent has read of its inbox.
type reads struct {
	results, letters *outcomes.Tail
	outcomes         map[string]outcomes.Outcome // by entry, of what is held
	facts            see.Facts                   // as read last
	appended         bool                        // an entry of ours since then; facts counts it
	doubtful         bool                        // what is held may have been answered elsewhere: reconcile first
	reconciled       bool                        // what an earlier life held was compared with the inbox
	compared         time.Time                   // when reconcile last ran
}

// works is the launcher that the agent starts for its entries.
type works struct {
	child  *child
	proven bool      // a launcher has worked, so the set-up was right then
	worked time.Time // when something was last held, zero once that memory is given back
}

// standing is whether the agent goes on.
type standing struct {
	draining bool
	asked    bool      // to drain, by heartbeat-nats drain
	ending   error     // why the agent ends, nil while it works
	heldUp   string    // why it takes no message, or ""
	stepped  time.Time // when the last step began
}

// errEnded ends an agent that was asked to end, errDrained one that has nothing left to do.
var errEnded, errDrained = errors.New("it was asked to end"), errors.New("it has drained")

// Run runs an agent until it has drained, is asked to end, or cannot work on this machine. ended reports that it was
// asked to end before it had drained. Run waits out faults of the server; the end of begin ends such a wait before the
// agent works. The error matches [upstream.ErrBusy] if another agent has the inbox.
func Run(begin context.Context, c *link.Conn, o Options) (ended bool, err error) {
	a := &Agent{
		o: o, conn: c, retries: map[string]retry{},
		pulls: pulls{pulled: make(chan pulled, 1), behind: map[uint64]behind{}}, reads: reads{outcomes: map[string]outcomes.Outcome{}, doubtful: true},
	}
	if err = a.run(begin); errors.Is(err, errEnded) {
		err = nil
	}
	return errors.Is(a.ending, errEnded), err
}

func (a *Agent) run(begin context.Context) (err error) {
	wait := func(do func(context.Context) error) error {
		err := a.conn.Patiently(begin, func() error { return do(begin) })
		if begin.Err() != nil {
			a.ending = errEnded
			return errEnded
		}
		return err
	}
	if err := wait(a.prepare); err != nil {
		return err
	}
	if a.box, err = inbox.Open(a.o.Inbox, inbox.Options{LockWait: lockWait}); err != nil {
		return err
	}
	if err := claim.CheckRights(a.box, "", a.o.Say); err != nil {
		return err
	}
	if a.ledger, err = upstream.OpenLedger(a.box.Path(), a.o.Binding); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.ledger.Close()) }()
	n := 0
	if a.ledger.Len() > 0 {
		n = -1 // all: outcomes may have come while no agent ran
	}
	if err := a.openTails(n); err != nil {
		return err
	}
	defer func() { _ = errors.Join(a.results.Close(), a.letters.Close()) }() // only read
	host, _ := os.Hostname()                                                 // empty if there is none
	a.self = message.Presence{
		Agent: a.o.Agent, Host: host, PID: os.Getpid(), Release: cli.ReadBuild().Version, Inbox: filepath.Base(a.box.Path()),
		Path: a.box.Path(), Slots: a.o.Slots, Started: time.Now().UTC(), Ledger: a.ledger.Identity(), Boot: machine.BootID(),
		Source: message.Source{Stream: a.o.Stream, Subject: a.o.Subject},
	}
	if err := wait(func(ctx context.Context) error {
		err := a.takeName(ctx)
		if err == nil {
			a.told.heard = time.Now()
			a.asked, err = a.isToDrain(ctx)
		}
		return err
	}); err != nil {
		return err
	}
	a.say(fmt.Sprintf("agent %s takes messages with the subject %s from the stream %s", words.Brief(a.o.Agent), a.o.Subject, a.o.Stream))
	if a.asked {
		a.drain(true, askedByVerb)
	}
	a.adopt()
	return a.loop()
}

// prepare opens what setup has made, and the consumer. Without a named stream it uses the one that takes the subject.
func (a *Agent) prepare(ctx context.Context) (err error) {
	a.o.Subject = cmp.Or(a.o.Subject, ">")
	if a.o.Stream == "" {
		if a.o.Stream, err = setup.StreamFor(ctx, a.conn.JS, a.o.Subject); err != nil {
			return err
		}
	}
	if a.up, err = upstream.Open(ctx, a.conn.JS, a.o.Stream); err != nil {
		return err
	}
	a.up.Rest = a.stays
	return a.bind(ctx)
}

const askedByVerb = "heartbeat-nats drain asks for it, and --undo takes that back"

func (a *Agent) bind(ctx context.Context) error {
	c, err := setup.Consumer(ctx, a.conn.JS, a.o.Stream, a.o.Subject)
	if err != nil {
		return err
	}
	info := c.CachedInfo()
	a.consumer, a.ackWait, a.maxDeliver = c, info.Config.AckWait, setup.MaxDeliver(&info.Config)
	a.keep.every.Store(int64(a.ackWait / 3))
	return nil
}

func (a *Agent) loop() error {
	watch := a.box.WatchOutcomes(pollInbox)
	defer func() { _ = watch.Close() }() // nothing is lost
	ctx, cancel := context.WithCancel(context.Background())
	keeping := a.startKeeping(ctx)
	defer func() { cancel(); <-keeping }()
	for {
		if over, err := a.step(ctx); over || err != nil {
			return errors.Join(err, a.finish())
		}
		anew := a.conn.Over()
		if a.ending != nil {
			anew = nil // end the launcher first, as without a server
		}
		select {
		case <-time.After(a.untilNext()): // as a rule to show what changed: no other write has updated the ledger's file
			a.try(forgetting, a.ledger.Flush())
		case <-watch.C:
		case <-a.keep.change:
		case p := <-a.pulled:
			a.pulling = nil
			a.takeUp(ctx, p)
		case err := <-a.child.ended():
			a.childEnded(err)
		case <-anew: // the next Run takes the launcher over
			if a.stopPulling(); a.pulling != nil {
				<-a.pulled
			}
			return link.ErrOver
		case <-a.o.Drain:
			a.o.Drain = nil
			a.drain(true, "a signal asks for it")
		case <-a.o.End:
			a.o.End = nil
			a.end(errEnded)
		case <-a.o.Kill:
			a.o.Kill = nil
			a.end(errEnded)
			a.child.kill()
		case <-a.conn.Back():
			a.doubtful = true
			a.stopPulling() // the server has forgotten that request
		}
	}
}

// untilNext returns how long to wait for an event before the next step.
func (a *Agent) untilNext() time.Duration {
	times := []time.Time{a.told.next, a.facts.Scheduled.Next}
	if b := a.facts.Backoff; b != nil {
		times = append(times, b.Until)
	}
	if p := a.facts.Paused; p != nil && p.Until != nil {
		times = append(times, *p.Until)
	}
	for _, r := range a.retries {
		times = append(times, r.at)
	}
	next := a.told.at.Add(a.every())
	for _, t := range times {
		// What was due before the last step waits for something other than time.
		if t.After(a.stepped) && t.Before(next) {
			next = t
		}
	}
	return max(10*time.Millisecond, time.Until(next))
}

// every returns how often the agent keeps its messages and puts its presence.
func (a *Agent) every() time.Duration { return a.ackWait / 3 }

// step does all that can be done now. over reports that nothing is left to do.
func (a *Agent) step(ctx context.Context) (over bool, err error) {
	a.stepped = time.Now()
	if err := a.readOutcomes(); err != nil {
		return false, err
	}
	TestOnlyStep("outcomes read")
	// Right after the facts were read, the agent's own entry is all that is new. No launcher starts by old facts.
	if a.appended && time.Since(a.facts.Now) <= time.Second && (a.o.Launcher == "" || a.child != nil) {
		a.stepped = a.facts.Now // what came due since is still to be acted on
	} else {
		a.readFacts(ctx)
	}
	a.appended = false
	a.doubtful = a.keep.late.Swap(false) || a.doubtful
	// Reconcile regularly even without a doubt: an entry may have been dropped, or a message canceled.
	if (a.doubtful || a.conn.Connected() && time.Since(a.compared) > a.every()) && a.due(reconciling) {
		done := a.try(reconciling, a.reconcile(ctx))
		a.doubtful = a.doubtful && !done
		a.reconciled, a.compared = a.reconciled || done, time.Now()
	}
	a.publishOutcomes(ctx)
	a.checkDrain(ctx)
	a.giveBackHeld(ctx)
	if a.ending == nil && a.draining && a.ledger.Len() == 0 && a.pulling == nil {
		a.say("drained: nothing is held")
		a.ending = errDrained
	}
	if a.ending != nil && a.endStep(ctx) {
		a.self.Ended = true
		a.readFacts(ctx) // what was given back no longer waits
		a.putPresence(ctx, true)
		if errors.Is(a.ending, errDrained) || errors.Is(a.ending, errEnded) {
			return true, nil
		}
		return true, a.ending
	}
	a.keepChild()
	a.pull(ctx)
	a.putPresence(ctx, false)
	if a.ledger.Len() > 0 {
		a.worked = time.Now()
	} else if !a.worked.IsZero() && time.Since(a.worked) >= a.every()/2 { // idle for a while
		a.worked = time.Time{}
		debug.FreeOSMemory()
	}
	return false, nil
}

func (a *Agent) drain(on bool, why string) {
	if a.draining == on {
		return
	}
	a.draining = on
	if on {
		a.say("draining: " + why)
		a.stopPulling()
	} else {
		a.say("no longer draining")
	}
}

func (a *Agent) end(why error) {
	if a.ending == nil || errors.Is(a.ending, errDrained) {
		a.ending = why
	}
	a.stopPulling()
	a.child.end()
}

// endStep ends the launcher, gives back what waits, and reports whether that is done.
func (a *Agent) endStep(ctx context.Context) bool {
	a.child.end()
	if a.pulling != nil || a.child != nil {
		return false
	}
	for _, c := range a.ledger.All() {
		if _, known := a.outcomes[c.Entry]; !known && a.conn.Connected() {
			_ = a.giveBack(ctx, c, 0, "this agent ends") // after an error its next run gives it back
		}
	}
	if left := a.ledger.Len(); left > 0 {
		a.say(fmt.Sprintf("%d of its messages stay with it: their answers are told when it runs again, and what nobody answers goes elsewhere after %v", left, a.ackWait))
	}
	return true
}

// finish ends what still runs, even if the loop failed.
func (a *Agent) finish() error {
	a.stopPulling()
	if a.pulling != nil {
		<-a.pulled
	}
	if a.child == nil {
		return nil
	}
	a.child.end()
	err := <-a.child.done
	if errors.As(err, new(*exec.ExitError)) || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (a *Agent) say(sentence string) { a.o.Say(sentence) }
