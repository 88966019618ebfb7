package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"heartbeat/internal/fleet/message"
)

// Headers of a reply, besides [message.HeaderID].
const (
	HeaderAgent = "Heartbeat-Agent"
	HeaderEntry = "Heartbeat-Entry"
	// HeaderObject names the text in [message.Replies] if it is too long for a message. The body is empty then.
	HeaderObject = "Heartbeat-Object"
	HeaderBytes  = "Heartbeat-Bytes" // the text's length
)

// reply sends the answer to whoever asked, at most once over all lives of the agent, and notes what became of it.
func (u *Upstream) reply(ctx context.Context, c Claim, a Answer, text string, d *decided) error {
	if d.ReplyState != Sending {
		return nil
	}
	state, known := u.replies.Load(c.key())
	switch {
	case known:
		d.ReplyState = state.(State)
	case d.Life != u.life:
		d.ReplyState = InDoubt
	default:
		state, err := u.send(ctx, c, a, text)
		if err != nil {
			return err
		}
		d.ReplyState = state
		if err := u.done(stepReply); err != nil {
			return err
		}
	}
	if err := u.write(ctx, c, d); err != nil {
		return err
	}
	return u.done(stepReplyState)
}

// send publishes the reply. From the first try, it is in doubt until the server confirms everything sent before.
func (u *Upstream) send(ctx context.Context, c Claim, a Answer, text string) (State, error) {
	if !u.mayReply(c.Reply) {
		u.replies.Store(c.key(), Refused)
		return Refused, nil
	}
	nc := u.js.Conn()
	if !nc.IsConnected() {
		return "", fmt.Errorf("send its reply: %w", nats.ErrDisconnected)
	}
	m := nats.NewMsg(c.Reply)
	m.Header.Set(message.HeaderID, c.ID)
	m.Header.Set(HeaderAgent, c.Agent)
	m.Header.Set(HeaderEntry, c.entry())
	m.Header.Set(HeaderBytes, strconv.Itoa(len(text)))
	if a.Object != "" {
		m.Header.Set(HeaderObject, a.Object)
	} else {
		m.Data = []byte(text)
	}
	u.replies.Store(c.key(), InDoubt)
	ctx, cancel := u.within(ctx)
	defer cancel()
	if err := nc.PublishMsg(m); err != nil {
		return "", fmt.Errorf("send its reply to %s: %w", c.Reply, err)
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		return "", fmt.Errorf("send its reply to %s: %w; whether it came through is not known, so that it is not sent again", c.Reply, err)
	}
	state := Sent
	// Nobody else publishes to this subject, so a refusal that names it is about this reply.
	if last := nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), strconv.Quote(c.Reply)) {
		state = Refused
	}
	u.replies.Store(c.key(), state)
	return state, nil
}

// mayReply keeps a producer from having an agent publish for it to the server, the buckets or the dead letters.
func (u *Upstream) mayReply(subject string) bool {
	if strings.HasPrefix(subject, "_hb.") {
		return message.CanPublish(subject) && strings.HasPrefix(subject, message.ReplySubject(u.stream, ""))
	}
	return message.CanPublish(subject) && !strings.HasPrefix(subject, "$")
}
