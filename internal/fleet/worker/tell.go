package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

const (
	tellPatience = 3 * time.Second
	// tellApart is the least time between two values.
	tellApart = time.Second
	// gone is after how many times [message.Presence.Every] an agent counts as gone.
	gone = 4
	// mostAsked is how many other agents are asked whether they take messages, and mostLooked
	// what they hold: after an outage all agents of a fleet ask at the same time.
	mostAsked  = 32
	mostLooked = 64
	// lookForDrain is how often the agent asks at least whether it is to drain.
	lookForDrain = 10 * time.Second
)

// telling is what was put last.
type telling struct {
	at    time.Time // when
	next  time.Time // when what has changed since may be put, zero if nothing has
	value []byte    // without what changes all the time
}

// tell puts what the agent says of itself: when it has changed, and every third of AckWait.
func (a *Agent) tell(ctx context.Context, last bool) {
	now := time.Now()
	p := a.presence()
	value, err := json.Marshal(p)
	if err != nil {
		a.try("tell", err)
		return
	}
	changed := !bytes.Equal(value, a.told.value)
	old := now.Sub(a.told.at)
	a.told.next = time.Time{}
	switch {
	case !a.conn.Connected() || !last && !changed && old < a.every():
		if !a.conn.Connected() {
			a.told.at = now // nothing to be told is due
		}
		return
	case !last && old < tellApart:
		a.told.next = a.told.at.Add(tellApart)
		return
	}
	a.told.at, a.told.value = now, value
	p.At = now.UTC()
	for i := range p.Holds {
		if moved := a.keep.moved.Load(); moved > 0 {
			p.Holds[i].ProgressAt = time.Unix(0, moved).UTC()
		} else {
			p.Holds[i].ProgressAt = p.At
		}
	}
	if value, err = json.Marshal(p); err == nil {
		ctx, cancel := context.WithTimeout(ctx, tellPatience)
		defer cancel()
		_, err = a.up.Agents.Put(ctx, message.AgentKey(a.o.Agent), value)
	}
	if err != nil {
		err = fmt.Errorf("tell others what this agent does: %w", err)
	}
	a.try("tell", err)
}

// presence is what the agent says of itself, without the time.
func (a *Agent) presence() message.Presence {
	p := a.self
	p.Consumer, p.EverySeconds = a.consumer.CachedInfo().Name, a.every().Seconds()
	p.HeldUp, p.Drain, p.Waiting = a.heldUp, a.draining, a.facts.Backlog.Entries
	if p.HeldUp == "" {
		p.HeldUp = a.lies()
	}
	for _, c := range a.ledger.All() {
		h := message.Hold{ID: c.ID, Seq: c.Seq, Subject: c.Subject, Copy: c.Copy, Since: c.At, State: message.Waits}
		_, known := a.outcomes[c.Entry]
		switch {
		case c.GivingBack != nil || c.Refused != "":
			h.State = message.Leaving
		case known:
			h.State = message.Answered
		case a.keep.stalled() && a.isInFlight(c):
			h.State = message.Stalled
		case a.isInFlight(c):
			h.State = message.InFlight
		}
		p.Holds = append(p.Holds, h)
	}
	return p
}

// lies is why nobody works on what it holds, where it runs no sessions: a sentence, or "" as
// far as somebody does.
func (a *Agent) lies() string {
	if a.o.Launcher != "" || a.ledger.Len() == 0 {
		return ""
	}
	switch state, sentence := a.facts.Explain(); state {
	case see.Orphaned, see.Failed, see.NoSession, see.SessionDown, see.NoWaker:
		return sentence
	}
	return ""
}

// others calls do with what other agents of the consumer say that live, until it returns true.
// Whether one lives is told by the server's times alone; what cannot be asked is left out. Of a
// large fleet no more than most are asked, others each time.
func (a *Agent) others(ctx context.Context, most int, do func(*message.Presence) (enough bool)) {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	own, err := a.up.Agents.Get(ctx, message.AgentKey(a.o.Agent))
	if err != nil {
		return
	}
	now := own.Created().Add(time.Since(a.told.at))
	keys, err := setup.Present(ctx, a.conn.JS, a.o.Stream)
	if err != nil {
		return
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:min(len(keys), most)] {
		if key == message.AgentKey(a.o.Agent) {
			continue
		}
		e, err := a.up.Agents.Get(ctx, key)
		if err != nil {
			continue
		}
		p, err := message.ParsePresence(e.Value())
		if err == nil && p.Consumer == a.consumer.CachedInfo().Name && !p.Ended && now.Sub(e.Created()) < gone*p.Every() && do(&p) {
			return
		}
	}
}

