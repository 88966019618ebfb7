package upstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// Headers of a dead letter, whose body is the payload, besides a reply's, [message.HeaderReply], [message.HeaderAgain].
const (
	HeaderSubject  = "Heartbeat-Subject"  // the message's own
	HeaderSeq      = "Heartbeat-Seq"      // its sequence in the stream
	HeaderReason   = "Heartbeat-Reason"   // an [inbox.Reason], or "max deliver"
	HeaderDetail   = "Heartbeat-Detail"   // what failed
	HeaderAttempts = "Heartbeat-Attempts" // deliveries to a session
	HeaderCopies   = "Heartbeat-Copies"   // how often the consumer handed the message out
	HeaderHistory  = "Heartbeat-History"  // repeated for each line of [Letter.History]
	HeaderHeader   = "Heartbeat-Header"   // repeated for each of [Letter.Headers]
)

const (
	maxHistory = 50
	maxLine    = 1 << 10
	maxDetail  = 4 << 10
	// maxHeader limits all headers, in bytes. A server accepts 64 KiB.
	maxHeader = 40 << 10
)

// Dead makes a dead letter of the claim's message.
func (u *Upstream) Dead(ctx context.Context, c Claim, l Letter) (fate Fate, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make a dead letter of message %s (%s): %w; it stays set aside here, and it will be told again", c.name(), words.Brief(l.Reason), u.refused(err))
		}
	}()
	r := u.record(c, l.Settled, WasDead)
	r.LetterState = Sending
	if r.Letters, err = u.letters(ctx, c); err != nil {
		return fate, err
	}
	l.Settled = r.Settled
	l.Detail = cut(l.Detail, maxDetail)
	payload := strings.TrimSpace(ackTerm + " " + cut(words.Line(l.Reason), maxLine))
	return u.conclude(ctx, c, r, l.Answer, payload, func(d *decided) error {
		if d.LetterState != Sending { // kept, or requeued since
			return nil
		}
		if err := u.publishLetter(ctx, c, l, d); err != nil {
			return err
		}
		d.LetterState = Kept
		return u.rewrite(ctx, c, d, "letter state")
	})
}

// letters counts the letters with a message's id. A letter whose decision is forgotten is about another message.
func (u *Upstream) letters(ctx context.Context, c Claim) (*uint64, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	subject := message.DeadSubject(c.Stream, c.ID)
	info, err := u.Layout.Dead.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return nil, fmt.Errorf("look into the stream %s: %w", message.Dead(u.stream), u.unanswered(err))
	}
	return new(info.State.Subjects[subject]), nil
}

// publishLetter puts the letter of a decision into its stream, unless an earlier life did. The server drops a repeated
// letter within its window, in which the first may not be counted yet. Decisions of an earlier release have no count.
func (u *Upstream) publishLetter(ctx context.Context, c Claim, l Letter, d *decided) error {
	if there, err := u.letters(ctx, c); err != nil || d.Letters != nil && *there > *d.Letters {
		return err
	}
	m := letterOf(c, l, int(min(2*maxHeader, u.js.Conn().MaxPayload())/2))
	if int64(m.Size()) > u.js.Conn().MaxPayload() {
		name, err := u.keepObject(ctx, "dead."+c.key(), l.Payload)
		if err != nil {
			return err
		}
		m.Data = nil
		m.Header.Set(HeaderObject, name)
	}
	m.Header.Set(message.HeaderMsgID, c.key()+"@"+strconv.FormatUint(d.revision, 10))
	m.Header.Set(jetstream.ExpectedStreamHeader, message.Dead(u.stream))
	if _, err := u.publish(ctx, m); err != nil {
		return fmt.Errorf("put it into the stream %s: %w", message.Dead(u.stream), err)
	}
	u.reached("letter")
	return nil
}

// letterOf makes the message of a letter. Its headers take about room bytes.
func letterOf(c Claim, l Letter, room int) *nats.Msg {
	m := nats.NewMsg(message.DeadSubject(c.Stream, c.ID))
	m.Data = l.Payload
	for name, value := range map[string]string{
		message.HeaderID: c.ID, message.HeaderReply: c.Reply, HeaderAgent: c.Agent, HeaderEntry: c.entry(),
		HeaderSubject: c.Subject, HeaderReason: l.Reason, HeaderDetail: cut(words.Line(l.Detail), min(maxDetail, room/4)),
		HeaderSeq: strconv.FormatUint(c.Seq, 10), HeaderCopies: strconv.FormatUint(c.Copy, 10),
		HeaderAttempts: strconv.Itoa(l.Attempts), HeaderBytes: strconv.Itoa(len(l.Payload)),
	} {
		if value != "" {
			m.Header.Set(name, value)
		}
	}
	if c.Again > 0 {
		m.Header.Set(message.HeaderAgain, strconv.Itoa(c.Again))
	}
	room -= m.Size() - len(m.Data)
	add := func(name, line string) {
		if room -= len(name) + len(": \r\n") + len(line); room >= 0 {
			m.Header.Add(name, line)
		}
	}
	for _, line := range l.History[:min(len(l.History), maxHistory)] {
		add(HeaderHistory, cut(words.Line(line), maxLine))
	}
	for _, line := range l.Headers {
		add(HeaderHeader, string(line))
	}
	return m
}
