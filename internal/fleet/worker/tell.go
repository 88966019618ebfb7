package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

const (
	tellPatience = 3 * time.Second
	// tellApart is the least time between two values.
	tellApart = time.Second
	// drainEvery is the longest time between two checks for a drain request.
	drainEvery = 10 * time.Second
)

// telling is what the agent knows of the values of its presence.
type telling struct {
	at         time.Time        // when a value was last put
	heard      time.Time        // when the server last took a value
	back       time.Time        // when the server took a value again, after a time in which it took none
	left       time.Time        // when a server that took none was left for another one
	connection uint64           // over which a value was last put, as a number of reconnections
	next       time.Time        // when a later change may be put, zero if there is none
	said       message.Presence // the last value, without what changes all the time
	last       uint64           // its revision, 0 if unknown: an agent that does not know it does not overwrite the value
}

// putPresence puts the agent's presence when it has changed, and every third of AckWait. last puts it in any case.
func (a *Agent) putPresence(ctx context.Context, last bool) {
	now := time.Now()
	a.told.next = time.Time{}
	if !a.conn.Connected() { // the library, which holds its lock while it dials, is not asked either
		a.told.at = now // nothing is due
		return
	}
	p, connection, old := a.presence(), a.conn.NATS.Stats().Reconnects, now.Sub(a.told.at)
	switch {
	case connection != a.told.connection: // before this agent takes a message: others may have thought it away
	case !last && old < a.every() && reflect.DeepEqual(p, a.told.said):
		return
	case !last && old < tellApart:
		a.told.next = a.told.at.Add(tellApart)
		return
	}
	a.told.at, a.told.said, a.told.connection = now, p, connection
	p.At, p.Holds = now.UTC(), slices.Clone(p.Holds)
	for i := range p.Holds {
		p.Holds[i].ProgressAt = p.At
		if moved := a.keep.moved.Load(); moved > 0 {
			p.Holds[i].ProgressAt = time.Unix(0, moved).UTC()
		}
	}
	value, err := json.Marshal(p)
	if err == nil {
		ctx, cancel := link.Within(ctx, a.conn.NATS, tellPatience)
		defer cancel()
		a.told.last, err = a.up.Agents.Update(ctx, message.AgentKey(a.o.Agent), value, a.told.last)
		if upstream.IsOlder(err) { // a confirmation or the bucket was lost, or another agent has taken the name
			err = a.takeName(ctx)
		}
	}
	if err != nil && !errors.Is(err, a.ending) {
		err = fmt.Errorf("tell others what this agent does: %w: it is tried again, and until then status shows this agent as away, though it works; the server's log says more, and a server whose disk was full may write that bucket only once it is started again", err)
		// The longer no server has taken a value, the longer each one gets.
		if silent := now.Sub(a.told.heard); silent > a.ackWait && now.Sub(a.told.left) > silent/2 {
			a.told.left = now
			a.conn.Leave(err)
		}
	} else if err == nil {
		if a.wasAway() {
			a.told.back = time.Now()
		}
		a.told.heard = time.Now()
	}
	a.try(showing, err)
}

// wasAway reports whether no value was taken for so long that the server may have been away.
func (a *Agent) wasAway() bool {
	return !a.told.heard.IsZero() && time.Since(a.told.heard) > 2*a.every()
}

// mostRests limits how many copies of a message are given back after the servers were away.
const mostRests = 3

