// Package guild calls the guild of a hosted session: the program that started the session, serves its tools
// over HTTP, and gets reports of its life and end.
//
// A guild may be down or restart at any time, so every call is tried again, with back-off, as long as that
// does no harm. A report ([Client.Running], [Client.Beat], [Client.Record]) may be repeated: the guild
// applies it once. A tool may not: it is called again only if no byte of the call was sent, if the tool only
// reads (GET), or if the guild has promised to recognise the call by its key ([config.Tool.Idempotent]).
package guild

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
)

const (
	// RequestTimeout is how long one request may take. A report gets more, by its size: see [Client.Record].
	RequestTimeout = 30 * time.Second

	patience     = 60 * time.Second // for the attempts at one call
	beatPatience = 10 * time.Second // for the attempts at one beat
)

// Options say which guild a Client talks to, and for which session.
type Options struct {
	URL       string // the guild's address, such as http://127.0.0.1:7471
	SessionID string // sent with each request

	Clock          Clock         // for back-off; nil is the machine's
	RequestTimeout time.Duration // instead of [RequestTimeout], unless 0
	Once           bool          // try each call once, without back-off
}

// Client calls one guild for one session. It may be used by several goroutines.
type Client struct {
	Options
	http  *http.Client
	limit int64 // of a tool's answer, in bytes
}

// New returns a client. Its error is about the URL or the session ID. It sends nothing.
func New(o Options) (*Client, error) {
	if wrong := config.CheckURL(o.URL); wrong != "" {
		return nil, fmt.Errorf("call the guild at %q: its URL %s", o.URL, wrong)
	}
	if o.SessionID == "" {
		return nil, errors.New("call the guild: the session has no id")
	}
	o.URL = strings.TrimRight(o.URL, "/")
	o.Clock, o.RequestTimeout = cmp.Or[Clock](o.Clock, machineClock{}), cmp.Or(o.RequestTimeout, RequestTimeout)
	return &Client{Options: o, http: newHTTP(nil), limit: MaxToolAnswer}, nil
}

// persist makes attempts until one succeeds or fails for good, the patience has run out, or ctx
// ends. It waits 1, 2, 4, 8, 8 … s between attempts. The last wait ends with the patience, and one
// more attempt follows. No attempt is cut short by the patience.
func (c *Client) persist(ctx context.Context, patience time.Duration, attempt func() (again bool, err error)) error {
	waits := &backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: 8 * time.Second}
	waits.Reset()
	start := c.Clock.Now()
	for {
		again, err := attempt()
		if err == nil || !again {
			return err
		}
		passed := c.Clock.Now().Sub(start)
		stopped := context.Cause(ctx)
		if stopped != nil || c.Once || passed >= patience {
			return &Unreachable{For: passed, Last: err, Stopped: stopped}
		}
		if stopped := c.Clock.Sleep(ctx, min(waits.NextBackOff(), patience-passed)); stopped != nil {
			return &Unreachable{For: c.Clock.Now().Sub(start), Last: err, Stopped: stopped}
		}
	}
}

// Clock is the clock for back-off. Tests have their own.
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

const (
	runningRoute = "/api/session/running"
	beatRoute    = "/api/session/heartbeat"
	recordRoute  = "/api/session/record"
)

// Answer is a guild's answer to a report.
type Answer struct {
	SessionID string `json:"sessionId"`
	// Status is the guild's state of a session that has ended there, whatever was reported since.
	Status folder.Status `json:"status"`
	Error  string        `json:"error"` // why a beat was not counted, such as "Session not found"

	// As is the status with which the guild took a terminal record: "failed" for a cancelled session
	// if the guild refuses "cancelled". Empty for other reports.
	As folder.Status `json:"-"`

	OK *bool `json:"ok"`
}

// Running reports that the session runs. The error is a [*Refused] or an [*Unreachable].
func (c *Client) Running(ctx context.Context, b Body) (Answer, error) {
	return c.report(ctx, patience, runningRoute, b)
}

// BeatEvery is how often a guild expects a beat.
const BeatEvery = 30 * time.Second

// Beat reports that the session lives, in at most 10 s. A guild without the session is no error: see [Answer.Error].
func (c *Client) Beat(ctx context.Context) (Answer, error) {
	stopped := errors.New("a beat has 10 s")
	ctx, cancel := context.WithTimeoutCause(ctx, beatPatience, stopped)
	defer cancel()
	b, _ := json.Marshal(map[string]string{"sessionId": c.SessionID}) // strings always have a JSON form
	a, err := c.report(ctx, beatPatience, beatRoute, BodyOf(b))
	if refused, is := errors.AsType[*Refused](err); is && refused.Status == http.StatusOK {
		err = nil
	}
	return a, err
}

// Record reports how the session ended. The error is a [*Refused] or an [*Unreachable], or is why the
// report cannot be read.
//
// A guild that refuses "cancelled" gets "failed" instead. body returns the report with a given status.
// Each attempt has 30 s, and a second more for each 4 MiB of the record.
func (c *Client) Record(ctx context.Context, status folder.Status, body func(as folder.Status) (Body, error)) (Answer, error) {
	a, err := c.record(ctx, status, body)
	refused, away := refusal(err)
	if status == folder.Cancelled && refused != nil && refused.Status/100 == 4 && !away {
		return c.record(ctx, folder.Failed, body)
	}
	return a, err
}

