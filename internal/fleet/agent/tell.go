package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/presence"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
)

const (
	tellPatience = 3 * time.Second
	// tellApart is the least time between two values.
	tellApart = time.Second
	// gone is after how many times [presence.Agent.Every] an agent counts as gone.
	gone = 4
	// asked is how many other agents are asked whether they take messages.
	asked = 32
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
	value, err := p.Value()
	if err != nil {
		a.try("tell", err)
		return
	}
	changed := !bytes.Equal(value, a.told.value)
	old := now.Sub(a.told.at)
	a.told.next = time.Time{}
	switch {
	case !a.o.Connected() || !last && !changed && old < a.every():
		if !a.o.Connected() {
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
	if value, err = p.Value(); err == nil {
		ctx, cancel := context.WithTimeout(ctx, tellPatience)
		defer cancel()
		_, err = a.o.Agents.Put(ctx, names.Agent(a.o.Agent), value)
	}
	if err != nil {
		err = fmt.Errorf("tell others what this agent does: %w", err)
	}
	a.try("tell", err)
}

// presence is what the agent says of itself, without the time.
func (a *Agent) presence() presence.Agent {
	p := a.self
	p.Consumer, p.EverySeconds = a.consumer.CachedInfo().Name, a.every().Seconds()
	p.HeldUp, p.Drain, p.Waiting = a.heldUp, a.draining, a.facts.Backlog.Entries
	if p.HeldUp == "" {
		p.HeldUp = a.lies()
	}
	for _, c := range a.ledger.All() {
		h := presence.Hold{ID: c.ID, Seq: c.Seq, Subject: c.Subject, Copy: c.Copy, Since: c.At, State: presence.Waits}
		_, known := a.outcomes[c.Entry]
		switch {
		case c.GivingBack != nil || c.Refused != "":
			h.State = presence.Leaving
		case known:
			h.State = presence.Answered
		case c.Stalled != nil:
			h.State = presence.Stalled
		case a.isInFlight(c):
			h.State = presence.InFlight
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
	case why.Orphaned, why.Failed, why.NoSession, why.SessionDown, why.SessionOver, why.NoWaker:
		return sentence
	}
	return ""
}

// othersCan reports whether another agent of the consumer lives and takes messages. Whether
// one lives is told by the server's times alone. Of a large fleet some are asked, others
// each time.
func (a *Agent) othersCan(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	own, err := a.o.Agents.Get(ctx, names.Agent(a.o.Agent))
	if err != nil {
		return false
	}
	now := own.Created().Add(time.Since(a.told.at))
	keys, err := a.o.Others(ctx)
	if err != nil {
		return false
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:min(len(keys), asked)] {
		if key == names.Agent(a.o.Agent) {
			continue
		}
		e, err := a.o.Agents.Get(ctx, key)
		if err != nil {
			continue
		}
		p, err := presence.Parse(e.Value())
		if err == nil && p.Consumer == a.consumer.CachedInfo().Name && p.HeldUp == "" && !p.Drain && !p.Ended &&
			now.Sub(e.Created()) < gone*p.Every() {
			return true
		}
	}
	return false
}

// nameTries bounds how often a name is looked at again that changed meanwhile.
const nameTries = 10

// takeName takes the agent's name, and refuses one that an agent with another inbox has:
// what each of them settles would be taken for the other's.
func (a *Agent) takeName(ctx context.Context) error {
	key := names.Agent(a.o.Agent)
	for range nameTries {
		was, err := a.o.Agents.Get(ctx, key)
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
		value, err := own.Value()
		if err != nil {
			return err
		}
		if was == nil {
			_, err = a.o.Agents.Create(ctx, key, value)
		} else {
			_, err = a.o.Agents.Update(ctx, key, value, was.Revision())
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			if errors.Is(err, jetstream.ErrNoStreamResponse) {
				err = fmt.Errorf("%w: this user may not, if the bucket is there: give --name as the server's configuration has it for the user", err)
			}
			return fmt.Errorf("say that agent %s is here: %w", a.o.Agent, err)
		}
	}
	return fmt.Errorf("the name %s changes hands all the time: start one agent of that name alone", a.o.Agent)
}

// checkName refuses the name of an agent with another inbox that lives, which the server's
// times tell.
func (a *Agent) checkName(ctx context.Context, was jetstream.KeyValueEntry) error {
	p, err := presence.Parse(was.Value())
	if err != nil || p.Ended || p.Host == a.self.Host && p.Ledger == a.self.Ledger {
		return nil
	}
	status, err := a.o.Agents.Status(ctx)
	if err != nil {
		return fmt.Errorf("ask whether agent %s lives: %w", a.o.Agent, err)
	}
	bucket, is := status.(*jetstream.KeyValueBucketStatus)
	if !is {
		return fmt.Errorf("ask whether agent %s lives: the bucket %s does not say what time it is", a.o.Agent, status.Bucket())
	}
	if age := bucket.StreamInfo().TimeStamp.Sub(was.Created()); age < gone*p.Every() {
		return fmt.Errorf("an agent %s with another inbox is at work on host %s (process %d), or was %s ago: give this one another name with --name, or wait %s if that one is gone",
			a.o.Agent, p.Host, p.PID, words.Took(age), words.Took(gone*p.Every()-age))
	}
	return nil
}

// isToDrain reports whether it is asked to drain.
func (a *Agent) isToDrain(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	_, err := a.o.Agents.Get(ctx, names.Drain(a.o.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether agent %s is to drain: %w", a.o.Agent, err)
	}
	return true, nil
}

// watchDrain tells when somebody asks the agent to drain, and when no longer. It asks now
// and then: a watch would need a consumer, which a server keeps for each agent, and which
// cannot send into an account of the agent's own. asked is what it was asked at first.
func (a *Agent) watchDrain(ctx context.Context, asked bool) <-chan bool {
	drains := make(chan bool)
	go func() {
		ticker := time.NewTicker(min(a.every(), lookForDrain))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if !a.o.Connected() {
				continue
			}
			is, err := a.isToDrain(ctx)
			if err != nil || is == asked {
				continue // a server that is away is said elsewhere
			}
			asked = is
			select {
			case drains <- is:
			case <-ctx.Done():
				return
			}
		}
	}()
	return drains
}
