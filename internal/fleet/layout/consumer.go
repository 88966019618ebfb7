package layout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// Consumer is the consumer whose filter is the subject. Where there is none and nobody uses
// the consumer of all subjects, one for the subject takes its place, and said is a sentence
// about that. What else would be needed is in the error.
func Consumer(ctx context.Context, js jetstream.JetStream, stream, subject string) (c jetstream.Consumer, said string, err error) {
	if subject != everything {
		err = checkSubject(subject)
	}
	if err = errors.Join(names.CheckStream(stream), err); err != nil {
		return nil, "", err
	}
	c, err = js.Consumer(ctx, stream, names.Consumer(subject))
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		c, err = usable(c, stream, subject, err)
		return c, "", err
	}
	info, err := found(ctx, js, stream)
	if err != nil {
		return nil, "", readable(err)
	}
	if info == nil {
		return nil, "", missing(stream, "stream "+stream)
	}
	there, err := consumersOf(ctx, js, stream)
	if err != nil {
		return nil, "", readable(err)
	}
	takes := info.Config.Subjects
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
	var no refusals
	i := c.CachedInfo()
	refuseConsumer(i, &no)
	if i.Config.AckWait < LeastAckWait {
		no.add("consumer %s has an AckWait of %v, and agents need %v or more: heartbeat-nats setup --stream %s --ack-wait 60s changes that", i.Name, i.Config.AckWait, LeastAckWait, stream)
	}
	if len(no) > 0 {
		return nil, errors.Join(no...)
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
			filters = append(filters, filtersOf(&i.Config)...)
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
		own := filtersOf(&i.Config)
		switch {
		case !collide(own, subject):
			continue
		case !isDefault(i):
			return nil, "", fmt.Errorf("consumer %s of stream %s takes %s, and a message belongs to one consumer: take that with --subject, or remove it and run heartbeat-nats setup --stream %[2]s --for %[4]s", i.Name, stream, strings.Join(own, ", "), subject)
		case !idle(i):
			return nil, "", fmt.Errorf("agents work for all subjects of stream %s, and a message belongs to one consumer: drain them, and then run heartbeat-nats setup --stream %[1]s --for %s", stream, subject)
		}
		config.AckWait = max(i.Config.AckWait, LeastAckWait)
		config.Metadata[names.MetaMaxDeliver] = strconv.Itoa(MaxDeliver(&i.Config))
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
