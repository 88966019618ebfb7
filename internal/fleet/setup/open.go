package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
)

// Layout is what setup has made for one stream.
type Layout struct {
	Stream  jetstream.Stream
	Results jetstream.KeyValue
	Agents  jetstream.KeyValue
	Dead    jetstream.Stream
	Replies jetstream.ObjectStore
}

// Open opens all of it. The error says which part is missing, and what makes it.
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
		if err := part.open(); isMissing(err) {
			return nil, missing(stream, part.what)
		} else if err != nil {
			return nil, fmt.Errorf("open %s: %w", part.what, readable(ctx, js, err))
		}
	}
	return l, nil
}

// StreamFor is the name of the stream that takes a subject.
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

// Present are the keys of what agents say of themselves, without a consumer.
func Present(ctx context.Context, js jetstream.JetStream, stream string) (keys []string, err error) {
	bucket := message.Agents(stream)
	prefix := "$KV." + bucket + "."
	var info *jetstream.StreamInfo
	s, err := js.Stream(ctx, "KV_"+bucket)
	if err == nil {
		info, err = s.Info(ctx, jetstream.WithSubjectFilter(prefix+"agent.*"))
	}
	if isMissing(err) {
		return nil, missing(stream, "bucket "+bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("look for agents of stream %s: %w", stream, readable(ctx, js, err))
	}
	for subject := range info.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subject, prefix))
	}
	return keys, nil
}

// Consumer is the consumer whose filter is the subject, or the one of all subjects. It makes none:
// what setup would have to make is in the error.
func Consumer(ctx context.Context, js jetstream.JetStream, stream, subject string) (jetstream.Consumer, error) {
	if err := errors.Join(message.CheckStream(stream), CheckSubject(subject)); err != nil {
		return nil, err
	}
	c, err := js.Consumer(ctx, stream, message.Consumer(subject))
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return usable(ctx, js, c, stream, subject, err)
	}
	s, err := found(ctx, js, stream)
	if err != nil {
		return nil, readable(ctx, js, err)
	}
	if s == nil {
		return nil, missing(stream, "stream "+stream)
	}
	takes := s.CachedInfo().Config.Subjects
	switch {
	case len(uncovered(takes, []string{subject})) == 0:
		there, err := Consumers(ctx, js, stream)
		if err != nil {
			return nil, readable(ctx, js, err)
		}
		return allOf(ctx, js, stream, subject, there)
	case len(uncovered([]string{subject}, takes)) > 0:
		return nil, fmt.Errorf("stream %s takes %s, which has not all of %s: name a subject of that stream, or add it with heartbeat-nats setup --stream %[1]s --subjects", stream, strings.Join(takes, ", "), subject)
	}
	return nil, fmt.Errorf("stream %s has no consumer for %s alone: heartbeat-nats setup --stream %[1]s --for %[2]s makes one", stream, subject)
}

// usable refuses a consumer that agents cannot work with.
func usable(ctx context.Context, js jetstream.JetStream, c jetstream.Consumer, stream, subject string, err error) (jetstream.Consumer, error) {
	if isMissing(err) {
		return nil, missing(stream, "stream "+stream)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the consumer of %s: %w", subject, readable(ctx, js, err))
	}
	i := c.CachedInfo()
	err = unfit(i)
	if i.Config.AckWait < LeastAckWait {
		err = errors.Join(err, fmt.Errorf("consumer %s has an AckWait of %v, and agents need %v or more: heartbeat-nats setup --stream %s --ack-wait 60s changes that", i.Name, i.Config.AckWait, LeastAckWait, stream))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// allOf is the consumer of all subjects.
func allOf(ctx context.Context, js jetstream.JetStream, stream, subject string, there []*jetstream.ConsumerInfo) (jetstream.Consumer, error) {
	var filters []string
	for _, i := range there {
		if isDefault(i) {
			c, err := js.Consumer(ctx, stream, i.Name)
			return usable(ctx, js, c, stream, subject, err)
		}
		if isOurs(i) {
			filters = append(filters, Filters(&i.Config)...)
		}
	}
	if len(filters) == 0 {
		return nil, fmt.Errorf("stream %s has no consumer: heartbeat-nats setup --stream %[1]s makes one", stream)
	}
	return nil, fmt.Errorf("stream %s has no consumer for all of %s: name what one of its consumers takes with --subject: %s", stream, subject, strings.Join(filters, ", "))
}
