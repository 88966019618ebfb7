// Package link is the connection to a NATS server: which server and as whom, from flags, from
// NATS_URL and from the contexts of the nats CLI; made once, with a sentence for what is
// wrong, and then kept for ever. While the server is away, nothing that is published is kept
// back for later: it fails at once, and who published it decides what to do. With --embed the
// server is this process itself, or another one of this machine.
package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/words"
)

const (
	// dialTimeout is how long one try to connect may take.
	dialTimeout = 5 * time.Second
	// pingEvery and pingsLost are how a connection is found out that is open on this side
	// alone: within 30 s, half of the shortest time that setup suggests for AckWait.
	pingEvery = 10 * time.Second
	pingsLost = 2

	firstDelay = 125 * time.Millisecond
	mostDelay  = 8 * time.Second
)

// Options are how a connection is made. The zero value is for a verb.
type Options struct {
	// Name is what the server lists the connection as: heartbeat-nats agent one.
	Name string
	// Patient waits for ever for a server that is away, or whose name is not known yet.
	// Wrong credentials and certificates still end it.
	Patient bool
	// Say gets a sentence on each change of the connection, and on what the server
	// refused. It may be called from several goroutines.
	Say func(sentence string)
	// Back is called once the connection is there again.
	Back func()
	// Ping replaces the 10 s between two signs of life, for tests.
	Ping time.Duration
}

// Conn is a connection. Its methods may be called from several goroutines.
type Conn struct {
	// NATS is the connection itself. Publishing fails with an error that [IsAway] knows
	// while the server is away.
	NATS *nats.Conn
	// JS is its JetStream.
	JS jetstream.JetStream

	where   string
	options Options
	server  *embedded // with --embed

	mu        sync.Mutex
	awaySince time.Time            // zero while connected
	parting   error                // why the server closes the connection, as it said before
	refused   map[string]time.Time // what was said lately
	closed    bool
	quiet     atomic.Int32
}

// Connect connects. The error is a sentence that says where to, as whom, why not, and what
// to do. ctx ends only the wait for the connection.
func Connect(ctx context.Context, to *Flags, o Options) (*Conn, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Ping == 0 {
		o.Ping = pingEvery
	}
	c := &Conn{options: o, refused: map[string]time.Time{}}
	var how []nats.Option
	var t Target
	var err error
	if to.Embed != "" {
		c.server, err = openEmbedded(to.Embed, o.Say)
		if err == nil {
			t, how = c.server.target()
		}
	} else if t, err = to.Resolve(); err == nil {
		how, err = credentials(&t)
	}
	if err == nil {
		if c.where = Shown(t.URL); c.server != nil {
			c.where = c.server.dir // its port changes
		}
		err = c.dial(ctx, &t, append(how, c.keeping()...))
	}
	if err != nil {
		return nil, errors.Join(err, c.server.close())
	}
	return c, nil
}

// dial tries until the connection is there, or cannot be.
func (c *Conn) dial(ctx context.Context, t *Target, how []nats.Option) error {
	give := time.Now().Add(startTimeout)
	for try := 1; ; try++ {
		err := c.server.ready(ctx)
		isReady := err == nil
		if isReady {
			c.NATS, err = nats.Connect(t.URL, how...)
		}
		if err == nil {
			c.JS, err = jetStream(c.NATS, t)
			return err
		}
		pause := delay(try)
		switch changing := c.server != nil && isReady; {
		case changing && time.Now().Before(give):
			pause = lookEvery // another process is about to be the server, or is ending
		case changing && isAuth(err):
			return fmt.Errorf("the server in %s does not let this process in (%s): end the commands that use it, and remove %s", c.where, reason(err), filepath.Join(c.where, addressFile))
		default:
			if isReady {
				err = notConnected(t, err)
			}
			if !c.options.Patient || errors.As(err, new(final)) {
				return err
			}
			if try == 1 {
				c.options.Say(err.Error() + "; it is tried again until it is there")
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func jetStream(nc *nats.Conn, t *Target) (jetstream.JetStream, error) {
	switch {
	case t.JSAPIPrefix != "":
		return jetstream.NewWithAPIPrefix(nc, t.JSAPIPrefix)
	case t.JSDomain != "":
		return jetstream.NewWithDomain(nc, t.JSDomain)
	}
	return jetstream.New(nc)
}

// keeping are the options of a connection that is kept for ever.
func (c *Conn) keeping() []nats.Option {
	return []nats.Option{
		nats.Name(c.options.Name),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(delay),
		nats.IgnoreAuthErrorAbort(), // a user who is missing for a moment comes back
		nats.ReconnectBufSize(-1),   // an old acknowledgement must not go out later
		nats.PingInterval(c.options.Ping),
		nats.MaxPingsOutstanding(pingsLost),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.lost(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.found() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.complaint(err) }),
		nats.NoCallbacksAfterClientClose(),
	}
}

// delay is how long to wait after so many tries: twice as long each time, up to 8 s, less
// a random part, so that a thousand agents do not come back at once.
func delay(tries int) time.Duration {
	d := mostDelay
	if tries < 7 {
		d = firstDelay << max(tries-1, 0)
	}
	return d/2 + rand.N(d/2+1)
}

// Again calls do, and with --embed calls it anew where the process that was the server ended
// meanwhile: another one takes its place, or this one does. What do has done may have
// happened more than once. Elsewhere a server that is away is an error at once.
func (c *Conn) Again(ctx context.Context, do func() error) error {
	give := time.Now().Add(startTimeout)
	for {
		err := do()
		if err == nil || !IsAway(err) || c.server == nil || time.Now().After(give) {
			return err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// Patiently calls do until it works, or fails in a way that only a person can mend on this machine:
// see [Final]. Whatever else is wrong is the server's, and is said once each.
func (c *Conn) Patiently(ctx context.Context, do func() error) error {
	said := ""
	for try := 1; ; try++ {
		err := do()
		if err == nil || errors.As(err, new(final)) || ctx.Err() != nil {
			return err
		}
		if text := err.Error(); text != said {
			said = text
			c.options.Say(text + "; it is tried again for ever")
		}
		select {
		case <-time.After(delay(try)):
		case <-ctx.Done():
			return err
		}
	}
}

// Where is the server's address without passwords, or the directory of --embed.
func (c *Conn) Where() string { return c.where }

// EmbedFlag is "--embed DIRECTORY " for a shell if the server is of this machine alone, else
// empty: what a command that is named to a person begins with.
func (c *Conn) EmbedFlag() string {
	if c.server == nil {
		return ""
	}
	return "--embed " + words.Shell(c.server.dir) + " "
}

// Close ends the connection, and the server if this process is that. It may be called
// twice.
func (c *Conn) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	c.NATS.Close()
	if err := c.server.close(); err != nil {
		return fmt.Errorf("end the server of this machine: %w", err)
	}
	return nil
}
