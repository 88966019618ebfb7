package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

// The reasons of a dead letter whose message had all its attempts, and of one that cannot be
// an entry here.
const (
	reasonMaxDeliver = "max deliver"
	invalid          = "invalid"
)

// mostAhead is for how long a message is given back at a time whose time has not come: a
// server takes far more, and agents that come later see it within a day.
const mostAhead = 24 * time.Hour

// takeUp makes an entry of a message that came.
func (a *Agent) takeUp(ctx context.Context, p pulled) {
	if p.msg == nil {
		if a.pullFailed(ctx, p.err); a.due(asking) {
			a.cannotTake = "" // there was nothing to take
		}
		return
	}
	a.try(asking, nil)
	w, err := message.Of(p.msg)
	if err != nil {
		a.say(err.Error())
		return
	}
	TestOnlyStep("pulled")
	err = a.take(ctx, &w)
	if a.cannotTake = ""; err != nil {
		a.cannotTake = fmt.Sprintf("it cannot take messages: %v", err)
	}
	a.try(taking, err)
}

// taking is to make an entry of a message.
const taking = "take"

// take makes an entry of a message. Where that fails, the message goes back, so that no
// attempt is lost by an agent that cannot work.
func (a *Agent) take(ctx context.Context, w *message.Message) error {
	c := upstream.Claim{
		ID: w.ID, Entry: w.Entry, Agent: a.o.Agent, Again: w.Again, Stream: w.Stream, Seq: w.Seq, Subject: w.Subject,
		Ack: w.Ack, Copy: w.Copy, Reply: w.Reply, Appended: w.Copy, Attempt: 1, At: TestOnlyClock().UTC(), Taken: time.Now(),
		Headers: w.Headers, HeadersLeft: w.HeadersLeft,
	}
	if held, there := a.ledger.Get(w.Entry); there {
		return a.takeCopy(ctx, held, c)
	}
	if a.ending != nil || a.draining {
		_, err := a.up.GiveBack(ctx, c, 0)
		return err
	}
	err := a.claim(ctx, w, c)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("message %s: %w", words.Brief(w.ID), err)
	if _, claimed := a.ledger.Get(w.Entry); claimed || !a.conn.Connected() || errors.Is(err, errGivenBack) {
		return err
	}
	_, wrong := a.up.GiveBack(ctx, c, time.Second)
	return errors.Join(err, wrong)
}

// errGivenBack is beside the failure of a message that was given back.
var errGivenBack = errors.New("it is given back")

// claim notes that a message is held, and puts its entry into the inbox, unless it was
// settled before.
func (a *Agent) claim(ctx context.Context, w *message.Message, c upstream.Claim) error {
	if known, err := a.up.Known(ctx, c.ID, c.Again); err != nil {
		return err
	} else if known != nil {
		left, err := a.up.Drop(ctx, c)
		if err == nil {
			a.say(fmt.Sprintf("message %s was settled by %s before (%s): no turn is spent on it%s", words.Brief(c.ID), known.Agent, known.Outcome, also(left)))
		}
		return err
	}
	if c.Copy > 1 {
		back, err := a.up.GivenBack(ctx, c.ID, c.Seq)
		if err != nil {
			return err
		}
		c.Attempt = max(1, int(c.Copy)-back)
	}
	m, wrong := w.InboxMessage()
	now := c.At
	if !m.Expires.IsZero() || !m.NotBefore.IsZero() {
		var err error
		if now, err = a.up.Now(ctx); err != nil {
			return err
		}
	}
	switch {
	case c.Attempt > a.maxDeliver:
		c.Refused, c.Detail = reasonMaxDeliver, fmt.Sprintf("none of %d attempts was answered", a.maxDeliver)
	case wrong != nil:
		c.Refused, c.Detail = refusal(w.Data), wrong.Error()
	case !m.Expires.IsZero() && now.After(m.Expires):
		c.Refused, c.Detail = string(inbox.ReasonExpired), "it was to be delivered until "+words.Stamp(m.Expires)
	case m.NotBefore.After(now):
		// Here it would take the place of one that can be worked on.
		until := m.NotBefore
		if !m.Expires.IsZero() && m.Expires.Before(until) {
			until = m.Expires // it becomes a dead letter then
		}
		_, err := a.up.GiveBack(ctx, c, min(until.Sub(now), mostAhead))
		if err == nil {
			a.say(fmt.Sprintf("message %s is given back: it is not to be delivered before %s", words.Brief(c.ID), words.Stamp(m.NotBefore)))
		}
		return err
	}
	// Its time has come, and it expires by the server's clock: whoever looks at the entry here has
	// this machine's.
	m.NotBefore = time.Time{}
	if !m.Expires.IsZero() {
		m.Expires = m.Expires.Add(TestOnlyClock().Sub(now))
	}
	if c.Refused != "" || !w.IsText() {
		c.Payload = w.Data
	}
	if err := a.ledger.Put(c); err != nil {
		return err
	}
	if c.Copy > 1 {
		a.tell(ctx, true) // who had it before asks, and must not find it with nobody
	}
	TestOnlyStep("claimed")
	if c.Refused != "" {
		return nil // the next step tells the stream
	}
	return a.append(ctx, w, c, m)
}

