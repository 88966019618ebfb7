package setup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
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
			return nil, fmt.Errorf("open %s: %w", part.what, readable(err))
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
		return "", fmt.Errorf("look for the stream of %s: %w", subject, readable(err))
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
		return nil, fmt.Errorf("look for agents of stream %s: %w", stream, readable(err))
	}
	for subject := range info.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subject, prefix))
	}
	return keys, nil
}

// Consumer is the consumer whose filter is the subject. Where there is none and nobody uses
// the consumer of all subjects, one for the subject takes its place, and said is a sentence
// about that. What else would be needed is in the error.
func Consumer(ctx context.Context, js jetstream.JetStream, stream, subject string) (c jetstream.Consumer, said string, err error) {
	if subject != everything {
		err = checkSubject(subject)
	}
	if err = errors.Join(message.CheckStream(stream), err); err != nil {
		return nil, "", err
	}
	c, err = js.Consumer(ctx, stream, message.Consumer(subject))
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		c, err = usable(c, stream, subject, err)
		return c, "", err
	}
	s, err := found(ctx, js, stream)
	if err != nil {
		return nil, "", readable(err)
	}
	if s == nil {
		return nil, "", missing(stream, "stream "+stream)
	}
	there, err := Consumers(ctx, js, stream)
	if err != nil {
		return nil, "", readable(err)
	}
	takes := s.CachedInfo().Config.Subjects
	switch {
	case len(uncovered(takes, []string{subject})) == 0:
		c, err = allOf(ctx, js, stream, subject, there)
		return c, "", err
	case len(uncovered([]string{subject}, takes)) > 0:
		return nil, "", fmt.Errorf("stream %s takes %s, which has not all of %s: name a subject of that stream, or add it with heartbeat-nats setup --stream %[1]s --subjects", stream, strings.Join(takes, ", "), subject)
	}
	return instead(ctx, js, stream, subject, there)
}

// usable refuses a consumer that agents cannot work with.
func usable(c jetstream.Consumer, stream, subject string, err error) (jetstream.Consumer, error) {
	if isMissing(err) {
		return nil, missing(stream, "stream "+stream)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the consumer of %s: %w", subject, readable(err))
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
			return usable(c, stream, subject, err)
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

// instead makes a consumer, in the place of the one of all subjects if there is that.
func instead(ctx context.Context, js jetstream.JetStream, stream, subject string, there []*jetstream.ConsumerInfo) (jetstream.Consumer, string, error) {
	config := consumerConfig(subject, DefaultAckWait, DefaultMaxDeliver, false)
	said := fmt.Sprintf("stream %s has a consumer for %s now", stream, subject)
	for _, i := range there {
		own := Filters(&i.Config)
		switch {
		case !collide(own, subject):
			continue
		case !isDefault(i):
			return nil, "", fmt.Errorf("consumer %s of stream %s takes %s, and a message belongs to one consumer: take that with --subject, or remove it and run heartbeat-nats setup --stream %[2]s --for %[4]s", i.Name, stream, strings.Join(own, ", "), subject)
		case !idle(i):
			return nil, "", fmt.Errorf("agents work for all subjects of stream %s, and a message belongs to one consumer: drain them, and then run heartbeat-nats setup --stream %[1]s --for %s", stream, subject)
		}
		config.AckWait = max(i.Config.AckWait, LeastAckWait)
		config.Metadata[message.MetaMaxDeliver] = strconv.Itoa(MaxDeliver(&i.Config))
		if err := js.DeleteConsumer(ctx, stream, i.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil, "", notMade(stream, subject, err)
		}
		said += fmt.Sprintf(", in place of the one for all subjects, which nobody used: other messages wait until heartbeat-nats setup --stream %s --for SUBJECT makes one for them", stream)
	}
	c, err := js.CreateOrUpdateConsumer(ctx, stream, config)
	if err != nil {
		return nil, "", notMade(stream, subject, err)
	}
	return c, said, nil
}

// notMade is the error where a consumer could not be made. A server does not answer who has
// no right to.
func notMade(stream, subject string, err error) error {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
		return fmt.Errorf("stream %s has no consumer for %s, and this user seems to have no right to make one (%w): have somebody run heartbeat-nats setup --stream %[1]s --for %[2]s who has", stream, subject, err)
	}
	return fmt.Errorf("make a consumer for %s: %w: heartbeat-nats setup --stream %s --for %[1]s says more", subject, err, stream)
}