// othersCan reports whether another agent of the consumer takes messages.
func (a *Agent) othersCan(ctx context.Context) (can bool) {
	a.others(ctx, mostAsked, func(p *message.Presence) bool {
		can = p.HeldUp == "" && !p.Drain
		return can
	})
	return can
}

// place tells messages apart, as far as what agents say of themselves does.
type place struct {
	id  string
	seq uint64
}

// holder is an agent that has a copy of a message.
type holder struct {
	agent string
	copy  uint64
}

// heldByOthers is which other agent has the newest copy of each message that others hold.
func (a *Agent) heldByOthers(ctx context.Context) map[place]holder {
	all := map[place]holder{}
	a.tell(ctx, true) // has the server's time of now
	a.others(ctx, mostLooked, func(p *message.Presence) bool {
		for _, h := range p.Holds {
			switch at := (place{h.ID, h.Seq}); h.State {
			case message.Waits, message.InFlight, message.Answered:
				if h.Copy > all[at].copy {
					all[at] = holder{p.Agent, h.Copy}
				}
			}
		}
		return false
	})
	return all
}

// nameTries bounds how often a name is looked at again that changed meanwhile.
const nameTries = 10

// takeName takes the agent's name, and refuses one that an agent with another inbox has:
// what each of them settles would be taken for the other's.
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
			_, err = a.up.Agents.Create(ctx, key, value)
		} else {
			_, err = a.up.Agents.Update(ctx, key, value, was.Revision())
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			if err = link.Quorum(ctx, a.conn.JS, err); errors.Is(err, jetstream.ErrNoStreamResponse) {
				err = fmt.Errorf("%w: this user may not, if the bucket is there: give --name as the server's configuration has it for the user", err)
			}
			return fmt.Errorf("say that agent %s is here: %w", a.o.Agent, err)
		}
	}
	return link.Final(fmt.Errorf("the name %s changes hands all the time: start one agent of that name alone", a.o.Agent))
}

// checkName refuses the name of an agent with another inbox that lives, which the server's
// times tell.
func (a *Agent) checkName(ctx context.Context, was jetstream.KeyValueEntry) error {
	p, err := message.ParsePresence(was.Value())
	if err != nil || p.Ended || p.Host == a.self.Host && p.Ledger == a.self.Ledger {
		return nil
	}
	status, err := a.up.Agents.Status(ctx)
	if err != nil {
		return fmt.Errorf("ask whether agent %s lives: %w", a.o.Agent, err)
	}
	bucket, is := status.(*jetstream.KeyValueBucketStatus)
	if !is {
		return fmt.Errorf("ask whether agent %s lives: the bucket %s does not say what time it is", a.o.Agent, status.Bucket())
	}
	if age := bucket.StreamInfo().TimeStamp.Sub(was.Created()); age < gone*p.Every() {
		return link.Final(fmt.Errorf("an agent %s with another inbox is at work on host %s (process %d), or was %s ago: give this one another name with --name, or wait %s if that one is gone",
			a.o.Agent, p.Host, p.PID, words.Took(age), words.Took(gone*p.Every()-age)))
	}
	return nil
}

// isToDrain reports whether it is asked to drain.
func (a *Agent) isToDrain(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	_, err := a.up.Agents.Get(ctx, message.DrainKey(a.o.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether agent %s is to drain: %w", a.o.Agent, err)
	}
	return true, nil
}

// askDrain asks now and then whether somebody wants the agent to drain, or no longer. A watch
// would need a consumer, which a server keeps for each agent, and which cannot send into an
// account of the agent's own.
func (a *Agent) askDrain(ctx context.Context) {
	const drain = "drain"
	if !a.conn.Connected() || !a.due(drain) {
		return
	}
	a.retries[drain] = retry{at: time.Now().Add(min(a.every(), lookForDrain))}
	is, err := a.isToDrain(ctx)
	if err == nil && is != a.asked { // a server that does not answer is said elsewhere
		a.asked = is
		a.drain(is, askedByVerb)
	}
}