// refusal is the reason for which a payload cannot be an entry.
func refusal(data []byte) string {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return string(inbox.ReasonEmpty)
	case len(data) > inbox.MaxLine/2:
		return string(inbox.ReasonTooLong)
	}
	return invalid
}

// append puts the entry of a claim into the inbox. What cannot be appended goes back; a
// message whose id the inbox has with another text is refused, and that entry stays.
func (a *Agent) append(ctx context.Context, w *message.Message, c upstream.Claim, m inbox.Message) error {
	r, err := a.box.Append(ctx, m, cli.DefaultSettle)
	if errors.Is(err, inbox.ErrOtherText) {
		c.Refused, c.Detail, c.Payload = invalid, err.Error(), w.Data
		return a.ledger.Put(c)
	}
	if err != nil {
		// The append may have happened after all: what waits is withdrawn.
		if wrong := a.giveBack(ctx, c, time.Second, "it could not be put into the inbox"); wrong != nil {
			a.doubtful = true // it is found out later where the entry is
			return errors.Join(err, wrong)
		}
		return errors.Join(err, errGivenBack)
	}
	for _, w := range r.Warnings {
		a.say(w)
	}
	TestOnlyStep("appended")
	if !r.Appended {
		if err := a.ledger.Update(c.Entry, func(c *upstream.Claim) { c.Hash = r.EntryID }); err != nil {
			return err
		}
		if r.Found == inbox.FoundAnswered {
			return a.readAll() // its answer is older than what the tails read
		}
	}
	a.say(fmt.Sprintf("message %s came from %s%s", words.Brief(c.ID), c.Subject, nth(c.Attempt)))
	return nil
}

// takeCopy notes that a message that is held came again.
func (a *Agent) takeCopy(ctx context.Context, held, c upstream.Claim) error {
	if held.Seq != c.Seq {
		// The same work under the same name, sent twice: its turn comes once it is settled.
		_, err := a.up.GiveBack(ctx, c, a.ackWait)
		return err
	}
	err := a.ledger.Update(held.Entry, func(h *upstream.Claim) {
		h.Ack, h.Copy, h.Reply = c.Ack, c.Copy, c.Reply
	})
	if err == nil {
		a.say(fmt.Sprintf("message %s came again while its entry is here: it goes on", words.Brief(c.ID)))
		a.doubtful = true // it was with somebody else, perhaps
	}
	return err
}

func nth(attempt int) string {
	if attempt < 2 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", attempt)
}

func also(left string) string {
	if left == "" {
		return ""
	}
	return "; " + left
}
