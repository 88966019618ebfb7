package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
)

// stream looks a stream up, as it is now.
func stream(ctx context.Context, c *link.Conn, name string) (jetstream.Stream, error) {
	found, err := c.JS.Stream(ctx, name)
	if err != nil {
		return nil, notFound(c, "the stream "+name, "--stream "+name, err)
	}
	return found, nil
}

// deadStream is where a stream's dead letters are.
func deadStream(ctx context.Context, c *link.Conn, name string) (jetstream.Stream, error) {
	found, err := c.JS.Stream(ctx, names.Dead(name))
	if err != nil {
		return nil, notFound(c, "the stream "+names.Dead(name), "--stream "+name, err)
	}
	return found, nil
}

// bucket looks a bucket of a stream up.
func bucket(ctx context.Context, c *link.Conn, stream, name string) (jetstream.KeyValue, error) {
	found, err := c.JS.KeyValue(ctx, name)
	if err != nil {
		return nil, notFound(c, "the bucket "+name, "--stream "+stream, err)
	}
	return found, nil
}

// notFound is why something could not be looked up, and what to do.
func notFound(c *link.Conn, what, flag string, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrBucketNotFound):
		return fmt.Errorf("%s is not there on %s: heartbeat-nats setup %s%s makes it, and --stream names another one", what, c.Where(), c.EmbedFlag(), flag)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders): // nothing on that server listens to such requests
		return fmt.Errorf("look up %s: the server %s has no JetStream for this user: start nats-server with -js, or give the account some", what, c.Where())
	}
	return fmt.Errorf("look up %s: %w", what, said(c, err))
}

// said adds why the server did not answer, if it said that beside the request.
func said(c *link.Conn, err error) error {
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	if last := c.NATS.LastError(); silent && errors.Is(last, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w: the role of this user does not allow it", last)
	}
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return fmt.Errorf("%w: the role of this user does not allow it, or the server %s has no JetStream, or not yet", err, c.Where())
	}
	if link.IsAway(err) {
		return fmt.Errorf("%w: the server %s does not answer: try again once it does", err, c.Where())
	}
	return err
}
