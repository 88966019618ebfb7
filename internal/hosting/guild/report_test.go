package guild

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	testguild "heartbeat/internal/testing/guild"
)

func runningReport() Running {
	return Running{SessionID: session, StartedAt: "2026-11-22T00:00:00Z", Provider: "claude-code", Cancel: CancelHandle{Kind: "local-pgid", PGID: 4711}}
}

// record sends a record with an empty transcript.
func record(t *testing.T, c *Client, r Record) (Answer, error) {
	r.SessionID = session
	text, err := r.Encode()
	require.NoError(t, err)
	return c.Record(t.Context(), r.Status, func(as folder.Status) (Body, error) {
		if as == r.Status {
			return BodyOf([]byte(text)), nil
		}
		again, err := Restate(text, as, strings.TrimSuffix("cancelled: "+r.Error, ": "))
		return BodyOf([]byte(again)), err
	})
}

func running(t *testing.T) Body {
	text, err := runningReport().Encode()
	require.NoError(t, err)
	return BodyOf([]byte(text))
}

// TestAReportIsAppliedOnce has the guild fail at each step of a report.
func TestAReportIsAppliedOnce(t *testing.T) {
	for _, fault := range []testguild.Fault{
		{Do: testguild.Reset}, {Do: testguild.Answer, Status: 500}, {Do: testguild.Answer, Status: 503},
	} {
		for _, step := range testguild.Steps {
			if fault.Do == testguild.Answer && step == testguild.AmidAnswer {
				continue // a guild has one status
			}
			t.Run(fault.Do+" "+step, func(t *testing.T) {
				g, url := newGuild(t, testguild.Options{})
				fault.Step, fault.Times = step, 2
				fault.On = "running"
				g.Break(fault)
				fault.On = "record"
				g.Break(fault)
				clock := &testguild.Clock{}
				c := newClient(t, url, clock)
				_, err := c.Running(t.Context(), running(t))
				require.NoError(t, err)
				answer, err := record(t, c, Record{Summary: folder.Summary{Status: folder.Completed}})
				require.NoError(t, err)
				assert.Equal(t, folder.Completed, answer.As)
				assert.Equal(t, []int{1, 2, 1, 2}, clock.Seconds())
				s, _ := g.Session(session)
				assert.Equal(t, 1, s.Running.Applied)
				assert.Equal(t, 1, s.Record.Applied)
				assert.Equal(t, 4711, s.PGID)
			})
		}
	}
}

func TestAReportThatIsRefusedIsNotSentAgain(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	for _, status := range []int{400, 401, 403, 404, 408, 429, 302} {
		g.Break(testguild.Fault{Do: testguild.Answer, Status: status})
		clock := &testguild.Clock{}
		_, err := record(t, newClient(t, url, clock), Record{Summary: folder.Summary{Status: folder.Completed}})
		var refused *Refused
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, status, refused.Status)
		assert.Empty(t, clock.Seconds())
	}
}

func TestAGuildThatFailsIsUnreachable(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 503, Times: -1})
	clock := &testguild.Clock{}
	_, err := record(t, newClient(t, url, clock), Record{Summary: folder.Summary{Status: folder.Completed}})
	var away *Unreachable
	require.ErrorAs(t, err, &away)
	assert.Equal(t, time.Minute, away.For)
	require.EqualError(t, err, "Guild HTTP API unreachable after 60000ms: HTTP 503: {\"error\":\"fault 503\"}\n")
}

func TestAGuildThatTakesNoCancelledIsToldTheTruth(t *testing.T) {
	for name, tc := range map[string]struct {
		takes   bool
		reason  string
		as      folder.Status
		becomes string
	}{
		"it does":           {true, "SIGTERM", folder.Cancelled, `"SIGTERM"`},
		"it does not":       {false, "SIGTERM from 1 of \"x\"", folder.Failed, `"cancelled: SIGTERM from 1 of \"x\""`},
		"without a reason":  {false, "", folder.Failed, `"cancelled"`},
		"neither way again": {false, "\u2028\n", folder.Failed, `"cancelled: \u2028\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			g, url := newGuild(t, testguild.Options{Cancelled: tc.takes})
			answer, err := record(t, newClient(t, url, &testguild.Clock{}), Record{Summary: folder.Summary{Status: folder.Cancelled, Error: tc.reason}})
			require.NoError(t, err)
			assert.Equal(t, tc.as, answer.As)
			s, _ := g.Session(session)
			assert.Equal(t, string(tc.as), s.Status)
			assert.JSONEq(t, tc.becomes, string(s.Report["error"]))
			assert.Equal(t, 1, s.Record.Applied)
		})
	}
}

// TestNobodyElsesAnswerCounts: another program may have the guild's port.
func TestNobodyElsesAnswerCounts(t *testing.T) {
	for _, said := range []string{"<html>It works!</html>", `{"ok":true,"sessionId":"another"}`, `[]`, `{"ok":"yes"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, said)
		}))
		clock := &testguild.Clock{}
		_, err := record(t, newClient(t, server.URL, clock), Record{Summary: folder.Summary{Status: folder.Completed}})
		var away *Unreachable
		require.ErrorAs(t, err, &away, said)
		assert.Len(t, clock.Seconds(), 10)
		server.Close()
	}
	for _, said := range []string{"", "{}", `{"ok":true}`, `{"ok":true,"sessionId":"` + session + `","status":"failed"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, said)
		}))
		_, err := record(t, newClient(t, server.URL, &testguild.Clock{}), Record{Summary: folder.Summary{Status: folder.Completed}})
		require.NoError(t, err, said)
		server.Close()
	}
}

func TestAnAnswerThatSaysNoIsARefusal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"ok":false,"error":"disk full"}`)
	}))
	defer server.Close()
	_, err := record(t, newClient(t, server.URL, &testguild.Clock{}), Record{Summary: folder.Summary{Status: folder.Cancelled}})
	require.EqualError(t, err, "HTTP 200: disk full")
}

