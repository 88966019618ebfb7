package guild

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// How long calls may take.
const (
	// RequestTimeout is how long one request may take. A report gets more, by its
	// size: see [Client.Record].
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

	// Clock is the time that back-off goes by. Nil is the machine's.
	Clock Clock
	// RequestTimeout replaces [RequestTimeout] if it is not 0.
	RequestTimeout time.Duration
	// Once has each call tried once, without back-off.
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

// New returns a client, or says why the URL or the session id is none. It sends
// nothing.
func New(o Options) (*Client, error) {
	base, err := baseOf(o.URL)
	if err != nil {
		return nil, err
	}
	if o.SessionID == "" {
		return nil, errors.New("call the guild: the session has no id")
	}
	c := &Client{base: base, session: o.SessionID, http: newHTTP(nil), clock: o.Clock, timeout: o.RequestTimeout, limit: MaxToolAnswer, once: o.Once}
	if c.clock == nil {
		c.clock = machineClock{}
	}
	if c.timeout == 0 {
		c.timeout = RequestTimeout
	}
	return c, nil
}

func baseOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		var wrong *url.Error
		if errors.As(err, &wrong) {
			err = wrong.Err
		}
		return "", fmt.Errorf("call the guild at %q: it is not a URL: %w", raw, err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("call the guild at %q: the URL must start with http:// or https://", raw)
	case u.Hostname() == "":
		return "", fmt.Errorf("call the guild at %q: the URL names no host", raw)
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("call the guild at %q: the URL may have no query and no fragment", raw)
	}
	return strings.TrimRight(u.String(), "/"), nil
}
