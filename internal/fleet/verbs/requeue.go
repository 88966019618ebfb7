package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/settle"
	"heartbeat/internal/words"
)

// requeue sends the message of a letter again, and takes the letter away. Only once the
// message is in the stream is its decision marked, and the letter removed last: whatever is
// killed, the letter or the message is there. The next requeue publishes the same id, which
// the server drops within its window; later the message may be there twice, and its
// decision is made once.
func (b *box) requeue(ctx context.Context, l *letter) (seq uint64, err error) {
	if b.All { // only its headers were kept
		if l, err = b.again(ctx, l); err != nil {
			return 0, err
		}
	}
	if l.Subject == "" || l.ID == "" {
		return 0, fmt.Errorf("the dead letter %d does not say which message it is of: purge it, or send its text with heartbeat-nats send", l.Letter)
	}
	if err := b.checkSubject(ctx, l); err != nil {
		return 0, err
	}
	m, err := b.message(ctx, l)
	if err != nil {
		return 0, err
	}
	ack, err := b.c.JS.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("requeue the message %q: %w: its letter stays", l.ID, said(b.c, err))
	}
	if err := b.mark(ctx, l, ack.Sequence); err != nil {
		return 0, fmt.Errorf("the message %q was requeued, and its letter stays since that could not be noted: requeue it again: %w", l.ID, err)
	}
	return ack.Sequence, b.remove(ctx, l)
}

// checkSubject refuses to publish anywhere but to the stream. An agent wrote the letter, and
// who requeues it may publish what agents may not, such as requests to the server.
func (b *box) checkSubject(ctx context.Context, l *letter) error {
	found, err := stream(ctx, b.c, b.Stream)
	if err != nil {
		return err
	}
	taken := slices.ContainsFunc(found.CachedInfo().Config.Subjects, func(filter string) bool { return matches(filter, l.Subject) })
	if !taken || strings.ContainsAny(l.Subject, "*> \t\r\n") {
		return fmt.Errorf("requeue the message %q: the stream %s does not take its subject %s: its letter stays", l.ID, b.Stream, words.Brief(l.Subject))
	}
	return nil
}

// errTaken says that somebody took the letter away meanwhile.
var errTaken = errors.New("the letter is gone")

// again reads a letter whole.
func (b *box) again(ctx context.Context, l *letter) (*letter, error) {
	m, err := b.stream.GetMsg(ctx, l.Letter)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, errTaken
	}
	if err != nil {
		return nil, fmt.Errorf("read the dead letter of the message %q: %w", l.ID, said(b.c, err))
	}
	return letterOf(m.Time, m.Sequence, m.Header, m.Data), nil
}

func (b *box) message(ctx context.Context, l *letter) (*nats.Msg, error) {
	m := nats.NewMsg(l.Subject)
	var err error
	if m.Data, err = b.payload(ctx, l); err != nil {
		return nil, err
	}
	message.Restore(m.Header, l.Headers)
	m.Header.Set(names.HeaderID, l.ID)
	m.Header.Set(names.HeaderAgain, strconv.Itoa(l.Again+1))
	m.Header.Set(names.HeaderMsgID, names.Key(l.ID)+"~"+strconv.Itoa(l.Again+1))
	m.Header.Set(jetstream.ExpectedStreamHeader, b.Stream)
	if l.reply != "" {
		m.Header.Set(names.HeaderReply, l.reply)
	}
	if size, most := int64(m.Size()-len(m.Subject)), b.c.NATS.MaxPayload(); size > most {
		return nil, fmt.Errorf("requeue the message %q: %w", l.ID, tooLarge(size, most, "the server "+b.c.Where()))
	}
	return m, nil
}

// mark notes in the decision that the letter was requeued, and where its message is now,
// for those who wait. A decision that was replaced meanwhile is a newer one.
func (b *box) mark(ctx context.Context, l *letter, seq uint64) error {
	kv, err := bucket(ctx, b.c, b.Stream, names.Bucket(b.Stream))
	if err != nil {
		return err
	}
	e, err := kv.Get(ctx, names.Key(l.ID))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return said(b.c, err)
	}
	r, err := parsed(e)
	if err != nil {
		return err
	}
	if r.Outcome != settle.WasDead || r.Again != l.Again {
		return nil
	}
	r.LetterState, r.Seq = settle.Requeued, seq
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = kv.Update(ctx, names.Key(l.ID), value, e.Revision())
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil
	}
	return said(b.c, err)
}
