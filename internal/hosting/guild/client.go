// Package guild talks to the guild of a hosted session: the program that started the session,
// serves its tools over HTTP, and is told how the session lives and ends.
//
// A guild may be down or restart at any time, so every call backs off and tries again for as long as that
// can do no harm. A report ([Client.Running], [Client.Beat], [Client.Record]) may be repeated: the guild
// applies it once. A tool may not: it is called again only if no byte of the call was sent, if it only
// reads (GET), or if the guild promised to recognise the call by its key ([Tool.Idempotent]).
package guild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"heartbeat/internal/hosting/config"
)

// How long calls may take.
const (
	// RequestTimeout is how long one request may take. A report gets more, by its size: see
	// [Client.Record].
	RequestTimeout = 30 * time.Second

	patience     = 60 * time.Second // for the attempts at one call
	beatPatience = 10 * time.Second // for the attempts at one beat
)

// Options say which guild a Client talks to, and for which session.
type Options struct {
	// URL is the guild's address, such as http://127.0.0.1:7471.
	URL string
	// SessionID is sent with each request: the guild knows the session by it.
	SessionID string

	// Clock is the clock for back-off. Nil is the machine's.
	Clock Clock
	// RequestTimeout replaces [RequestTimeout] if it is not 0.
	RequestTimeout time.Duration
	// Once tries each call once, without back-off.
	Once bool
}

// Client calls one guild for one session. It may be used by several goroutines.
type Client struct {
	base    string
	session string
	http    *http.Client
	clock   Clock
	timeout time.Duration
	limit   int64 // of a tool's answer, in bytes
	once    bool
}

// New returns a client, or says what is wrong with the URL or the session ID. It sends nothing.
func New(o Options) (*Client, error) {
	if wrong := config.CheckURL(o.URL); wrong != "" {
		return nil, fmt.Errorf("call the guild at %q: its URL %s", o.URL, wrong)
	}
	if o.SessionID == "" {
		return nil, errors.New("call the guild: the session has no id")
	}
	return &Client{
		base: strings.TrimRight(o.URL, "/"), session: o.SessionID, http: newHTTP(nil), limit: MaxToolAnswer, once: o.Once,
		clock: cmp.Or[Clock](o.Clock, machineClock{}), timeout: cmp.Or(o.RequestTimeout, RequestTimeout),
	}, nil
}

// persist makes attempts until one succeeds or fails for good, the patience is used up, or ctx
// ends. It waits 1, 2, 4, 8, 8 … s between attempts; the last wait is cut short to end with the
// patience, and one more attempt follows. The end of the patience does not cut an attempt short.
func (c *Client) persist(ctx context.Context, patience time.Duration, attempt func() (again bool, err error)) error {
	waits := &backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: 8 * time.Second}
	waits.Reset()
	start := c.clock.Now()
	for {
		again, err := attempt()
		if err == nil || !again {
			return err
		}
		passed := c.clock.Now().Sub(start)
		stopped := context.Cause(ctx)
		if stopped != nil || c.once || passed >= patience {
			return &Unreachable{For: passed, Last: err, Stopped: stopped}
		}
		if stopped := c.clock.Sleep(ctx, min(waits.NextBackOff(), patience-passed)); stopped != nil {
			return &Unreachable{For: c.clock.Now().Sub(start), Last: err, Stopped: stopped}
		}
	}
}

// Clock is the clock for back-off. Tests bring their own.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the context's cause once ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
