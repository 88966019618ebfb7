package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/words"
)

// Payloads for the acknowledgement subject of a copy.
const (
	ackAnswered = "+ACK"
	ackProgress = "+WPI"
	ackTerm     = "+TERM"
	ackNak      = "-NAK"
)

// Drop takes a message off the stream whose outcome is already decided.
func (u *Upstream) Drop(ctx context.Context, c Claim) (left string, err error) {
	left, err = u.acknowledge(ctx, c, ackAnswered)
	if err != nil {
		return "", fmt.Errorf("take message %s, which is settled, off the stream %s: %w; it will be told again", c.name(), u.stream, err)
	}
	return left, nil
}

// acknowledge sends payload for a copy, confirmed as by DoubleAck. left says why nothing was sent: the recipient is gone.
func (u *Upstream) acknowledge(ctx context.Context, c Claim, payload string) (left string, err error) {
	at, err := parseAck(c.Ack)
	if err != nil {
		return "", err
	}
	if at.Stream != c.Stream || at.Sequence.Stream != c.Seq {
		return "", fmt.Errorf("its claim says %s:%d, and its acknowledgement goes to %s:%d", c.Stream, c.Seq, words.Brief(at.Stream), at.Sequence.Stream)
	}
	switch same, err := u.sameStream(ctx, at); {
	case err != nil:
		return "", err
	case !same:
		return fmt.Sprintf("the stream %s was deleted and made anew since message %s came: there is nothing left to acknowledge", u.stream, c.name()), nil
	}
	if err = u.request(ctx, c, payload); err == nil {
		return "", nil
	}
	u.seen.Store(nil)
	if gone, wrong := u.consumerGone(ctx, at); wrong == nil && gone {
		return fmt.Sprintf("the consumer %s was deleted or made anew since message %s came: it will come once more, and is known to be settled", words.Brief(at.Consumer), c.name()), nil
	}
	return "", fmt.Errorf("acknowledge it: %w", err)
}

func (u *Upstream) request(ctx context.Context, c Claim, payload string) error {
	ctx, cancel := u.within(ctx)
	defer cancel()
	_, err := u.js.Conn().RequestWithContext(ctx, c.Ack, []byte(payload))
	return err
}

// seen is when the stream was made, as a server on one connection reported.
type seen struct {
	made, asked time.Time
	connection  uint64
}

func (u *Upstream) streamInfo(ctx context.Context, options ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	now := &seen{asked: time.Now(), connection: u.js.Conn().Stats().Reconnects}
	info, err := u.Stream.Info(ctx, options...)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("the stream %s is not there: if somebody deleted it, `%s` makes it anew: %w", u.stream, setup.Command(u.js, u.stream), err)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the stream %s: %w", u.stream, err)
	}
	now.made = info.Created
	u.seen.Store(now)
	return info, nil
}

// sameStream reports whether the copy came from the stream as it is now. In a stream that was made anew, the sequence
// belongs to another message, which an acknowledgement would lose. sameStream does not ask again on the same connection
// within the time that an acknowledgement itself may take to arrive.
func (u *Upstream) sameStream(ctx context.Context, at *nats.MsgMetadata) (bool, error) {
	s := u.seen.Load()
	if s == nil || s.connection != u.js.Conn().Stats().Reconnects || time.Since(s.asked) >= u.patience {
		info, err := u.streamInfo(ctx)
		if err != nil {
			return false, err
		}
		s = &seen{made: info.Created}
	}
	if !at.Timestamp.Before(s.made) {
		return true, nil
	}
	// The server's clock may have been set back: then the message, which no agent may read, is no older than the first.
	info, err := u.streamInfo(ctx)
	if err != nil {
		return false, fmt.Errorf("look whether message %d of the stream %s is still the same: %w", at.Sequence.Stream, u.stream, err)
	}
	seq, state := at.Sequence.Stream, info.State
	return seq >= state.FirstSeq && seq <= state.LastSeq && !at.Timestamp.Before(state.FirstTime), nil
}

// Now returns the server's time, by which messages expire and come due.
func (u *Upstream) Now(ctx context.Context) (time.Time, error) {
	info, err := u.streamInfo(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the server what time it is: %w", err)
	}
	return info.TimeStamp, nil
}

// Gone reports whether a message has left the stream from which the claim's copy came. It returns false if the stream
// was made anew. A sequence beyond the stream's last is an earlier stream's. Gone reads the list of all holes, which may
// take megabytes, only if nothing else tells.
func (u *Upstream) Gone(ctx context.Context, c Claim, seq uint64) (bool, error) {
	at, err := parseAck(c.Ack)
	if err != nil {
		return false, err
	}
	info, err := u.streamInfo(ctx, jetstream.WithSubjectFilter(c.Subject))
	alone := err == nil && seq == c.After && info.State.Subjects[c.Subject] < 2
	if err == nil && !alone && info.State.NumDeleted > 0 {
		info, err = u.streamInfo(ctx, jetstream.WithDeletedDetails(true))
	}
	if err != nil {
		return false, fmt.Errorf("look whether message %d is still on the stream %s: %w", seq, u.stream, err)
	}
	if same, err := u.sameStream(ctx, at); err != nil || !same {
		return false, err
	}
	return alone || info.State.FirstSeq > seq || info.State.LastSeq < seq || slices.Contains(info.State.Deleted, seq), nil
}

// consumerGone reports whether the copy's consumer can no longer take acknowledgements of it: the consumer was
// deleted, or was made anew and has not handed the message out.
func (u *Upstream) consumerGone(ctx context.Context, at *nats.MsgMetadata) (bool, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	con, err := u.js.Consumer(ctx, u.stream, at.Consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return con.CachedInfo().Delivered.Stream < at.Sequence.Stream, nil
}

// parseAck reads the metadata of a copy from its acknowledgement subject, as the library does for an incoming message.
func parseAck(subject string) (*nats.MsgMetadata, error) {
	m := nats.Msg{Reply: subject, Sub: &nats.Subscription{}}
	at, err := m.Metadata()
	if err != nil || at.Sequence.Stream == 0 || at.Timestamp.UnixNano() == 0 || !message.CanPublish(subject) {
		return nil, fmt.Errorf("its claim has %q for the subject of its acknowledgement, which is not one of JetStream's", words.Brief(subject))
	}
	return at, nil
}

// Keep asks the server to wait another AckWait before it hands the message out again. The server confirms even if
// the message is settled or another copy is out. The error matches [nats.ErrNoResponders] if the consumer is gone.
func (u *Upstream) Keep(ctx context.Context, c Claim) error {
	if _, err := parseAck(c.Ack); err != nil {
		return fmt.Errorf("keep message %s: %w", c.name(), err)
	}
	err := u.request(ctx, c, ackProgress)
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("keep message %s: its consumer does not answer, and may be gone: %w; its entry goes on here", c.name(), err)
	}
	if err != nil {
		return fmt.Errorf("keep message %s: %w; it will be tried again, and its entry goes on here", c.name(), err)
	}
	return nil
}