func TestABodyThatCannotBeReadIsNotTheGuildsFault(t *testing.T) {
	_, url := newGuild(t, testguild.Options{})
	clock := &testguild.Clock{}
	_, err := newClient(t, url, clock).Running(t.Context(), Body{Open: func() io.Reader { return failing{} }, Size: 10})
	require.ErrorContains(t, err, "input/output error")
	assert.Empty(t, clock.Seconds())
}

type failing struct{}

func (failing) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "letter", Err: errors.New("input/output error")}
}

func TestABeat(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	c := newClient(t, url, &testguild.Clock{})
	answer, err := c.Beat(t.Context())
	require.NoError(t, err)
	assert.Equal(t, folder.Pending, answer.Status)
	s, _ := g.Session(session)
	assert.Equal(t, 1, s.Beats)

	other, err := New(Options{URL: url, SessionID: "unknown"})
	require.NoError(t, err)
	answer, err = other.Beat(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Session not found", answer.Error)

	clock := &testguild.Clock{}
	_, err = newClient(t, "http://"+newPort(t).address, clock).Beat(t.Context())
	var away *Unreachable
	require.ErrorAs(t, err, &away)
	assert.Equal(t, []int{1, 2, 4, 3}, clock.Seconds())
}

func TestWhatAReportSays(t *testing.T) {
	r := runningReport()
	r.Metadata = json.RawMessage(`{"a":1}`)
	r.Extra = map[string]json.RawMessage{"writId": json.RawMessage(`"w-1"`), "sessionId": json.RawMessage(`"forged"`), "status": json.RawMessage(`"completed"`)}
	text, err := r.Encode()
	require.NoError(t, err)
	assert.Equal(t, `{"sessionId":"ses-1","startedAt":"2026-11-22T00:00:00Z","provider":"claude-code","metadata":{"a":1},`+
		`"cancelHandle":{"kind":"local-pgid","pgid":4711},"writId":"w-1"}`, text)

	cache := int64(0)
	record := Record{
		Summary:   folder.Summary{Status: folder.Failed, Error: "killed", CostUSD: new(0.01), TokenUsage: &folder.TokenUsage{Input: 1, Output: 2, CacheRead: &cache}, Output: "done <here>", ProviderSessionID: "p-1"},
		SessionID: session, ExitCode: 0, Signal: "SIGKILL",
		TerminationTag:        &TerminationTag{Kind: "rate-limit", Source: "ndjson-result", Detail: "rate_limit"},
		TerminationDiagnostic: &TerminationDiagnostic{ExitCode: 1, StderrExcerpt: "oops"},
		Entries:               &Entries{Entries: folder.Entries{Answered: 1, InFlight: 1}, Each: []folder.Entry{{ID: "e1", Fate: "answered"}}},
		Result:                &folder.ResultLine{Subtype: "success", NumTurns: 3},
		Extra:                 r.Extra,
	}
	head, err := record.Encode()
	require.NoError(t, err)
	assert.JSONEq(t, `{"sessionId":"ses-1","status":"failed","exitCode":1,"signal":"SIGKILL","error":"killed","costUsd":0.0100,
		"tokenUsage":{"inputTokens":1,"outputTokens":2,"cacheReadTokens":0},"output":"done <here>","providerSessionId":"p-1",
		"terminationTag":{"kind":"rate-limit","source":"ndjson-result","detail":"rate_limit"},
		"terminationDiagnostic":{"exitCode":1,"stderrExcerpt":"oops"},
		"entries":{"answered":1,"queued":0,"inFlight":1,"deadLettered":0,"each":[{"id":"e1","fate":"answered"}]},
		"result":{"subtype":"success","isError":false,"numTurns":3},"writId":"w-1"}`, head)

	record = Record{Summary: folder.Summary{Status: folder.Completed}, SessionID: session, TerminationDiagnostic: &TerminationDiagnostic{}}
	head, err = record.Encode()
	require.NoError(t, err)
	assert.Equal(t, `{"sessionId":"ses-1","status":"completed","exitCode":0}`, head)
}

// TestHTTPS: a guild that cannot show who it is gets nothing, and is not waited for.
func TestHTTPS(t *testing.T) {
	g, err := testguild.Open(testguild.Options{})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(g)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the first client
	server.StartTLS()
	defer server.Close()
	clock := &testguild.Clock{}
	c := newClient(t, server.URL, clock)
	_, err = record(t, c, Record{Summary: folder.Summary{Status: folder.Completed}})
	var away *Unreachable
	require.ErrorAs(t, err, &away)
	require.ErrorContains(t, err, "certificate")
	assert.Empty(t, clock.Seconds())
	_, known := g.Session(session)
	assert.False(t, known)

	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	c.http = newHTTP(&tls.Config{RootCAs: authorities})
	_, err = record(t, c, Record{Summary: folder.Summary{Status: folder.Completed}})
	require.NoError(t, err)
	s, _ := g.Session(session)
	assert.Equal(t, 1, s.Record.Applied)
}
