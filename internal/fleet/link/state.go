package link

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/words"
)

// sayAgain is after how long the same complaint of the server is passed on again.
const sayAgain = time.Minute

// State is how the connection is.
type State struct {
	Connected bool
	Since     time.Time // when it was lost; zero while connected
	Sentence  string    // empty while connected
}

// State tells whether the server is there, and if not, since when and why.
func (c *Conn) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaySince.IsZero() {
		return State{Connected: true}
	}
	return State{Since: c.awaySince, Sentence: c.sentence()}
}

// sentence is about a connection that was lost, under the lock.
func (c *Conn) sentence() string {
	text := fmt.Sprintf("not connected to %s since %s", c.where, words.Stamp(c.awaySince))
	if c.tries > 0 {
		text += fmt.Sprintf(", after %s", words.Count(c.tries, "try", "tries"))
	}
	if c.why != nil {
		text += ": " + reason(c.why)
	}
	return text + ": it is tried again for ever"
}

func (c *Conn) lost(err error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	if c.awaySince.IsZero() {
		c.awaySince, c.tries = time.Now(), 0
	}
	if c.parting != nil {
		err = c.parting
	}
	c.why, c.parting = err, nil
	text := c.sentence()
	c.mu.Unlock()
	c.options.Say(text)
	c.server.takeOver(c)
}

// missed notes why a try failed. It is not said each time: status says it.
func (c *Conn) missed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
}

// tried counts tries, and returns how long to wait for the next one. A server that let the
// client in and then refused it is known only from the connection.
func (c *Conn) tried(tries int) time.Duration {
	if nc := c.made.Load(); nc != nil {
		if err := nc.LastError(); err != nil {
			c.missed(err)
		}
	}
	c.mu.Lock()
	c.tries = tries
	c.mu.Unlock()
	return delay(tries)
}

func (c *Conn) found() {
	c.mu.Lock()
	var away time.Duration
	if !c.awaySince.IsZero() {
		away = time.Since(c.awaySince)
	}
	c.awaySince, c.why, c.parting, c.tries = time.Time{}, nil, nil, 0
	c.mu.Unlock()
	c.options.Say(fmt.Sprintf("connected to %s again after %s", c.where, words.Took(away)))
	if c.options.Back != nil {
		c.options.Back(away)
	}
}

// complaint passes on what the server refused, the same only once a minute.
func (c *Conn) complaint(err error) {
	isRefusal := errors.Is(err, nats.ErrPermissionViolation)
	if isRefusal && c.quiet.Load() > 0 {
		return
	}
	text := reason(err)
	now := time.Now()
	c.mu.Lock()
	if isAuth(err) { // it is said with the connection, which the server closes next
		c.parting = err
		c.mu.Unlock()
		return
	}
	known := now.Sub(c.refused[text]) < sayAgain
	if !known {
		c.forget(now)
		c.refused[text] = now
	}
	c.mu.Unlock()
	if known {
		return
	}
	if isRefusal {
		text += ": the server's configuration gives this user's role too few rights"
	}
	c.options.Say(c.where + ": " + text)
}

// Quietly calls do, which asks for more than a role may have, without a sentence about what
// the server refuses meanwhile.
func (c *Conn) Quietly(do func()) {
	c.quiet.Add(1)
	defer c.quiet.Add(-1)
	do()
}

// forget drops what was said long ago.
func (c *Conn) forget(now time.Time) {
	for text, at := range c.refused {
		if now.Sub(at) >= sayAgain {
			delete(c.refused, text)
		}
	}
}

// reason is an error of the client's library without its prefix.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "nats: ") }

// IsAway reports whether an operation failed because the server is away or did not answer
// in time. What it was to do may have happened all the same.
func IsAway(err error) bool {
	for _, away := range []error{
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrNoServers,
		nats.ErrStaleConnection, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	var answer *jetstream.APIError
	return isTimeout(err) || errors.As(err, &answer) && answer.ErrorCode == codeUnavailable
}

// codeUnavailable is what a server says that is starting or ending.
const codeUnavailable jetstream.ErrorCode = 10008
