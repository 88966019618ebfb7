package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/words"
)

// sayAgain is how long the same complaint of the server is not repeated.
const sayAgain = time.Minute

// Connected reports whether the server is reachable. It does not ask the library, which holds its lock while it dials.
func (c *Conn) Connected() bool { return c.awaySince.Load() == nil }

func (c *Conn) lost(err error) {
	now := time.Now()
	c.awaySince.CompareAndSwap(nil, &now)
	text := fmt.Sprintf("not connected to %s since %s", c.where, words.Stamp(*c.awaySince.Load()))
	err, c.parting = cmp.Or(c.parting, err), nil
	if err != nil {
		text += ": " + reason(err)
	}
	text += ": it is tried again for ever"
	if err != nil && isAuth(err) {
		text += ", and new credentials in the same file count"
	}
	c.options.Say(text)
}

// remains says, once while the server is away, why a new connection fails, if a person has to mend that. The library
// tells that to nobody.
func (c *Conn) remains(t *Target) {
	nc := c.unexplained.Load()
	if nc == nil || nc.LastError() == nil || isAuth(nc.LastError()) { // lost says what isAuth
		return
	}
	if why := notConnected(t, nc.LastError()); errors.As(why, new(final)) {
		c.unexplained.Store(nil)
		c.options.Say(why.Error() + ": it is tried again for ever")
	}
}

func (c *Conn) found() {
	away := time.Since(*c.awaySince.Swap(nil)) // the library tells of each loss before
	c.parting = nil
	c.options.Say(fmt.Sprintf("connected to %s again after %s", c.where, words.Took(away)))
	select {
	case c.back <- struct{}{}:
	default: // who reads it is yet to hear of the last time
	}
}

func (c *Conn) complaint(err error) {
	isRefusal := errors.Is(err, nats.ErrPermissionViolation)
	switch {
	case isRefusal && c.quiet.Load() > 0:
		return
	case isRefusal:
		c.refusal.CompareAndSwap(nil, &err)
	case isAuth(err): // lost says it, when the server closes the connection
		c.parting = err
		return
	}
	text, now := reason(err), time.Now()
	if now.Sub(c.refused[text]) < sayAgain {
		return
	}
	maps.DeleteFunc(c.refused, func(_ string, at time.Time) bool { return now.Sub(at) >= sayAgain })
	c.refused[text] = now
	if isRefusal {
		text += ": the server's configuration gives this user's role too few rights"
	}
	c.options.Say(c.where + ": " + text)
}

// Quietly calls do, which asks for more than a role may have. The server's refusals are not said meanwhile.
func (c *Conn) Quietly(do func()) {
	c.quiet.Add(1)
	defer c.quiet.Add(-1)
	do()
}

// Refusal returns the first refusal for too few rights, or nil. It is not one of what was asked quietly.
func (c *Conn) Refusal() error {
	if first := c.refusal.Load(); first != nil {
		return *first
	}
	return nil
}

// Try calls do, and explains its error. What was refused before does not count: the rights may have been given since.
func (c *Conn) Try(do func() error) error {
	c.refusal.Store(nil)
	return c.Explain(do())
}

// reason leaves out the own address of a connection, which differs from try to try.
func reason(err error) string {
	if op, is := errors.AsType[*net.OpError](err); is && op.Source != nil {
		err = op.Err
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}

// IsAway reports whether an operation failed because the server is away or did not answer in time. The operation
// may have taken effect all the same.
func IsAway(err error) bool {
	isAway := slices.ContainsFunc([]error{
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrNoServers,
		nats.ErrStaleConnection, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed, ErrNoQuorum,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded, os.ErrDeadlineExceeded,
	}, func(away error) bool { return errors.Is(err, away) })
	n, isNet := errors.AsType[net.Error](err)
	return isAway || isNet && n.Timeout() || isUnavailable(err)
}

// ErrNoQuorum says that a cluster has too few servers to decide anything.
var ErrNoQuorum = errors.New("too few servers of its cluster run to agree on anything (no quorum), or it has just started: it goes on once most of them do")

// Explain adds to the error of a request why the server did not do it, if that can be told. A refusal for too few
// rights is said beside the request, a stream without a leader stays silent, and nobody answers where JetStream is off.
func (c *Conn) Explain(err error) error {
	isSilent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	if refusal := c.Refusal(); refusal != nil && isSilent {
		return fmt.Errorf("%w: the role of this user does not allow it", refusal)
	}
	noQuorum := isUnavailable(err)
	if c.JS != nil && (isSilent || errors.Is(err, jetstream.ErrNoStreamResponse)) {
		c.Quietly(func() {
			ctx, cancel := context.WithTimeout(context.Background(), askQuorum)
			defer cancel()
			_, wrong := c.JS.AccountInfo(ctx)
			noQuorum = isUnavailable(wrong)
		})
	}
	noSuch := []error{jetstream.ErrJetStreamNotEnabled, nats.ErrJetStreamNotEnabled, nats.ErrNoResponders, jetstream.ErrNoStreamResponse}
	switch {
	case noQuorum:
		return fmt.Errorf("the server %s cannot answer: %w", c.where, ErrNoQuorum)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account of this user needs jetstream: enabled in the configuration of the server %s", err, c.where)
	case c.Connected() && slices.ContainsFunc(noSuch, func(no error) bool { return errors.Is(err, no) }):
		return fmt.Errorf("%w: the role of this user does not allow it, or the server %s has no JetStream (start nats-server with --jetstream), or not yet", err, c.where)
	}
	return err
}

// askQuorum is how long the server may take to say that it has no quorum.
const askQuorum = 2 * time.Second

// isUnavailable reports whether a server answered that it has no quorum, or is starting or ending.
func isUnavailable(err error) bool {
	answer, is := errors.AsType[*jetstream.APIError](err)
	return is && answer.ErrorCode == jetstream.ErrorCode(server.JSClusterNotAvailErr)
}
