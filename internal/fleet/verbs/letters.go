package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

// letter is a dead letter, as --json prints it.
type letter struct {
	ID       string    `json:"id"`
	Letter   uint64    `json:"letter"` // its sequence in the stream of dead letters
	At       time.Time `json:"at"`     // by the server's clock
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
	// Headers are lines NAME:VALUE that the message had from its sender.
	Headers []string `json:"headers,omitempty"`
	// Text is the message's; list has it only where it is short.
	Text string `json:"text,omitempty"`

	object string
	data   []byte
	reply  string
}

// letterOf reads a dead letter. Its headers come from an agent, so that a number that is
// none is taken for 0.
func letterOf(at time.Time, seq uint64, h nats.Header, data []byte) *letter {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(h.Get(name), 10, 64) // 0 will do
		return n
	}
	return &letter{
		ID: h.Get(message.HeaderID), Letter: seq, At: at, Reason: h.Get(upstream.HeaderReason), Detail: h.Get(upstream.HeaderDetail),
		Subject: h.Get(upstream.HeaderSubject), Seq: uint64(max(0, number(upstream.HeaderSeq))), Agent: h.Get(upstream.HeaderAgent), EntryID: h.Get(upstream.HeaderEntry),
		Attempts: int(number(upstream.HeaderAttempts)), Copies: int(number(upstream.HeaderCopies)), Again: int(max(0, number(message.HeaderAgain))),
		Bytes: number(upstream.HeaderBytes), History: h.Values(upstream.HeaderHistory), Headers: h.Values(upstream.HeaderHeader), Text: string(data),
		object: h.Get(upstream.HeaderObject), data: data, reply: h.Get(message.HeaderReply),
	}
}

// ahead is how many letters are read ahead: each may be as large as a message.
const ahead = 16

// each calls do for each letter that is there now, the oldest first.
func (o *dead) each(ctx context.Context, do func(*letter) error) error {
	info := o.box.CachedInfo()
	if info.State.Msgs == 0 {
		return nil
	}
	read, err := o.box.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", info.Config.Name, o.said(err))
	}
	messages, err := read.Messages(jetstream.PullMaxMessages(ahead))
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", info.Config.Name, o.said(err))
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextMaxWait(glanceEvery))
		if errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
			if left, err := read.Info(ctx); err == nil && left.NumPending == 0 {
				return nil // somebody took the rest away meanwhile
			}
			continue
		}
		if err = errors.Join(ctx.Err(), err); err != nil {
			return fmt.Errorf("read the stream %s: %w", info.Config.Name, o.said(err))
		}
		at, err := m.Metadata()
		if err != nil {
			return err
		}
		if at.Sequence.Stream > info.State.LastSeq {
			return nil
		}
		if err := do(letterOf(at.Timestamp, at.Sequence.Stream, m.Headers(), m.Data())); err != nil {
			return err
		}
		if at.NumPending == 0 {
			return nil
		}
	}
}

