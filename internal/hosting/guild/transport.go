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
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// newHTTP returns a client that ignores the environment and follows no redirect: only the guild may get a session's ID.
//
// Each request has its own connection, because net/http repeats requests on kept ones by itself.
func newHTTP(config *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig:        config, // nil means the system's authorities
			DisableKeepAlives:      true,
			DisableCompression:     true, // an answer is as large as it looks
			MaxResponseHeaderBytes: 1 << 20,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one HTTP request, which may be sent several times.
type request struct {
	method  string
	target  string // the route, with the query
	key     string // the Idempotency-Key; may be empty
	body    Body   // the zero value for none
	timeout time.Duration
	limit   int64 // of the answer, in bytes
}

// answer is a guild's answer, whatever its status.
type answer struct {
	status int
	body   []byte
}

// broken is an attempt without a complete answer.
type broken struct {
	err  error
	sent bool // there was a connection, so a byte of the request may have been sent
	hope bool // another attempt may succeed
}

var errTooLong = errors.New("the guild's answer is over the limit")

func (c *Client) attempt(ctx context.Context, r *request) (answer, *broken) {
	var sent atomic.Bool
	slow := fmt.Errorf("no answer within %s", r.timeout)
	ctx, cancel := context.WithTimeoutCause(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}), r.timeout, slow)
	defer cancel()
	a, err := c.exchange(ctx, r)
	if err == nil {
		return a, nil
	}
	hope := !errors.As(err, new(*tls.CertificateVerificationError)) && !errors.As(err, new(*net.AddrError)) && !errors.Is(err, errTooLong)
	if stopped := context.Cause(ctx); stopped != nil {
		err = stopped
	}
	if wrapped, is := errors.AsType[*url.Error](err); is { // whose text repeats method and URL
		err = wrapped.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the guild closed the connection: %w", err)
	}
	return answer{}, &broken{err: err, sent: sent.Load(), hope: hope}
}

func (c *Client) exchange(ctx context.Context, r *request) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.URL+r.target, nil)
	if err != nil {
		return answer{}, err
	}
	if r.body.Open != nil {
		body := &reading{Reader: r.body.Open(), closed: make(chan struct{})}
		req.Body, req.ContentLength = body, r.body.Size
		defer func() { <-body.closed }() // the caller may close the body's file
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", c.SessionID)
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
		limit = 4 * excerpt // only an excerpt of it is shown
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
		err = fmt.Errorf("%w of %d MiB", errTooLong, limit>>20)
	}
	a.body = b.Bytes()
	return a, err
}

func (a answer) good() bool { return a.status >= 200 && a.status < 300 }

func (a answer) refused() *Refused {
	return &Refused{Status: a.status, Body: fmt.Sprintf("%.*s", excerpt, strings.ToValidUTF8(string(a.body), "\uFFFD"))}
}

// excerpt is how many characters of a refusal's body are kept.
const excerpt = 500

// Refused is a guild's refusal of a request that reached it.
type Refused struct {
	Status int    // the HTTP status; 200 if the answer itself says "ok": false
	Body   string // at most 500 characters of the answer
}

func (r *Refused) Error() string { return "HTTP " + strconv.Itoa(r.Status) + ": " + r.Body }

// Unreachable means that no attempt reached the guild. It wraps the last error, and what ended the attempts early.
type Unreachable struct {
	For     time.Duration // from the first attempt until the caller gave up
	Last    error         // of the last attempt; a *Refused if that was a status from 500 on
	Stopped error         // the context's cause, if that ended the attempts; else nil
}

func (u *Unreachable) Error() string {
	return "Guild HTTP API unreachable after " + strconv.FormatInt(u.For.Milliseconds(), 10) + "ms: " + u.Last.Error()
}

func (u *Unreachable) Unwrap() []error {
	if u.Stopped == nil {
		return []error{u.Last}
	}
	return []error{u.Last, u.Stopped}
}

// refusal returns the [*Refused] in an error, nil for none, and whether the error is an [*Unreachable].
func refusal(err error) (refused *Refused, away bool) {
	refused, _ = errors.AsType[*Refused](err)
	_, away = errors.AsType[*Unreachable](err)
	return refused, away
}

// Unanswered means that a tool call reached the guild and got no answer. It is not repeated: the tool may have run.
type Unanswered struct{ Last error }

func (u *Unanswered) Error() string {
	return fmt.Sprintf("the guild did not answer the call, and may have carried it out: %v", u.Last)
}

func (u *Unanswered) Unwrap() error { return u.Last }