func (c *Client) record(ctx context.Context, as folder.Status, body func(as folder.Status) (Body, error)) (Answer, error) {
	b, err := body(as)
	if err != nil {
		return Answer{}, err
	}
	a, err := c.report(ctx, patience, recordRoute, b)
	a.As = as
	return a, err
}

func (c *Client) report(ctx context.Context, patience time.Duration, route string, body Body) (Answer, error) {
	r := &request{method: http.MethodPost, target: route, body: body, limit: 1 << 20}
	r.timeout = c.RequestTimeout + time.Duration(body.Size/(4<<20))*time.Second
	var reply Answer
	err := c.persist(ctx, patience, func() (bool, error) {
		a, failure := c.attempt(ctx, r)
		var own *unreadable
		switch {
		case failure == nil:
		case errors.As(failure.err, &own):
			return false, own
		case !failure.hope:
			return false, &Unreachable{Last: failure.err}
		default:
			return true, failure.err
		}
		if !a.good() {
			return a.status >= 500, a.refused()
		}
		var err error
		reply, err = c.decode(a)
		return err != nil, err
	})
	if err == nil && reply.OK != nil && !*reply.OK {
		err = &Refused{Status: http.StatusOK, Body: reply.Error}
	}
	return reply, err
}

// decode refuses the answer of another program that has got the guild's port, which is no delivery.
func (c *Client) decode(a answer) (reply Answer, err error) {
	if len(bytes.TrimSpace(a.body)) == 0 {
		return reply, nil
	}
	if err := json.Unmarshal(a.body, &reply); err != nil {
		return Answer{}, fmt.Errorf("the answer is no guild's: HTTP %d: %w", a.status, err)
	}
	if reply.SessionID != "" && reply.SessionID != c.SessionID {
		return Answer{}, fmt.Errorf("the guild's answer is about session %q", reply.SessionID)
	}
	return reply, nil
}

// MaxToolAnswer is the largest answer to a tool call, in bytes.
const MaxToolAnswer = 64 << 20

// Tool calls a tool and returns its answer as text: a JSON string as its contents, other JSON indented by
// two blanks a level, and an empty answer as "". args is a JSON object, or empty for none.
//
// The error's text is for the agent. The error is a [*Refused] (at once, whatever the status), an [*Unreachable] (after
// 60 s of attempts that sent nothing), an [*Unanswered], or is about the call or its answer.
func (c *Client) Tool(ctx context.Context, tool config.Tool, args json.RawMessage) (string, error) {
	r, err := toolRequest(tool, args)
	if err != nil {
		return "", err
	}
	r.timeout, r.limit, r.key = c.RequestTimeout, c.limit, rand.Text()
	var text string
	err = c.persist(ctx, patience, func() (bool, error) {
		a, failure := c.attempt(ctx, r)
		if failure != nil {
			switch repeatable := !failure.sent || tool.Idempotent || tool.Method == http.MethodGet; {
			case failure.hope && repeatable:
				return true, failure.err
			case failure.sent && !errors.Is(failure.err, errTooLong):
				return false, &Unanswered{failure.err}
			}
			return false, failure.err
		}
		if !a.good() {
			return false, a.refused()
		}
		text, err = textOf(a.body)
		return false, err
	})
	return text, err
}

func toolRequest(tool config.Tool, args json.RawMessage) (*request, error) {
	r := &request{method: tool.Method, target: tool.Route()}
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if r.method != http.MethodGet {
		r.body = BodyOf(args)
		return r, nil
	}
	query, err := queryOf(args)
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: the arguments are not a JSON object: %w", tool.Name, err)
	}
	if query != "" {
		r.target += "?" + query
	}
	return r, nil
}

// queryOf encodes an object's members as a query: strings as they are, null not at all, everything else as JSON.
func queryOf(args json.RawMessage) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil {
		return "", err
	}
	query := url.Values{}
	for name, value := range members {
		var text string
		var short bytes.Buffer
		switch {
		case string(value) == "null":
			continue
		case json.Unmarshal(value, &text) == nil:
		case json.Compact(&short, value) == nil: // it is valid
			text = short.String()
		}
		query.Set(name, text)
	}
	return query.Encode(), nil
}

// indentation returns the most blanks that [json.Indent] adds: to deeply nested JSON, thousands for each byte.
func indentation(body []byte) (blanks int) {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			blanks += 2 * depth
		case c == ']' || c == '}':
			depth--
			blanks += 2 * depth
		case c == ',':
			blanks += 2 * depth
		}
	}
	return blanks
}

func textOf(body []byte) (text string, err error) {
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
		return "", nil
	case body[0] == '"':
		err = json.Unmarshal(body, &text)
	case indentation(body) > MaxToolAnswer:
		err = json.Unmarshal(body, new(json.RawMessage))
		text = string(body)
	default:
		var indented bytes.Buffer
		err = json.Indent(&indented, body, "", "  ")
		text = indented.String()
	}
	if err != nil {
		return "", fmt.Errorf("the guild's answer is not JSON: %w", err)
	}
	return text, nil
}