// one finds the letter of a message: the last, if it was set aside more than once.
func (o *dead) one(ctx context.Context, id string) (*letter, error) {
	m, err := o.box.GetLastMsgForSubject(ctx, message.DeadSubject(o.stream, id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		if found, err := o.at(ctx, id); err != nil || found != nil {
			return found, err
		}
		return nil, fmt.Errorf("no dead letter is about the message %q: %s shows them", id, words.Shell(commandName, "dead", "list", "--stream", o.stream))
	}
	if err != nil {
		return nil, fmt.Errorf("look up the dead letter of the message %q: %w", id, o.said(err))
	}
	return letterOf(m.Time, m.Sequence, m.Header, m.Data), nil
}

// at finds the last letter of a message without an id that was at a place of the stream; nil
// if there is none.
func (o *dead) at(ctx context.Context, place string) (found *letter, err error) {
	if !message.IsPlace(o.stream, place) {
		return nil, nil
	}
	err = o.each(ctx, func(l *letter) error {
		if message.IsAt(o.stream, place, l.ID) {
			found = l
		}
		return nil
	})
	return found, err
}

// chosen are the letters that the flags name, in their order.
func (o *dead) chosen(ctx context.Context) (all []*letter, err error) {
	if o.all {
		err = o.each(ctx, func(l *letter) error {
			all = append(all, &letter{ID: strings.Clone(l.ID), Letter: l.Letter, Again: l.Again}) // they may be many
			return nil
		})
		return all, err
	}
	for _, id := range o.ids {
		l, err := o.one(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(x, y *letter) int { return cmp.Compare(x.Letter, y.Letter) })
	return slices.CompactFunc(all, func(x, y *letter) bool { return x.Letter == y.Letter }), nil
}

// payload is the message's, wherever it is kept.
func (o *dead) payload(ctx context.Context, l *letter) ([]byte, error) {
	if l.object == "" {
		return l.data, nil
	}
	// An agent wrote the letter: it is not to fetch the answers of others.
	if own := "dead." + message.Key(l.ID) + "."; !strings.HasPrefix(l.object, own) {
		return nil, fmt.Errorf("the dead letter of the message %q says that its text is in the object %s, which is not its own: purge it", l.ID, words.Brief(l.object))
	}
	text, err := o.replyOf(ctx, upstream.Answer{Settled: upstream.Settled{ID: l.ID}, Object: l.object})
	return []byte(text), err
}

// remove takes a letter away. It may be gone already.
func (o *dead) remove(ctx context.Context, l *letter) error {
	err := o.box.DeleteMsg(ctx, l.Letter)
	if err == nil {
		return nil
	}
	// A server has no code of its own for a message that is not there.
	if _, gone := o.box.GetMsg(ctx, l.Letter); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return nil
	}
	return fmt.Errorf("take away the dead letter of the message %q: %w", l.ID, o.said(err))
}

// requeue sends the message of a letter again, and takes the letter away. Only once the
// message is in the stream is its decision marked, and the letter removed last: whatever is
// killed, the letter or the message is there. The next requeue publishes the same id, which
// the server drops within its window; later the message may be there twice, and its
// decision is made once.
func (o *dead) requeue(ctx context.Context, l *letter) (seq uint64, err error) {
	if o.all { // only its headers were kept
		m, err := o.box.GetMsg(ctx, l.Letter)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, errTaken
		}
		if err != nil {
			return 0, fmt.Errorf("read the dead letter of the message %q: %w", l.ID, o.said(err))
		}
		l = letterOf(m.Time, m.Sequence, m.Header, m.Data)
	}
	if l.Subject == "" || l.ID == "" {
		return 0, fmt.Errorf("the dead letter %d does not say which message it is of: purge it, or send its text with heartbeat-nats send", l.Letter)
	}
	if err := o.checkSubject(ctx, l); err != nil {
		return 0, err
	}
	m, err := o.message(ctx, l)
	if err != nil {
		return 0, err
	}
	ack, err := o.c.JS.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("requeue the message %q: %w: its letter stays", l.ID, o.said(err))
	}
	if err := o.mark(ctx, l, ack.Sequence); err != nil {
		return 0, fmt.Errorf("the message %q was requeued, and its letter stays since that could not be noted: requeue it again: %w", l.ID, err)
	}
	return ack.Sequence, o.remove(ctx, l)
}

// checkSubject refuses to publish anywhere but to the stream. An agent wrote the letter, and
// who requeues it may publish what agents may not, such as requests to the server.
func (o *dead) checkSubject(ctx context.Context, l *letter) error {
	found, err := o.find(ctx, o.stream)
	if err != nil {
		return err
	}
	taken := takes(found.CachedInfo().Config.Subjects, l.Subject)
	if !taken || strings.ContainsAny(l.Subject, "*> \t\r\n") {
		return fmt.Errorf("requeue the message %q: the stream %s does not take its subject %s: its letter stays", l.ID, o.stream, words.Brief(l.Subject))
	}
	return nil
}

// errTaken says that somebody took the letter away meanwhile.
var errTaken = errors.New("the letter is gone")

func (o *dead) message(ctx context.Context, l *letter) (*nats.Msg, error) {
	m := nats.NewMsg(l.Subject)
	var err error
	if m.Data, err = o.payload(ctx, l); err != nil {
		return nil, err
	}
	message.Restore(m.Header, l.Headers)
	m.Header.Set(message.HeaderID, l.ID)
	m.Header.Set(message.HeaderAgain, strconv.Itoa(l.Again+1))
	m.Header.Set(message.HeaderMsgID, message.Key(l.ID)+"~"+strconv.Itoa(l.Again+1))
	m.Header.Set(jetstream.ExpectedStreamHeader, o.stream)
	if l.reply != "" {
		m.Header.Set(message.HeaderReply, l.reply)
	}
	if size, most := int64(m.Size()-len(m.Subject)), o.c.NATS.MaxPayload(); size > most {
		return nil, fmt.Errorf("requeue the message %q: %w", l.ID, tooLarge(size, most, "the server "+o.c.Where()))
	}
	return m, nil
}

// mark notes in the decision that the letter was requeued, and where its message is now,
// for those who wait. A decision that was replaced meanwhile is a newer one.
func (o *dead) mark(ctx context.Context, l *letter, seq uint64) error {
	kv, err := o.bucket(ctx, message.Bucket(o.stream))
	if err != nil {
		return err
	}
	e, err := kv.Get(ctx, message.Key(l.ID))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return o.said(err)
	}
	r, err := parsed(e)
	if err != nil {
		return err
	}
	if r.Outcome != upstream.WasDead || r.Again != l.Again {
		return nil
	}
	r.LetterState, r.Seq = upstream.Requeued, seq
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = kv.Update(ctx, message.Key(l.ID), value, e.Revision())
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil
	}
	return o.said(err)
}
