package verbs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/settle"
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
		ID: h.Get(names.HeaderID), Letter: seq, At: at, Reason: h.Get(settle.HeaderReason), Detail: h.Get(settle.HeaderDetail),
		Subject: h.Get(settle.HeaderSubject), Seq: uint64(max(0, number(settle.HeaderSeq))), Agent: h.Get(settle.HeaderAgent), EntryID: h.Get(settle.HeaderEntry),
		Attempts: int(number(settle.HeaderAttempts)), Copies: int(number(settle.HeaderCopies)), Again: int(max(0, number(names.HeaderAgain))),
		Bytes: number(settle.HeaderBytes), History: h.Values(settle.HeaderHistory), Headers: h.Values(settle.HeaderHeader), Text: string(data),
		object: h.Get(settle.HeaderObject), data: data, reply: h.Get(names.HeaderReply),
	}
}

// box is the stream of dead letters.
type box struct {
	*page.Dead
	c      *link.Conn
	stream jetstream.Stream
}

func openBox(ctx context.Context, c *link.Conn, o *page.Dead) (*box, error) {
	found, err := deadStream(ctx, c, o.Stream)
	if err != nil {
		return nil, err
	}
	return &box{o, c, found}, nil
}

// ahead is how many letters are read ahead: each may be as large as a message.
const ahead = 16

// all calls do for each letter that is there now, the oldest first.
func (b *box) all(ctx context.Context, do func(*letter) error) error {
	info := b.stream.CachedInfo()
	if info.State.Msgs == 0 {
		return nil
	}
	read, err := b.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", info.Config.Name, said(b.c, err))
	}
	messages, err := read.Messages(jetstream.PullMaxMessages(ahead))
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", info.Config.Name, said(b.c, err))
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
			return fmt.Errorf("read the stream %s: %w", info.Config.Name, said(b.c, err))
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
func (b *box) one(ctx context.Context, id string) (*letter, error) {
	m, err := b.stream.GetLastMsgForSubject(ctx, names.DeadSubject(b.Stream, id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		if found, err := b.at(ctx, id); err != nil || found != nil {
			return found, err
		}
		return nil, fmt.Errorf("no dead letter is about the message %q: %s shows them", id, words.Shell(page.CommandName, "dead", "list", "--stream", b.Stream))
	}
	if err != nil {
		return nil, fmt.Errorf("look up the dead letter of the message %q: %w", id, said(b.c, err))
	}
	return letterOf(m.Time, m.Sequence, m.Header, m.Data), nil
}

// at finds the last letter of a message without an id that was at a place of the stream; nil
// if there is none.
func (b *box) at(ctx context.Context, place string) (found *letter, err error) {
	if !names.IsPlace(b.Stream, place) {
		return nil, nil
	}
	err = b.all(ctx, func(l *letter) error {
		if names.IsAt(b.Stream, place, l.ID) {
			found = l
		}
		return nil
	})
	return found, err
}

// chosen are the letters that the flags name.
func (b *box) chosen(ctx context.Context) (all []*letter, err error) {
	if b.All {
		err = b.all(ctx, func(l *letter) error {
			all = append(all, &letter{ID: strings.Clone(l.ID), Letter: l.Letter, Again: l.Again}) // they may be many
			return nil
		})
		return all, err
	}
	for _, id := range b.IDs {
		l, err := b.one(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// payload is the message's, wherever it is kept.
func (b *box) payload(ctx context.Context, l *letter) ([]byte, error) {
	if l.object == "" {
		return l.data, nil
	}
	// An agent wrote the letter: it is not to fetch the answers of others.
	if own := "dead." + names.Key(l.ID) + "."; !strings.HasPrefix(l.object, own) {
		return nil, fmt.Errorf("the dead letter of the message %q says that its text is in the object %s, which is not its own: purge it", l.ID, words.Brief(l.object))
	}
	text, err := replyOf(ctx, b.c, b.Stream, settle.Answer{ID: l.ID, Object: l.object})
	return []byte(text), err
}

// removeAll takes all letters away up to the last of these.
func (b *box) removeAll(ctx context.Context, all []*letter) error {
	if err := b.stream.Purge(ctx, jetstream.WithPurgeSequence(all[len(all)-1].Letter+1)); err != nil {
		return fmt.Errorf("take the dead letters away: %w", said(b.c, err))
	}
	return nil
}

// remove takes a letter away. It may be gone already.
func (b *box) remove(ctx context.Context, l *letter) error {
	err := b.stream.DeleteMsg(ctx, l.Letter)
	if err == nil {
		return nil
	}
	// A server has no code of its own for a message that is not there.
	if _, gone := b.stream.GetMsg(ctx, l.Letter); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return nil
	}
	return fmt.Errorf("take away the dead letter of the message %q: %w", l.ID, said(b.c, err))
}
