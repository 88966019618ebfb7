// Package link connects to a NATS server. Flags, NATS_URL and the contexts of the nats CLI say to which server and as
// whom. A connection, once made, is kept for ever. While the server is away, publishing fails at once: nothing is
// buffered, and the caller decides what to do. With --embed the server is a process of this machine.
package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/words"
)

const (
	dialTimeout = 5 * time.Second
	// pingEvery and pingsLost reveal a connection that is open on this side only. They take 30 s, half of the
	// shortest AckWait that setup suggests.
	pingEvery = 10 * time.Second
	pingsLost = 2

	firstDelay = 125 * time.Millisecond
	// MostDelay is the longest time between two tries to connect again.
	MostDelay = 8 * time.Second
)

// Options say how to connect. The zero value suits a verb.
type Options struct {
	Name string // in the server's list of connections: heartbeat-nats agent one
	// Patient waits for ever for a server that is away or whose name does not resolve. Bad credentials fail at once.
	Patient bool
	// Say gets a sentence for each change of the connection and each refusal. Several goroutines may call it.
	Say  func(sentence string)
	Ping time.Duration // replaces the 10 s between pings, for tests
}

// Conn is a connection. Several goroutines may use it.
type Conn struct {
	// NATS is the connection itself. While the server is away, publishing fails with an error that [IsAway] knows.
	NATS *nats.Conn
	JS   jetstream.JetStream

	where   string
	options Options
	server  *embedded // with --embed

	awaySince atomic.Pointer[time.Time] // nil while connected
	refusal   atomic.Pointer[error]     // see Refusal
	quiet     atomic.Int32              // how many calls of Quietly run

	// Only the library's callbacks use these, and it makes them one after another.
	parting error                // the server's reason for closing the connection, sent just before
	refused map[string]time.Time // when each refusal was last said

	unexplained atomic.Pointer[nats.Conn] // the connection, while it is lost and explainAway has said nothing
	over        chan struct{}
	back        chan struct{}
}

// ErrOver says that the library has given the connection up, as where more is published than a lowered max_payload.
var ErrOver = errors.New("the server ended the connection for good")

// Over returns a channel that is closed when only a new connection can help.
func (c *Conn) Over() <-chan struct{} { return c.over }

// Back returns a channel that gets a value after a reconnection, unless the last value still waits there.
func (c *Conn) Back() <-chan struct{} { return c.back }

