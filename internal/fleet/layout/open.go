package layout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// Layout is what setup has made for one stream.
type Layout struct {
	Name    string
	Stream  jetstream.Stream
	Results jetstream.KeyValue
	Agents  jetstream.KeyValue
	Dead    jetstream.Stream
	Replies jetstream.ObjectStore
}

// Open opens all of it. The error says which part is missing, and what makes it.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (l *Layout, err error) {
	if err := names.CheckStream(stream); err != nil {
		return nil, err
	}
	l = &Layout{Name: stream}
	for _, part := range []struct {
		what string
		open func() error
	}{
		{"stream " + stream, func() error { l.Stream, err = js.Stream(ctx, stream); return err }},
		{"bucket " + names.Bucket(stream), func() error { l.Results, err = js.KeyValue(ctx, names.Bucket(stream)); return err }},
		{"bucket " + names.Agents(stream), func() error { l.Agents, err = js.KeyValue(ctx, names.Agents(stream)); return err }},
		{"stream " + names.Dead(stream), func() error { l.Dead, err = js.Stream(ctx, names.Dead(stream)); return err }},
		{"store " + names.Replies(stream), func() error { l.Replies, err = js.ObjectStore(ctx, names.Replies(stream)); return err }},
	} {
		if err := part.open(); isMissing(err) {
			return nil, missing(stream, part.what)
		} else if err != nil {
			return nil, fmt.Errorf("open %s: %w", part.what, readable(err))
		}
	}
	return l, nil
}

func isMissing(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
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
	bucket := names.Agents(stream)
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
