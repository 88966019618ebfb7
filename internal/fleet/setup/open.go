package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
)

// Layout is what setup made for one stream.
type Layout struct {
	Stream  jetstream.Stream
	Results jetstream.KeyValue
	Agents  jetstream.KeyValue
	Dead    jetstream.Stream
	Replies jetstream.ObjectStore
}

// Open opens the whole layout. The error names a missing part and the command that makes it.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (l *Layout, err error) {
	if err := message.CheckStream(stream); err != nil {
		return nil, err
	}
	l = &Layout{}
	for _, part := range []struct {
		what string
		open func() error
	}{
		{"stream " + stream, func() error { l.Stream, err = js.Stream(ctx, stream); return err }},
		{"bucket " + message.Bucket(stream), func() error { l.Results, err = js.KeyValue(ctx, message.Bucket(stream)); return err }},
		{"bucket " + message.Agents(stream), func() error { l.Agents, err = js.KeyValue(ctx, message.Agents(stream)); return err }},
		{"stream " + message.Dead(stream), func() error { l.Dead, err = js.Stream(ctx, message.Dead(stream)); return err }},
		{"store " + message.Replies(stream), func() error { l.Replies, err = js.ObjectStore(ctx, message.Replies(stream)); return err }},
	} {
		if err := part.open(); errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, missing(stream, part.what)
		} else if err != nil {
			return nil, fmt.Errorf("open %s: %w", part.what, readable(ctx, js, err))
		}
	}
	return l, nil
}

// StreamFor returns the name of the stream that takes a subject.
func StreamFor(ctx context.Context, js jetstream.JetStream, subject string) (string, error) {
	if err := checkSubject(subject); err != nil {
		return "", err
	}
	name, err := js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", fmt.Errorf("no stream of this server takes %s: heartbeat-nats setup --subjects makes one", subject)
	}
	if err != nil {
		return "", fmt.Errorf("look for the stream of %s: %w", subject, readable(ctx, js, err))
	}
	return name, nil
}

// Consumer returns the consumer for the subject, or the default one. It creates none: the error says how to.
func Consumer(ctx context.Context, js jetstream.JetStream, stream, subject string) (jetstream.Consumer, error) {
	if err := errors.Join(message.CheckStream(stream), CheckSubject(subject)); err != nil {
		return nil, err
	}
	s, there, err := Consumers(ctx, js, stream)
	if err == nil && s == nil {
		return nil, missing(stream, "stream "+stream)
	}
	if err != nil {
		return nil, readable(ctx, js, err)
	}
	takes := s.CachedInfo().Config.Subjects
	isAll := len(uncovered(takes, []string{subject})) == 0
	var filters []string
	for _, i := range there {
		if i.Name == message.Consumer(subject) || isAll && isDefault(i) {
			if err := unfit(i); err != nil {
				return nil, err
			}
			if i.Config.AckWait < LeastAckWait {
				return nil, fmt.Errorf("consumer %s has an AckWait of %v, and agents need %v or more: heartbeat-nats setup --stream %s --ack-wait 60s changes that", i.Name, i.Config.AckWait, LeastAckWait, stream)
			}
			c, err := js.Consumer(ctx, stream, i.Name)
			if err != nil {
				return nil, fmt.Errorf("look at the consumer of %s: %w", subject, readable(ctx, js, err))
			}
			return c, nil
		}
		if IsOurs(i) {
			filters = append(filters, Filters(&i.Config)...)
		}
	}
	switch {
	case len(uncovered([]string{subject}, takes)) > 0 && !isAll:
		return nil, fmt.Errorf("stream %s takes %s, which has not all of %s: name a subject of that stream, or add it with heartbeat-nats setup --stream %[1]s --subjects", stream, strings.Join(takes, ", "), subject)
	case !isAll:
		return nil, fmt.Errorf("stream %s has no consumer for %s alone: heartbeat-nats setup --stream %[1]s --for %[2]s makes one", stream, subject)
	case len(filters) == 0:
		return nil, fmt.Errorf("stream %s has no consumer: heartbeat-nats setup --stream %[1]s makes one", stream)
	}
	return nil, fmt.Errorf("stream %s has no consumer for all of %s: name what one of its consumers takes with --subject: %s", stream, subject, strings.Join(filters, ", "))
}