// Connect connects. The error says where to, as whom, why it failed, and what to do. ctx ends only the wait.
func Connect(ctx context.Context, to *Flags, o Options) (*Conn, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	o.Ping = cmp.Or(o.Ping, pingEvery)
	c := &Conn{options: o, refused: map[string]time.Time{}, over: make(chan struct{}), back: make(chan struct{}, 1)}
	var options []nats.Option
	var t Target
	var err error
	if to.Embed != "" {
		t.URL = "nats://127.0.0.1"
		c.server, options, err = openEmbedded(to.Embed, o.Say)
	} else if t, err = to.Resolve(); err == nil {
		options, err = credentials(&t)
	}
	if err != nil {
		return nil, err
	}
	if c.where = Shown(t.URL); c.server != nil {
		c.where = c.server.dir // its port changes
	}
	options = append(options, c.keeping(&t)...)
	dial := func() error { return c.dial(ctx, &t, options) }
	if o.Patient {
		err = c.Patiently(ctx, dial)
	} else {
		err = dial()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dial connects. It waits for a server of this machine that is starting or ending.
func (c *Conn) dial(ctx context.Context, t *Target, options []nats.Option) (err error) {
	deadline := time.Now().Add(startTimeout)
	for {
		c.NATS, err = nats.Connect(t.URL, options...)
		switch {
		case err == nil:
			c.JS, err = jetstream.NewWithAPIPrefix(c.NATS, t.api())
			return err
		case c.server == nil:
			return notConnected(t, err)
		case errors.As(err, new(unstarted)):
			return err
		case time.Now().Before(deadline):
		case isAuth(err):
			return Final(fmt.Errorf("the server in %s does not let this process in (%s): remove %s, which it then writes anew",
				c.where, reason(err), filepath.Join(c.where, addressFile)))
		default:
			return fmt.Errorf("the server in %s does not answer, though a process has it: %w: if somebody changed %s, remove it: it is then written anew",
				c.where, err, filepath.Join(c.where, addressFile))
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// keeping returns the options that keep a connection for ever, and report what becomes of it.
func (c *Conn) keeping(t *Target) []nats.Option {
	return []nats.Option{
		nats.Name(c.options.Name),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(tries int) time.Duration { c.explainAway(t); return delay(tries) }),
		nats.IgnoreAuthErrorAbort(), // a user who is missing for a moment comes back
		nats.ReconnectBufSize(-1),   // an old acknowledgement must not go out late
		nats.PingInterval(c.options.Ping),
		nats.MaxPingsOutstanding(pingsLost),
		nats.DisconnectErrHandler(c.disconnected),
		nats.ReconnectHandler(func(*nats.Conn) { c.reconnected() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.over) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.complain(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if errors.As(err, new(unstarted)) {
				c.complain(err)
			}
		}),
		nats.NoCallbacksAfterClientClose(),
	}
}

// delay returns how long to wait after so many tries: twice as long each time, up to 8 s, less a random part, so that
// a thousand agents do not come back at once.
func delay(tries int) time.Duration {
	d := min(MostDelay, firstDelay<<min(max(tries-1, 0), 6))
	return d/2 + rand.N(d/2+1)
}

// Patiently calls do until it succeeds or returns a [Final] error, which only a person on this machine can mend.
// After any other error, which is the server's, it tries again. It says an error once, until another one comes.
func (c *Conn) Patiently(ctx context.Context, do func() error) error {
	said := ""
	for try := 1; ; try++ {
		err := c.Try(do)
		if err == nil || errors.As(err, new(final)) || ctx.Err() != nil {
			return err
		}
		if text := err.Error(); text != said {
			said = text
			c.options.Say(text + "; it is tried again for ever")
		}
		if try >= triesAtOne && try&(try-1) == 0 && c.JS != nil {
			c.Leave(err)
		}
		select {
		case <-time.After(delay(try)):
		case <-ctx.Done():
			return err
		}
	}
}

// triesAtOne is how many tries the first silent server of a cluster gets. Each next server gets twice as many.
const triesAtOne = 4

// Leave goes on with another server of the cluster, if there is one and why is silence: clients may still reach a server
// that has lost the rest of its cluster. An answer, such as that a limit is reached, would be the same elsewhere.
func (c *Conn) Leave(why error) {
	if IsAway(why) && len(c.NATS.Servers()) > 1 {
		_ = c.NATS.ForceReconnect() // it fails on a closed connection, which Over reports
	}
}

// Where returns the server's address without passwords, or the directory of --embed.
func (c *Conn) Where() string { return c.where }

// Typed returns a command of heartbeat-nats for a person to type. It names a server of this machine behind the verb.
func Typed(nc *nats.Conn, verb string, args ...string) string {
	if e, is := nc.Opts.CustomDialer.(*embedded); is {
		args = append([]string{"--embed", e.dir}, args...)
	}
	return "heartbeat-nats " + verb + " " + words.Shell(args...)
}

// Close ends the connection. It may be called twice.
func (c *Conn) Close() { c.NATS.Close() }

// sayAgain is how long the same complaint of the server is not repeated.
const sayAgain = time.Minute

// Within limits what is asked over a connection. Its break ends that with [nats.ErrDisconnected]: the answer was lost.
func Within(ctx context.Context, nc *nats.Conn, patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	ctx, end := context.WithCancelCause(ctx)
	lost := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	context.AfterFunc(ctx, func() { nc.RemoveStatusListener(lost) })
	go func() { <-lost; end(nats.ErrDisconnected) }() // lost is also closed, when that changes nothing any more
	return breakable{ctx}, cancel
}

// breakable is a context whose error says that a break of the connection has ended it.
type breakable struct{ context.Context }

func (b breakable) Err() error {
	if errors.Is(context.Cause(b.Context), nats.ErrDisconnected) {
		return nats.ErrDisconnected
	}
	return b.Context.Err()
}

// Connected reports whether the server is reachable. It does not ask the library, which holds its lock while it dials.
func (c *Conn) Connected() bool { return c.awaySince.Load() == nil }

func (c *Conn) disconnected(nc *nats.Conn, err error) {
	c.unexplained.Store(nc)
	c.awaySince.CompareAndSwap(nil, new(time.Now()))
	text := fmt.Sprintf("not connected to %s since %s", c.where, words.Stamp(*c.awaySince.Load()))
	err, c.parting = cmp.Or(c.parting, err, nc.LastError()), nil
	if err != nil {
		text += ": " + reason(err)
	}
	c.options.Say(text + ": it is tried again for ever")
}

// explainAway says, once while the server is away, why a new connection fails, if a person has to mend that. The
// library has no callback for it, and a server need not say why it ends a connection.
func (c *Conn) explainAway(t *Target) {
	nc := c.unexplained.Load()
	if nc == nil || nc.LastError() == nil || c.server != nil { // its token is read again
		return
	}
	if why := notConnected(t, nc.LastError()); errors.As(why, new(final)) {
		c.unexplained.Store(nil)
		text := why.Error() + ": it is tried again for ever"
		switch isRefused := isAuth(nc.LastError()); {
		case isRefused && (t.Creds != "" || t.NKey != ""):
			text += ", and new credentials in the same file count"
		case isRefused: // the password of a URL or a context
			text += " with the same password: if that has changed, end this process and start it anew"
		}
		c.options.Say(text)
	}
}

func (c *Conn) reconnected() {
	away := time.Since(*c.awaySince.Swap(nil)) // the library reports each loss first
	c.parting = nil
	c.options.Say(fmt.Sprintf("connected to %s again after %s", c.where, words.Took(away)))
	select {
	case c.back <- struct{}{}:
	default: // the last value still waits
	}
}

// complain says what the server, or the start of one, has reported, unless it was said a moment ago.
func (c *Conn) complain(err error) {
	isRefusal := errors.Is(err, nats.ErrPermissionViolation)
	switch {
	case isRefusal && c.quiet.Load() > 0:
		return
	case isRefusal:
		c.refusal.CompareAndSwap(nil, &err)
	case isAuth(err): // disconnected says it, when the server closes the connection
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

// Quietly calls do, which may ask for more than a role permits. The server's refusals are not said meanwhile.
func (c *Conn) Quietly(do func()) {
	c.quiet.Add(1)
	defer c.quiet.Add(-1)
	do()
}

// Refusal returns the first refusal for too few rights since the last [Conn.Try], outside of [Conn.Quietly], or nil.
func (c *Conn) Refusal() error {
	if first := c.refusal.Load(); first != nil {
		return *first
	}
	return nil
}

// Try calls do, and explains its error. Earlier refusals do not count: the rights may have been given since.
func (c *Conn) Try(do func() error) error {
	c.refusal.Store(nil)
	return c.Explain(do())
}

// reason returns the text of an error without the client's own address, which differs from try to try.
func reason(err error) string {
	if op, is := errors.AsType[*net.OpError](err); is && op.Source != nil {
		err = op.Err
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}

// IsAway reports whether an operation, which may have taken effect, failed since the server is away or silent.
func IsAway(err error) bool {
	isAway := isAny(err,
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrNoServers,
		nats.ErrStaleConnection, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed, ErrNoQuorum,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded, os.ErrDeadlineExceeded)
	n, isNet := errors.AsType[net.Error](err)
	return isAway || isNet && n.Timeout() || isUnavailable(err)
}

// ErrNoQuorum says that a cluster has too few running servers to agree on anything.
var ErrNoQuorum = errors.New("too few servers of its cluster run to agree on anything (no quorum), or it has just started: it goes on once most of them do")

// Explain adds to the error of a request why the server did not do it, if that can be known. A refusal for too few
// rights comes beside the request, a stream without a leader stays silent, and nobody answers where JetStream is off.
func (c *Conn) Explain(err error) error {
	isSilent := isAny(err, context.DeadlineExceeded, nats.ErrTimeout)
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
	switch {
	case noQuorum:
		return fmt.Errorf("the server %s cannot answer: %w", c.where, ErrNoQuorum)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account of this user needs jetstream: enabled in the configuration of the server %s", err, c.where)
	case c.Connected() && isAny(err, jetstream.ErrJetStreamNotEnabled, nats.ErrJetStreamNotEnabled, nats.ErrNoResponders, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w: the role of this user does not allow it, or the server %s has no JetStream (start nats-server with --jetstream), or not yet", err, c.where)
	}
	return err
}

// askQuorum is how long the server may take to say that it has no quorum.
const askQuorum = 2 * time.Second

// isUnavailable reports whether a server has answered that it has no quorum, or is starting or ending.
func isUnavailable(err error) bool {
	answer, is := errors.AsType[*jetstream.APIError](err)
	return is && answer.ErrorCode == jetstream.ErrorCode(server.JSClusterNotAvailErr)
}
