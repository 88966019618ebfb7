package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

// Reasons of a dead letter: the message has had all its attempts, or cannot be an entry here.
const (
	reasonMaxDeliver = "max deliver"
	invalid          = "invalid"
)

// mostAhead limits for how long a message is given back whose time has not come. A server takes far longer delays, but
// so agents that start later get the message within a day.
const mostAhead = 24 * time.Hour

// A message that waits for an earlier one of its key is given back for nextBehind at most, and for eachBehind more with
// each earlier one that this agent knows to wait: so thousands of a key cost hardly more than a few. Mostly callNext
// has it come sooner. mostBehind limits the delay, since other agents may settle earlier ones, or somebody remove them.
const (
	nextBehind = 8 * time.Second
	eachBehind = 4 * time.Second
	mostBehind = 10 * time.Minute
)

// behind is a message that was given back because an earlier one of its key, its subject's last token, comes first.
type behind struct {
	upstream.Claim
	due time.Time
}

// standsBehind returns for how long to give back a message that waits for an earlier one, and notes that it waits.
func (a *Agent) standsBehind(c upstream.Claim) time.Duration {
	now, delay := time.Now(), min(nextBehind, time.Second<<min(c.Copy-1, 10))
	for seq, b := range a.behind {
		switch {
		case b.due.Before(now): // another agent may have it by now
			delete(a.behind, seq)
		case b.Subject == c.Subject && seq < c.Seq:
			delay += eachBehind
		}
	}
	delay = min(delay, mostBehind)
	a.behind[c.Seq] = behind{c, now.Add(delay)}
	return delay
}

// callNext has the server hand out the message that waited for the settled one, if this agent gave it back and the
// server surely still keeps it: later, another agent may have it.
func (a *Agent) callNext(ctx context.Context, settled upstream.Claim) {
	for seq, b := range a.behind {
		if b.After == settled.Seq && time.Until(b.due) > time.Second {
			delete(a.behind, seq)
			_, _ = a.up.GiveBack(ctx, b.Claim, 0) // after an error it comes when it is due
		}
	}
}

func (a *Agent) takeUp(ctx context.Context, p pulled) {
	if p.msg == nil {
		if a.pullFailed(ctx, p.err); a.due(asking) {
			a.try(taking, nil) // nothing came, so nothing failed
		}
		return
	}
	a.try(asking, nil)
	w, err := message.Parse(p.msg)
	if err != nil {
		a.say(err.Error())
		return
	}
	TestOnlyStep("pulled")
	a.try(taking, a.take(ctx, &w, p.asked))
}

// take makes an entry of a message. On failure the message goes back, so that no attempt is lost.
func (a *Agent) take(ctx context.Context, w *message.Message, asked time.Time) error {
	c := upstream.Claim{Message: *w, Agent: a.o.Agent, Appended: w.Copy, Attempt: 1, At: TestOnlyClock().UTC(), Taken: asked}
	c.Data = nil // only a dead letter may need it, see Payload
	if held, there := a.ledger.Get(w.Entry); there {
		return a.takeCopy(ctx, held, c)
	}
	if a.ending != nil || a.draining {
		return a.putOff(ctx, &c, 0, "")
	}
	err := a.claim(ctx, w, &c)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("message %s: %w", words.Brief(w.ID), err)
	if _, claimed := a.ledger.Get(w.Entry); claimed || !a.conn.Connected() || errors.Is(err, errGivenBack) {
		return err
	}
	return errors.Join(err, a.putOff(ctx, &c, time.Second, ""))
}

// putOff gives back a message that has no entry, and says why unless that is "".
func (a *Agent) putOff(ctx context.Context, c *upstream.Claim, delay time.Duration, why string) error {
	_, err := a.up.GiveBack(ctx, *c, delay)
	if err == nil && why != "" {
		a.say(fmt.Sprintf("message %s is given back: %s", words.Brief(c.ID), why))
	}
	return err
}

// errGivenBack joins the error of a message that was given back.
var errGivenBack = errors.New("it is given back")

