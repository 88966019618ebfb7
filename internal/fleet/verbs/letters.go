package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

// letter is a dead letter, as --json prints it.
type letter struct {
	ID       string    `json:"id"`
	Letter   uint64    `json:"letter"` // its number
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail,omitempty"`
	Subject  string    `json:"subject"`
	Seq      uint64    `json:"seq"`
	Agent    string    `json:"agent"`
	EntryID  string    `json:"entry_id,omitempty"`
	Attempts int       `json:"attempts"`
	Copies   int       `json:"copies"`
	Again    int       `json:"again,omitempty"`
	Bytes    int64     `json:"bytes"`
	History  []string  `json:"history,omitempty"`
	Headers  []string  `json:"headers,omitempty"` // the sender's own, as NAME:VALUE
	Text     string    `json:"text,omitempty"`    // "list" has it only if it is short

	object string
	reply  string
}

// letterOf reads a dead letter. An agent wrote its headers, so a wrong number counts as 0.
func letterOf(m *jetstream.RawStreamMsg) *letter {
	h := m.Header
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(h.Get(name), 10, 64)
		return n
	}
	return &letter{
		ID: h.Get(message.HeaderID), Letter: m.Sequence, At: m.Time, Reason: h.Get(upstream.HeaderReason), Detail: h.Get(upstream.HeaderDetail),
		Subject: h.Get(upstream.HeaderSubject), Seq: uint64(max(0, number(upstream.HeaderSeq))), Agent: h.Get(upstream.HeaderAgent), EntryID: h.Get(upstream.HeaderEntry),
		Attempts: int(number(upstream.HeaderAttempts)), Copies: int(number(upstream.HeaderCopies)), Again: int(max(0, number(message.HeaderAgain))),
		Bytes: number(upstream.HeaderBytes), History: h.Values(upstream.HeaderHistory), Headers: h.Values(upstream.HeaderHeader), Text: string(m.Data),
		object: h.Get(upstream.HeaderObject), reply: h.Get(message.HeaderReply),
	}
}

// messages returns the messages that a stream had when it was opened, the oldest first.
func (o *common) messages(ctx context.Context, in jetstream.Stream) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		info := in.CachedInfo()
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
			m, err := in.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("read the stream %s: %w", info.Config.Name, o.explain(err)))
				return
			}
			if seq = m.Sequence; seq > info.State.LastSeq || !yield(m, nil) {
				return
			}
		}
	}
}

// sent returns the message with an id or a place that a stream had when it was opened, and its id.
func (o *common) sent(ctx context.Context, in jetstream.Stream, id string) (*jetstream.RawStreamMsg, string, error) {
	for m, err := range o.messages(ctx, in) {
		if err != nil {
			return nil, "", err
		}
		if is, _ := message.IDOf(o.stream, m.Sequence, m.Time, m.Header); is == id || message.Place(o.stream, m.Sequence) == id {
			return m, is, nil
		}
	}
	return nil, "", jetstream.ErrMsgNotFound
}

// find finds the letter of a message. If the message was set aside more than once, the last letter counts.
func (o *dead) find(ctx context.Context, id string) (*letter, error) {
	m, err := o.box.GetLastMsgForSubject(ctx, message.DeadSubject(o.stream, id))
	if err == nil {
		return letterOf(m), nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("look up the dead letter of the message %q: %w", id, o.explain(err))
	}
	var last *letter
	if message.IsPlace(o.stream, id) { // of a message without an id in its headers
		for m, err := range o.messages(ctx, o.box) {
			if err != nil {
				return nil, err
			}
			if l := letterOf(m); message.IsAt(o.stream, id, l.ID) {
				last = l
			}
		}
	}
	if last == nil {
		return nil, fmt.Errorf("no dead letter is about the message %q: %s shows them", id, link.Typed(o.c.NATS, "dead list", "--stream", o.stream))
	}
	return last, nil
}