// stays returns for how long at least a message stays with the agent that holds its lease, although a newer copy came
// here: for as long as that agent was heard within AckWait. Servers that were away for an AckWait hand everything out
// again as soon as they are back, while the agents that work on those messages reconnect one by one.
func (a *Agent) stays(ctx context.Context, l upstream.Lease, copy uint64) (time.Duration, error) {
	ctx, cancel := link.Within(ctx, a.conn.NATS, tellPatience)
	defer cancel()
	was, err := a.up.Agents.Get(ctx, message.AgentKey(l.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask whether agent %s lives: %w", l.Agent, err)
	}
	p, err := message.ParsePresence(was.Value())
	if err != nil || !p.Keeps(l.ID, l.Seq, was.Created(), l.Written) {
		return 0, nil
	}
	back := max(a.ackWait, link.MostDelay+tellApart)
	if !a.wasAway() {
		back -= time.Since(a.told.back)
	}
	if copy <= l.Copy+mostRests && back > 0 && !p.Ended {
		return back, nil
	}
	rest, _, err := a.livesFor(ctx, was, p)
	return rest, err
}

// livesFor returns for how long at least an agent lives, and how long ago it was heard, both by the server's clock.
func (a *Agent) livesFor(ctx context.Context, was jetstream.KeyValueEntry, p message.Presence) (rest, ago time.Duration, err error) {
	bucket, err := a.up.Agents.Status(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("ask whether agent %s lives: %w", p.Agent, err)
	}
	now := bucket.(*jetstream.KeyValueBucketStatus).StreamInfo().TimeStamp
	return p.Lives(was.Created(), now), now.Sub(was.Created()), nil
}

// presence returns the agent's presence, without the time.
func (a *Agent) presence() message.Presence {
	p := a.self
	p.Consumer, p.EverySeconds = a.consumer.CachedInfo().Name, a.every().Seconds()
	p.HeldUp, p.Drain, p.Waiting = a.heldUp, a.draining, a.facts.Backlog.Entries
	if p.HeldUp == "" && a.ledger.Len() < a.o.Slots && !a.hasRoom() {
		there := "one is"
		if a.o.QueueDepth > 1 {
			there = fmt.Sprintf("%d are", a.o.QueueDepth)
		}
		p.HeldUp = fmt.Sprintf("its inbox has entries of others: it takes no message while %s there (--queue-depth)", there)
		p.Busy = a.facts.InFlight != nil && !a.facts.Client.Ended()
	}
	if l := a.facts.Launcher; p.HeldUp == "" && a.ledger.Len() > 0 {
		state, sentence := a.facts.Explain()
		// Sessions of others do not run, or those of the launcher do not begin.
		if a.o.Launcher == "" && state.IsUnattended() || l != nil && l.Troubled && a.facts.InFlight == nil {
			p.HeldUp = sentence
		}
	}
	for _, c := range a.ledger.All() {
		h := message.Hold{ID: c.ID, Seq: c.Seq, Subject: c.Subject, Copy: c.Copy, Since: c.At, State: message.Waits}
		_, known := a.outcomes[c.Entry]
		switch {
		case c.GivingBack != nil || c.Refused != "":
			h.State = message.Leaving
		case known:
			h.State = message.Answered
		case a.keep.stalled.Load() && a.isInFlight(c):
			h.State = message.Stalled
		case a.isInFlight(c):
			h.State = message.InFlight
		}
		p.Holds = append(p.Holds, h)
	}
	return p
}

// nameTries limits how often a name is read again while others take it.
const nameTries = 10

// takeName takes the agent's name, unless an agent with another inbox has it: their outcomes would be mixed up.
func (a *Agent) takeName(ctx context.Context) error {
	key := message.AgentKey(a.o.Agent)
	for range nameTries {
		was, err := a.up.Agents.Get(ctx, key)
		switch {
		case err == nil:
			err = a.checkName(ctx, was)
		case errors.Is(err, jetstream.ErrKeyNotFound):
			was, err = nil, nil
		default:
			err = fmt.Errorf("ask whether there is an agent %s already: %w", a.o.Agent, err)
		}
		if err != nil {
			return err
		}
		own := a.presence()
		own.At = time.Now().UTC()
		value, err := json.Marshal(own)
		if err != nil {
			return err
		}
		if was == nil {
			a.told.last, err = a.up.Agents.Create(ctx, key, value)
		} else {
			a.told.last, err = a.up.Agents.Update(ctx, key, value, was.Revision())
		}
		switch {
		case err == nil:
			return nil
		case !upstream.IsOlder(err):
			refusal := a.conn.Refusal() // a server reports it beside the request
			isRefused := refusal != nil && strings.Contains(refusal.Error(), key)
			if isRefused {
				err = refusal
			}
			if isRefused || errors.Is(err, jetstream.ErrNoStreamResponse) {
				err = fmt.Errorf("%w: give --name as the server's configuration or the credentials have it, if the bucket is there", err)
			}
			return fmt.Errorf("say that agent %s is here: %w", a.o.Agent, err)
		}
	}
	return link.Final(fmt.Errorf("the name %s changes hands all the time: start one agent of that name alone", a.o.Agent))
}

// checkName refuses the agent's name while an agent with another inbox lives under it.
func (a *Agent) checkName(ctx context.Context, was jetstream.KeyValueEntry) error {
	p, err := message.ParsePresence(was.Value())
	same := p.Host == a.self.Host && p.Ledger == a.self.Ledger
	if err != nil || p.Ended || same && !machine.OtherBoot(p.Boot) {
		return nil
	}
	rest, ago, err := a.livesFor(ctx, was, p)
	switch {
	case err != nil || rest == 0:
		return err
	case same && a.told.heard.IsZero(): // this machine has been booted since, or was copied
		return fmt.Errorf("host %s was started anew, or is a copy of a machine whose agent %s is at work: this one begins once nothing has been heard of that one for an AckWait; on a copy, give it another --name and an inbox of its own", p.Host, a.o.Agent)
	}
	err = link.Final(fmt.Errorf("an agent %s with another inbox is at work on host %s (process %d), or was %s ago: give this one another name with --name, or wait %s if that one is gone",
		a.o.Agent, p.Host, p.PID, words.Took(ago), words.Took(rest)))
	if !a.told.heard.IsZero() { // this agent was not heard for so long that the other took the name
		a.end(err)
	}
	return err
}

func (a *Agent) isToDrain(ctx context.Context) (bool, error) {
	ctx, cancel := link.Within(ctx, a.conn.NATS, tellPatience)
	defer cancel()
	_, err := a.up.Agents.Get(ctx, message.DrainKey(a.o.Agent))
	if err == nil || errors.Is(err, jetstream.ErrKeyNotFound) {
		return err == nil, nil
	}
	return false, fmt.Errorf("ask whether agent %s is to drain: %w", a.o.Agent, err)
}

// checkDrain checks regularly whether the agent should drain, or no longer. A watch would need a consumer: the server
// would keep one for each agent, and could not send into an account of the agent's own.
func (a *Agent) checkDrain(ctx context.Context) {
	if !a.conn.Connected() || !a.due(checking) {
		return
	}
	a.retries[checking] = retry{at: time.Now().Add(min(a.every(), drainEvery))}
	asked, err := a.isToDrain(ctx)
	if err == nil && asked != a.asked { // putPresence reports a silent server
		a.asked = asked
		a.drain(asked, askedByVerb)
	}
}
