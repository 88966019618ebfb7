package guild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"heartbeat/internal/hosting/folder"
)

// The routes of the reports.
const (
	runningRoute = "/api/session/running"
	beatRoute    = "/api/session/heartbeat"
	recordRoute  = "/api/session/record"
)

// Answer is a guild's answer to a report.
type Answer struct {
	SessionID string `json:"sessionId"`
	// Status is the guild's state of the session, if given. A guild gives it once the session has
	// ended there, whatever was reported since.
	Status folder.Status `json:"status"`
	// Error is why a beat was not counted, such as "Session not found".
	Error string `json:"error"`

	// As is the status that a terminal record was taken with: "failed" for a cancelled session if
	// the guild takes no "cancelled". Empty for other reports.
	As folder.Status `json:"-"`

	OK *bool `json:"ok"`
}

// Running reports that the session runs. The error is a [*Refused] or an [*Unreachable].
func (c *Client) Running(ctx context.Context, b Body) (Answer, error) {
	return c.within(ctx, patience, runningRoute, b)
}

// BeatEvery is how often a guild expects a beat.
const BeatEvery = 30 * time.Second

// Beat tells the guild that the session lives, in at most 10 s for all attempts. A guild that does
// not know the session is no error: see [Answer.Error].
func (c *Client) Beat(ctx context.Context) (Answer, error) {
	stopped := errors.New("a beat has 10 s")
	ctx, cancel := context.WithTimeoutCause(ctx, beatPatience, stopped)
	defer cancel()
	b, err := json.Marshal(map[string]string{"sessionId": c.session})
	if err != nil {
		return Answer{}, fmt.Errorf("report that the session lives: %w", err)
	}
	a, err := c.within(ctx, beatPatience, beatRoute, BodyOf(b))
	if refused, is := errors.AsType[*Refused](err); is && refused.Status == http.StatusOK {
		err = nil
	}
	return a, err
}

// Record reports how the session ended. The error is a [*Refused] or an [*Unreachable], or says why
// the report cannot be read.
//
// A guild that refuses "cancelled" is sent "failed": body returns the report with that status. Each
// attempt has 30 s, and a second more for each 4 MiB of the record.
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
	a, err := c.within(ctx, patience, recordRoute, b)
	a.As = as
	return a, err
}

func (c *Client) within(ctx context.Context, patience time.Duration, route string, body Body) (Answer, error) {
	r := &request{method: http.MethodPost, target: route, body: body, limit: 1 << 20}
	r.timeout = c.timeout + time.Duration(body.Size/(4<<20))*time.Second
	var said Answer
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
		said, err = c.understand(a)
		return err != nil, err
	})
	if err == nil && said.OK != nil && !*said.OK {
		return said, &Refused{Status: http.StatusOK, Body: said.Error}
	}
	return said, err
}

// understand tells a guild's answer from that of another program that got its port: a stranger's
// word never counts as delivery.
func (c *Client) understand(a answer) (said Answer, err error) {
	if len(bytes.TrimSpace(a.body)) == 0 {
		return said, nil
	}
	if err := json.Unmarshal(a.body, &said); err != nil {
		return Answer{}, fmt.Errorf("the answer is no guild's: HTTP %d: %w", a.status, err)
	}
	if said.SessionID != "" && said.SessionID != c.session {
		return Answer{}, fmt.Errorf("the guild's answer is about session %q", said.SessionID)
	}
	return said, nil
}