// claim takes a message for this agent, notes that, and puts its entry into the inbox, unless the message was settled
// before, has to wait, or is with another agent.
func (a *Agent) claim(ctx context.Context, w *message.Message, c *upstream.Claim) error {
	m, wrong := w.InboxMessage()
	now := c.At
	if !m.Expires.IsZero() || !m.NotBefore.IsZero() {
		var err error
		if now, err = a.up.Now(ctx); err != nil {
			return err
		}
	}
	if m.NotBefore.After(now) && (m.Expires.IsZero() || m.Expires.After(now)) {
		// In this inbox it would take the place of a message that can be worked on.
		until := m.NotBefore
		if !m.Expires.IsZero() && m.Expires.Before(until) {
			until = m.Expires // it becomes a dead letter then
		}
		// A decision may not be kept until then. But a message with a key stays on the stream, to hold up the next one.
		if known, err := a.up.Known(ctx, *c); err != nil {
			return err
		} else if known != nil && w.After == 0 {
			return a.settledBefore(ctx, c, known)
		}
		return a.putOff(ctx, c, min(until.Sub(now), mostAhead), "it is not to be delivered before "+words.Stamp(m.NotBefore))
	}
	if w.After > 0 {
		if gone, err := a.up.Gone(ctx, *c, w.After); err != nil {
			return err
		} else if !gone {
			return a.putOff(ctx, c, a.standsBehind(*c), "")
		}
	}
	if mine, err := a.takeLease(ctx, c); err != nil || !mine {
		return err
	}
	switch {
	case c.Attempt > a.maxDeliver:
		c.Refused, c.Detail = reasonMaxDeliver, fmt.Sprintf("none of %d attempts was answered", a.maxDeliver)
	case wrong != nil:
		c.Refused, c.Detail = refusal(w.Data), wrong.Error()
	case !m.Expires.IsZero() && now.After(m.Expires):
		c.Refused, c.Detail = string(inbox.ReasonExpired), "it was to be delivered until "+words.Stamp(m.Expires)
	}
	// Its time has come. Its expiry is by the server's clock, and the inbox uses this machine's, so convert it.
	m.NotBefore = time.Time{}
	if !m.Expires.IsZero() {
		m.Expires = m.Expires.Add(TestOnlyClock().Sub(now))
	}
	if c.Refused != "" || !w.IsText() {
		c.Payload = w.Data
	}
	if err := a.ledger.Put(*c); err != nil {
		return err
	}
	TestOnlyStep("claimed")
	if c.Refused != "" {
		return nil // the next step publishes the dead letter
	}
	return a.appendEntry(ctx, w, *c, m)
}

func (a *Agent) takeLease(ctx context.Context, c *upstream.Claim) (mine bool, err error) {
	s, err := a.up.Take(ctx, *c)
	switch {
	case err != nil:
		return false, err
	case s.Known != nil:
		return false, a.settledBefore(ctx, c, s.Known)
	case s.Twin: // sent twice under one id: its turn comes once the first is settled
		return false, a.putOff(ctx, c, a.ackWait, "")
	case s.Rest > 0:
		return false, a.putOff(ctx, c, s.Rest, fmt.Sprintf("agent %s, which has it, was heard a moment ago", words.Brief(s.With)))
	case s.Lease == 0:
		a.say(fmt.Sprintf("message %s is with agent %s, which had a newer copy", words.Brief(c.ID), s.With))
		return false, nil
	}
	c.Lease, c.Attempt = s.Lease, s.Attempt
	return true, nil
}

// settledBefore takes a message that is already settled off the stream.
func (a *Agent) settledBefore(ctx context.Context, c *upstream.Claim, known *upstream.Record) error {
	left, err := a.up.Drop(ctx, *c)
	if err == nil {
		a.callNext(ctx, *c)
		a.say(fmt.Sprintf("message %s was settled by %s before (%s): no turn is spent on it%s", words.Brief(c.ID), known.By(), cmp.Or(known.Outcome, "forgotten"), also(left)))
	}
	return err
}

// refusal returns the reason of the dead letter of a payload that cannot be an entry.
func refusal(data []byte) string {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return string(inbox.ReasonEmpty)
	case len(data) > inbox.MaxLine/2:
		return string(inbox.ReasonTooLong)
	}
	return invalid
}

// appendEntry puts the entry of a claim into the inbox. If that fails, it gives the message back. If the inbox has the
// id with another text, it refuses the message, and the existing entry stays.
func (a *Agent) appendEntry(ctx context.Context, w *message.Message, c upstream.Claim, m inbox.Message) error {
	r, err := a.box.Append(ctx, m, cli.DefaultSettle)
	if errors.Is(err, inbox.ErrOtherText) {
		c.Refused, c.Detail, c.Payload = invalid, err.Error(), w.Data
		return a.ledger.Put(c)
	}
	if err != nil {
		// The entry may be there all the same, so take back what waits.
		if wrong := a.giveBack(ctx, c, time.Second, "it could not be put into the inbox"); wrong != nil {
			a.doubtful = true // the next step looks for the entry
			return errors.Join(err, wrong)
		}
		return errors.Join(err, errGivenBack)
	}
	for _, w := range r.Warnings {
		a.say(w)
	}
	TestOnlyStep("appended")
	if a.appended = r.Appended; a.appended {
		a.facts.Backlog.Entries++
	} else if err := a.ledger.Update(c.Entry, func(c *upstream.Claim) { c.Hash = r.EntryID }); err != nil {
		return err
	} else if r.Found == inbox.FoundAnswered {
		return a.readAll() // its answer is older than what the tails read
	}
	nth := ""
	if c.Attempt > 1 {
		nth = fmt.Sprintf(", attempt %d", c.Attempt)
	}
	a.say(fmt.Sprintf("message %s came from %s%s", words.Brief(c.ID), c.Subject, nth))
	return nil
}

