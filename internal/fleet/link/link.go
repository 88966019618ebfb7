// Package link connects to a NATS server. Flags, NATS_URL and the contexts of the nats CLI say which server and as
// whom. A connection, once made, is kept for ever. While the server is away, publishing fails at once: nothing is
// buffered, and the caller decides what to do. With --embed the server is a process of this machine.
package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/words"
)

const (
	// dialTimeout limits one try to connect.
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
	// Patient waits for ever for a server that is away or whose name does not resolve. Bad credentials still fail.
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
	refusal   atomic.Pointer[error]     // the first for too few rights, of what was not asked quietly
	quiet     atomic.Int32

	// Only the library's callbacks use these, and it makes them one after another.
	parting error                // the server's reason for closing the connection, sent just before
	refused map[string]time.Time // when each refusal was last said

	unexplained atomic.Pointer[nats.Conn] // the connection, while it is lost and remains has said nothing
	over        chan struct{}
	back        chan struct{}
}

// ErrOver says that the library gave the connection up, as it does once a server has lowered max_payload below what is
// published.
var ErrOver = errors.New("the server ended the connection for good")

// Over returns a channel that is closed when only a new connection can help.
func (c *Conn) Over() <-chan struct{} { return c.over }

// Back returns a channel that gets a value after each reconnection, while it has room for one.
func (c *Conn) Back() <-chan struct{} { return c.back }

// Connect connects. The error says where to, as whom, why it failed, and what to do. ctx ends only the wait.
func Connect(ctx context.Context, to *Flags, o Options) (*Conn, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Ping == 0 {
		o.Ping = pingEvery
	}
	c := &Conn{options: o, refused: map[string]time.Time{}, over: make(chan struct{}), back: make(chan struct{}, 1)}
	var how []nats.Option
	var t Target
	var err error
	if to.Embed != "" {
		t.URL = "nats://127.0.0.1"
		c.server, how, err = openEmbedded(to.Embed, o.Say)
	} else if t, err = to.Resolve(); err == nil {
		how, err = credentials(&t)
	}
	if err == nil {
		if c.where = Shown(t.URL); c.server != nil {
			c.where = c.server.dir // its port changes
		}
		how = append(how, c.keeping(&t)...)
		dial := func() error { return c.dial(ctx, &t, how) }
		if o.Patient {
			err = c.Patiently(ctx, dial)
		} else {
			err = dial()
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dial connects. It waits for a server of this machine that is starting or ending.
func (c *Conn) dial(ctx context.Context, t *Target, how []nats.Option) (err error) {
	give := time.Now().Add(startTimeout)
	for {
		c.NATS, err = nats.Connect(t.URL, how...)
		switch {
		case err == nil:
			c.JS, err = jetstream.NewWithAPIPrefix(c.NATS, t.api())
			return err
		case c.server == nil:
			return notConnected(t, err)
		case errors.As(err, new(unstarted)):
			return err
		case time.Now().Before(give):
		case isAuth(err):
			return Final(fmt.Errorf("the server in %s does not let this process in (%s): remove %s, which it then writes anew",
				c.where, reason(err), filepath.Join(c.where, addressFile)))
		default:
			return fmt.Errorf("the server in %s does not answer, though a process has it: %w: if somebody changed %s, remove it: it is then written anew",
				c.where, err, filepath.Join(c.where, addressFile))
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return err
		}
	}
}

func (c *Conn) keeping(t *Target) []nats.Option {
	return []nats.Option{
		nats.Name(c.options.Name),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(tries int) time.Duration { c.remains(t); return delay(tries) }),
		nats.IgnoreAuthErrorAbort(), // a user who is missing for a moment comes back
		nats.ReconnectBufSize(-1),   // an old acknowledgement must not go out late
		nats.PingInterval(c.options.Ping),
		nats.MaxPingsOutstanding(pingsLost),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) { c.unexplained.Store(nc); c.lost(cmp.Or(err, nc.LastError())) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.found() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.over) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.complaint(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if errors.As(err, new(unstarted)) {
				c.complaint(err)
			}
		}),
		nats.NoCallbacksAfterClientClose(),
	}
}

// delay returns how long to wait after that many tries. It doubles up to 8 s, less a random part, so that a
// thousand agents do not come back at once.
func delay(tries int) time.Duration {
	d := min(MostDelay, firstDelay<<min(max(tries-1, 0), 6))
	return d/2 + rand.N(d/2+1)
}

// Patiently calls do until it succeeds or returns a [Final] error, which only a person on this machine can mend.
// Any other error is the server's: it is retried, and said once until it changes.
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

// triesAtOne is how often a silent server of several is asked before another one is. Each gets twice the tries of the last.
const triesAtOne = 4

// Leave goes on with another server of the cluster, if there is one and why is silence: clients may still reach a server
// that the others of its cluster do not. What a server says, such as that a limit is reached, all of them say.
func (c *Conn) Leave(why error) {
	if IsAway(why) && len(c.NATS.Servers()) > 1 {
		_ = c.NATS.ForceReconnect() // one that is over is noticed elsewhere
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
