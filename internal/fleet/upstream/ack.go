package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// What is said to a copy's subject for acknowledgements.
const (
	ackAnswered = "+ACK"
	ackProgress = "+WPI"
	ackTerm     = "+TERM"
	ackNak      = "-NAK"
)

func term(reason string) string {
	return strings.TrimSpace(ackTerm + " " + cut(words.Line(reason), maxLine))
}

// Drop takes a message off the stream whose outcome is decided already.
func (u *Upstream) Drop(ctx context.Context, c Claim) (left string, err error) {
	left, err = u.acknowledge(ctx, c, ackAnswered)
	if err != nil {
		return "", fmt.Errorf("take message %s, which is settled, off the stream %s: %w; it will be told again", c.name(), u.stream, err)
	}
	return left, nil
}

// acknowledge says something about a copy as DoubleAck does, so that it is known to have
// arrived. left says why it need not, if what would take it is gone.
func (u *Upstream) acknowledge(ctx context.Context, c Claim, say string) (left string, err error) {
	at, err := parseAck(c.Ack)
	if err != nil {
		return "", err
	}
	if at.Stream != c.Stream || at.Sequence.Stream != c.Seq {
		return "", fmt.Errorf("its claim says %s:%d, and its acknowledgement goes to %s:%d", c.Stream, c.Seq, words.Brief(at.Stream), at.Sequence.Stream)
	}
	switch _, same, err := u.sameStream(ctx, c, at); {
	case err != nil:
		return "", err
	case !same:
		return fmt.Sprintf("the stream %s was deleted and made anew since message %s came: there is nothing left to acknowledge", u.stream, c.name()), nil
	}
	err = u.tell(ctx, c, say)
	if err == nil {
		return "", nil
	}
	if gone, wrong := u.consumerGone(ctx, at); wrong == nil && gone {
		return fmt.Sprintf("the consumer %s was deleted or made anew since message %s came: it will come once more, and is known to be settled", words.Brief(at.Consumer), c.name()), nil
	}
	return "", fmt.Errorf("acknowledge it: %w", err)
}

// tell asks the consumer to confirm what is said.
func (u *Upstream) tell(ctx context.Context, c Claim, say string) error {
	ctx, cancel := u.within(ctx)
	defer cancel()
	_, err := u.js.Conn().RequestWithContext(ctx, c.Ack, []byte(say))
	return err
}

// sameStream says whether the stream is the one that the copy came from. In one that was
// made anew the same sequence is another message, which an acknowledgement would lose.
func (u *Upstream) sameStream(ctx context.Context, c Claim, at *nats.MsgMetadata) (s jetstream.Stream, same bool, err error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	s, err = u.js.Stream(ctx, u.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, false, fmt.Errorf("the stream %s is not there: if somebody deleted it, `heartbeat-nats setup --stream %s` makes it anew: %w", u.stream, u.stream, err)
	}
	if err != nil {
		return nil, false, fmt.Errorf("look up the stream %s: %w", u.stream, err)
	}
	if !at.Timestamp.Before(s.CachedInfo().Created) {
		return s, true, nil
	}
	// A server's clock may have been set back.
	m, err := s.GetMsg(ctx, c.Seq)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, false, fmt.Errorf("look whether message %d of the stream %s is still the same: %w", c.Seq, u.stream, err)
	}
	return s, err == nil && m.Time.Equal(at.Timestamp), nil
}

// Now is the server's time, by which messages expire and come due.
func (u *Upstream) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	s, err := u.js.Stream(ctx, u.stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the server what time it is: %w", u.unanswered(err))
	}
	return s.CachedInfo().TimeStamp, nil
}

// Gone reports whether the claim's message is no longer on its stream, and so long ago came to it
// that the decision about it may no longer be kept: by the server's times, unless this life of the
// agent took it more lately than that.
func (u *Upstream) Gone(ctx context.Context, c Claim) (bool, error) {
	if u.keeps == 0 || !c.Taken.IsZero() && max(time.Since(c.Taken), time.Since(c.Taken.Round(0))) < u.keeps {
		return false, nil // also if the machine has slept
	}
	at, err := parseAck(c.Ack)
	if err != nil {
		return false, err
	}
	s, same, err := u.sameStream(ctx, c, at)
	if err != nil || !same || s.CachedInfo().TimeStamp.Sub(at.Timestamp) < u.keeps {
		return false, err
	}
	ctx, cancel := u.within(ctx)
	defer cancel()
	info, err := s.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return false, fmt.Errorf("look whether message %d is still on the stream %s: %w", c.Seq, u.stream, err)
	}
	return info.State.FirstSeq > c.Seq || slices.Contains(info.State.Deleted, c.Seq), nil
}

// consumerGone says whether the copy's consumer cannot take acknowledgements of it any
// more: it is not there, or was made anew and has not handed the message out.
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

// parseAck reads what a subject for acknowledgements says of its copy, as the library does
// with that of a message that comes.
func parseAck(subject string) (*nats.MsgMetadata, error) {
	m := nats.Msg{Reply: subject, Sub: &nats.Subscription{}}
	at, err := m.Metadata()
	if err != nil || at.Sequence.Stream == 0 || at.Timestamp.UnixNano() == 0 || !message.CanPublish(subject) {
		return nil, fmt.Errorf("its claim has %q for the subject of its acknowledgement, which is none of JetStream's", words.Brief(subject))
	}
	return at, nil
}

// Keep asks the server to wait for another AckWait before it hands the message out again.
// The server confirms that even if the message is settled or another copy is about. It
// matches [nats.ErrNoResponders] if the consumer is gone.
func (u *Upstream) Keep(ctx context.Context, c Claim) error {
	if _, err := parseAck(c.Ack); err != nil {
		return fmt.Errorf("keep message %s: %w", c.name(), err)
	}
	err := u.tell(ctx, c, ackProgress)
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("keep message %s: its consumer does not answer, and may be gone: %w; its entry goes on here", c.name(), err)
	}
	if err != nil {
		return fmt.Errorf("keep message %s: %w; it will be tried again, and its entry goes on here", c.name(), err)
	}
	return nil
}
