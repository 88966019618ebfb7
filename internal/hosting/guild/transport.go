package guild

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// newHTTP makes a client that takes nothing from the environment and follows no
// redirect: a session's id goes to the guild alone.
//
// Each request has a connection of its own. On a kept connection net/http repeats a
// request by itself, and what was sent on it cannot be told from earlier requests.
func newHTTP(config *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	secure := &tls.Dialer{NetDialer: dialer, Config: config} // without one, the system's authorities count
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            watched(dialer.DialContext),
			DialTLSContext:         watched(secure.DialContext),
			DisableKeepAlives:      true,
			DisableCompression:     true, // an answer is as large as it looks
			MaxResponseHeaderBytes: 1 << 20,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// sentKey finds the flag, in the context of a request, that says whether a byte of
// the request was sent.
type sentKey struct{}

func watched(dial dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		sent, _ := ctx.Value(sentKey{}).(*atomic.Bool)
		return &watchedConn{Conn: conn, sent: sent}, nil
	}
}

type watchedConn struct {
	net.Conn
	sent *atomic.Bool
}

func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 && c.sent != nil {
		c.sent.Store(true)
	}
	return n, err
}

// request is one HTTP request, which may be sent several times.
type request struct {
	method  string
	target  string   // the route, with the query
	key     string   // the Idempotency-Key; may be empty
	body    *payload // nil for none
	timeout time.Duration
	limit   int64 // of the answer, in bytes
}

// answer is what a guild said, whatever its status.
type answer struct {
	status int
	body   []byte
}

// broken is an attempt that got no answer, or no whole one.
type broken struct {
	err  error
	sent bool // a byte of the request reached the connection
	hope bool // another attempt may get further
}

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// tooLong is an answer that is over its limit.
type tooLong struct{ limit int64 }

func (t *tooLong) Error() string {
	return fmt.Sprintf("the guild's answer is over the limit of %d MiB", t.limit>>20)
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, r *request) (answer, *broken) {
	var sent atomic.Bool
	slow := fmt.Errorf("no answer within %s", r.timeout)
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, sentKey{}, &sent), r.timeout, slow)
	defer cancel()
	a, err := c.exchange(ctx, r)
	if err == nil {
		return a, nil
	}
	hope := mayPass(err)
	if stopped := context.Cause(ctx); stopped != nil {
		err = stopped
	}
	return answer{}, &broken{err: plain(err), sent: sent.Load(), hope: hope}
}

func (c *Client) exchange(ctx context.Context, r *request) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.target, nil)
	if err != nil {
		return answer{}, err
	}
	if r.body != nil {
		body := r.body.read()
		req.Body, req.ContentLength = body, r.body.size
		defer func() { <-body.closed }() // the caller may close the body's file
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", c.session)
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	return read(resp, r.limit)
}

func read(resp *http.Response, limit int64) (answer, error) {
	defer resp.Body.Close() // the connection is not used again
	a := answer{status: resp.StatusCode}
	if !a.good() {
		limit = 4 * excerpt // of which only an excerpt is shown
		var err error
		a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit))
		if len(a.body) > 0 || a.status < 500 {
			err = nil // the status says enough
		}
		return a, err
	}
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= limit {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(b.Len()) > limit {
		err = &tooLong{limit}
	}
	a.body = b.Bytes()
	return a, err
}

func (a answer) good() bool { return a.status >= 200 && a.status < 300 }

func (a answer) refused() *Refused {
	text := strings.ToValidUTF8(string(a.body), "\uFFFD")
	if utf8.RuneCountInString(text) > excerpt {
		text = string([]rune(text)[:excerpt])
	}
	return &Refused{Status: a.status, Body: text}
}

// plain takes away the words of net/http that repeat method and URL.
func plain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the guild closed the connection: %w", err)
	}
	return err
}

// mayPass reports whether an error can go away by itself.
func mayPass(err error) bool {
	var certificate *tls.CertificateVerificationError
	var address *net.AddrError
	var long *tooLong
	return !errors.As(err, &certificate) && !errors.As(err, &address) && !errors.As(err, &long)
}