// chosen returns the letters that the arguments name, or all letters, and notes if there are none.
func (o *dead) chosen(ctx context.Context) (all []*letter, err error) {
	if o.all {
		for m, err := range o.messages(ctx, o.box) {
			if err != nil {
				return nil, err
			}
			l := letterOf(m)
			all = append(all, &letter{ID: strings.Clone(l.ID), Letter: l.Letter, Again: l.Again}) // there may be many
		}
		if len(all) == 0 {
			o.noLetters()
		}
		return all, nil
	}
	for _, id := range o.ids {
		l, err := o.find(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(x, y *letter) int { return cmp.Compare(x.Letter, y.Letter) })
	return slices.CompactFunc(all, func(x, y *letter) bool { return x.Letter == y.Letter }), nil
}

func (o *dead) payload(ctx context.Context, l *letter) (string, error) {
	if l.object == "" {
		return l.Text, nil
	}
	// An agent wrote the letter, which must not fetch the answers of others.
	if own := "dead." + message.Key(l.ID) + "."; !strings.HasPrefix(l.object, own) {
		return "", fmt.Errorf("the dead letter of the message %q says that its text is in the object %s, which is not its own: purge it", l.ID, words.Brief(l.object))
	}
	return o.replyOf(ctx, upstream.Answer{Settled: upstream.Settled{ID: l.ID}, Object: l.object})
}

func (o *dead) remove(ctx context.Context, l *letter) error {
	if err := o.box.DeleteMsg(ctx, l.Letter); err != nil {
		// A server has no code of its own for a message that is not there.
		if _, gone := o.box.GetMsg(ctx, l.Letter); !errors.Is(gone, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("take away the dead letter of the message %q: %w", l.ID, o.explain(err))
		}
	}
	return nil
}

// requeue sends the message of a letter again, marks its decision, and then removes the letter. So after any kill the
// letter or the message is there. Another requeue publishes the same id, which the server drops within its window.
// After that window the message may be there twice, and is still decided once.
func (o *dead) requeue(ctx context.Context, l *letter) (seq uint64, err error) {
	stored, err := o.box.GetMsg(ctx, l.Letter)
	if err != nil {
		return 0, fmt.Errorf("read the dead letter of the message %q: %w", l.ID, o.explain(err))
	}
	l = letterOf(stored)
	if l.Subject == "" || l.ID == "" {
		return 0, fmt.Errorf("the dead letter %d does not say which message it is of: purge it, or send its text with heartbeat-nats send", l.Letter)
	}
	// An agent wrote the letter, and may not publish all that its reader may, such as requests to the server.
	if !setup.Takes(o.in.CachedInfo().Config.Subjects, l.Subject) || strings.ContainsAny(l.Subject, "*> \t\r\n") {
		return 0, fmt.Errorf("requeue the message %q: the stream %s does not take its subject %s: its letter stays", l.ID, o.stream, words.Brief(l.Subject))
	}
	m, err := o.message(ctx, l)
	if err != nil {
		return 0, err
	}
	if err := o.checkAgain(ctx, l, m); err != nil {
		return 0, err
	}
	ack, err := o.publish(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("requeue the message %q: %w: its letter stays", l.ID, o.explain(err))
	}
	if err := o.mark(ctx, l, ack.Sequence); err != nil {
		return 0, fmt.Errorf("the message %q was requeued, and its letter stays since that could not be noted: requeue it again: %w", l.ID, err)
	}
	return ack.Sequence, o.remove(ctx, l)
}

// message returns the message of a letter, as requeue sends it.
func (o *dead) message(ctx context.Context, l *letter) (*nats.Msg, error) {
	text, err := o.payload(ctx, l)
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(l.Subject)
	m.Data = []byte(text)
	message.Restore(m.Header, l.Headers)
	m.Header.Set(message.HeaderID, l.ID)
	m.Header.Set(message.HeaderAgain, strconv.Itoa(l.Again+1))
	m.Header.Set(message.HeaderMsgID, fmt.Sprintf("%s~%d~%d", message.Key(l.ID), l.Again+1, l.Seq)) // one id may have several letters
	m.Header.Set(jetstream.ExpectedStreamHeader, o.stream)
	if l.reply != "" {
		m.Header.Set(message.HeaderReply, l.reply)
	}
	if size, most := int64(m.Size()-len(m.Subject)), o.c.NATS.MaxPayload(); size > most {
		return nil, fmt.Errorf("requeue the message %q: %w", l.ID, tooLarge(size, most, "the server "+o.c.Where()))
	}
	return m, nil
}

// checkAgain refuses a message that agents would mistake for another one of its id, or another one for it.
func (o *dead) checkAgain(ctx context.Context, l *letter, m *nats.Msg) error {
	known, _, err := o.decision(ctx, l.ID)
	var sent *jetstream.RawStreamMsg
	switch isSame := known != nil && known.Again == l.Again; {
	case err != nil, known != nil && known.Again < l.Again, isSame && known.LetterState != upstream.Requeued:
		return err
	case known == nil: // it is forgotten, and the id may have been sent anew
		sent, _, err = o.sent(ctx, o.in, l.ID)
	case isSame:
		sent, err = o.in.GetMsg(ctx, known.Seq)
		err = o.explain(err)
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) || sent != nil && sent.Header.Get(message.HeaderMsgID) == m.Header.Get(message.HeaderMsgID) {
		return nil // no message has the id, or this letter's own
	}
	if err != nil {
		return fmt.Errorf("look for another message of the id %q: %w", l.ID, err)
	}
	return fmt.Errorf("requeue the message %q: another one of that id was sent or requeued before, and agents would take one for the other: its letter stays; send its text under another id", l.ID)
}

// mark notes in the decision, unless that is newer, that the letter was requeued, and its new sequence for who waits.
func (o *dead) mark(ctx context.Context, l *letter, seq uint64) error {
	r, revision, err := o.decision(ctx, l.ID)
	if r == nil { // it is forgotten, and without one another letter of that id would be sent beside this one
		r = &upstream.Record{Stream: o.stream, Subject: l.Subject, Settled: upstream.Settled{ID: l.ID, Agent: l.Agent, EntryID: l.EntryID, Again: l.Again, Outcome: upstream.WasDead, Reason: l.Reason, Attempts: l.Attempts, At: l.At}}
	}
	if err != nil || r.Outcome != upstream.WasDead || r.Again != l.Again {
		return err
	}
	r.LetterState, r.Seq = upstream.Requeued, seq
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err = o.kv.Update(ctx, message.Key(l.ID), value, revision); upstream.IsOlder(err) {
		return nil
	}
	return o.explain(err)
}