// takeCopy notes that a held message came again.
func (a *Agent) takeCopy(ctx context.Context, held, c upstream.Claim) error {
	if held.Seq != c.Seq {
		// Sent twice under one id: its turn comes once the first is settled.
		return a.putOff(ctx, &c, a.ackWait, "")
	}
	err := a.ledger.Update(held.Entry, func(h *upstream.Claim) {
		h.Ack, h.Copy, h.Reply = c.Ack, c.Copy, c.Reply
	})
	if err == nil {
		a.say(fmt.Sprintf("message %s came again while its entry is here: it goes on", words.Brief(c.ID)))
		a.doubtful = true // another agent may have had it
	}
	return err
}

// also returns left, for the end of a sentence.
func also(left string) string {
	if left == "" {
		return ""
	}
	return "; " + left
}

// pulled is the end of a request for a message. msg is nil if none came.
type pulled struct {
	asked time.Time
	msg   jetstream.Msg
	err   error
}

func (a *Agent) pull(ctx context.Context) {
	a.heldUp = a.holdsUp()
	mayTry := a.heldUp == "" && a.due(asking) && a.due(taking)
	if r := a.retries[taking]; a.heldUp == "" && r.tries > 0 {
		a.heldUp = "it cannot take messages: " + r.why
	}
	if r := a.retries[asking]; a.heldUp == "" && a.pulling == nil && r.tries > 2 { // a restart of the server takes fewer
		a.heldUp = r.why
	}
	if a.pulling != nil || a.ending != nil || a.draining || !mayTry || !a.hasRoom() {
		return
	}
	ctx, a.pulling = context.WithTimeout(ctx, pullWait)
	go func(c jetstream.Consumer, done context.CancelFunc) {
		defer done()
		p := pulled{asked: time.Now()}
		p.msg, p.err = c.Next(jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(heartbeat))
		a.pulled <- p
	}(a.consumer, a.pulling)
}

// stopPulling cancels a request. Its result still arrives in pulled.
func (a *Agent) stopPulling() {
	if a.pulling != nil {
		a.pulling()
	}
}

func (a *Agent) hasRoom() bool {
	in := int(a.facts.Backlog.Entries)
	if a.facts.InFlight != nil {
		in++
	}
	return a.ledger.Len() < a.o.Slots && in < a.o.QueueDepth
}

// holdsUp returns a sentence about why no message is taken although there may be room, or "".
func (a *Agent) holdsUp() string {
	f := &a.facts
	switch {
	case !a.conn.Connected():
		return "the server is away"
	case a.doubtful:
		return "what it holds is not yet compared with the stream"
	case a.untold() != "":
		return "it cannot tell what came of its messages: " + a.untold()
	case f.Unreadable != nil:
		return "its inbox cannot be read: " + f.Unreadable.Error()
	case f.Paused != nil, f.Backoff != nil:
		_, sentence := f.Explain()
		return sentence
	case f.Space >= 0 && f.Space < f.Needed:
		return "its disk is full"
	case !a.due(beginning):
		return a.retries[beginning].why
	case a.keep.stalled.Load():
		_, sentence := f.Explain()
		return "nothing moves: " + sentence
	case a.retries[launching].tries >= failing:
		return fmt.Sprintf("its last %d launchers ended without an answer", a.retries[launching].tries)
	}
	return ""
}

// untold returns why an outcome could not be told in two tries, or "".
func (a *Agent) untold() string {
	for _, c := range a.ledger.All() {
		if r := a.retries[publishing+c.Entry]; r.tries > 1 {
			return r.why
		}
	}
	return ""
}

func (a *Agent) pullFailed(ctx context.Context, err error) {
	switch {
	case errors.Is(err, context.Canceled): // by this agent, so it does not tell whether the server would have answered
	case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		a.try(asking, nil)
	case !a.conn.Connected():
		a.retries[asking] = retry{at: time.Now().Add(backOff(1))}
	default:
		// The consumer or the stream may have been removed or made anew.
		if wrong := a.conn.Try(func() error { return a.bind(ctx) }); wrong != nil {
			err = wrong
		}
		a.try(asking, fmt.Errorf("no message can be asked for: %w; it is tried again", err))
	}
}
