package guild

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	RunIfAsked()
	os.Exit(m.Run())
}

func post(t *testing.T, url, session, body string) (int, string) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("X-Session-Id", session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(said)
}

const (
	running = `{"sessionId":"s","startedAt":"2026-01-01T00:00:00Z","provider":"claude-code","cancelHandle":{"kind":"local-pgid","pgid":7}}`
	record  = `{"sessionId":"s","status":"completed","exitCode":0,"transcript":[{"type":"user"}]}`
)

func TestATerminalStateIsFinal(t *testing.T) {
	g, err := Open(Options{})
	require.NoError(t, err)
	server := httptest.NewServer(g)
	defer server.Close()
	status, said := post(t, server.URL+"/api/session/record", "s", record)
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"ok":true,"sessionId":"s","status":"completed"}`, said)
	status, said = post(t, server.URL+"/api/session/record", "s", strings.Replace(record, "completed", "failed", 1))
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"ok":true,"sessionId":"s","status":"completed"}`, said)
	status, said = post(t, server.URL+"/api/session/running", "s", running)
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"ok":true,"sessionId":"s","status":"completed"}`, said)
	s, _ := g.Session("s")
	assert.Equal(t, Count{Applied: 1, Repeated: 1}, s.Record)
	assert.Equal(t, Count{Repeated: 1}, s.Running)
	assert.Equal(t, 1, s.Messages)
}

func TestWhatTheBabysittersGuildRefuses(t *testing.T) {
	g, err := Open(Options{Strict: true})
	require.NoError(t, err)
	server := httptest.NewServer(g)
	defer server.Close()
	g.AddTool(Tool{Name: "writ-list", Method: "GET"})
	status, _ := post(t, server.URL+"/api/session/running", "s", running)
	assert.Equal(t, 403, status, "it is not expected")
	g.Expect("s")
	status, said := post(t, server.URL+"/api/session/record", "s", strings.Replace(record, "completed", "cancelled", 1))
	assert.Equal(t, 400, status, said)
	status, _ = post(t, server.URL+"/api/session/running", "", running)
	assert.Equal(t, 401, status)
	status, _ = post(t, server.URL+"/api/session/running", "s", strings.Replace(running, "local-pgid", "container", 1))
	assert.Equal(t, 400, status)
	status, _ = post(t, server.URL+"/api/writ/list", "s", "{}")
	assert.Equal(t, 404, status, "the tool has another method")
	status, _ = post(t, server.URL+"/api/session/record", "s", record)
	assert.Equal(t, 200, status)
	status, _ = post(t, server.URL+"/api/session/record", "s", record)
	assert.Equal(t, 403, status, "it is over")
}

func TestAKilledGuildForgetsNothing(t *testing.T) {
	p, err := Launch(Options{State: filepath.Join(t.TempDir(), "state")})
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill() })
	require.NoError(t, p.Expect("s", "signal"))
	require.NoError(t, p.AddTool(Tool{Name: "signal"}))
	status, said := post(t, p.URL()+"/api/signal", "s", `{"a":1}`)
	assert.Equal(t, 200, status, said)
	require.NoError(t, p.Break(Fault{On: "record", Step: WhenApplied, Do: Die}))
	status, _ = post(t, p.URL()+"/api/session/record", "s", record)
	assert.Zero(t, status)
	p.Wait()
	url := p.URL()
	require.NoError(t, p.Start())
	assert.Equal(t, url, p.URL())
	status, _ = post(t, p.URL()+"/api/session/record", "s", record)
	assert.Equal(t, 200, status)
	sessions, err := p.Sessions()
	require.NoError(t, err)
	assert.Equal(t, Count{Applied: 1, Repeated: 1}, sessions["s"].Record)
	assert.Equal(t, map[string]int{"signal": 1}, sessions["s"].Calls)
	status, _ = post(t, p.URL()+"/api/signal", "s", `{}`)
	assert.Equal(t, 403, status, "it is over")
}

func TestFaults(t *testing.T) {
	tests := map[string]struct {
		fault   Fault
		status  int
		applied int
	}{
		"answer":         {Fault{Do: Answer, Status: 503}, 503, 0},
		"reset":          {Fault{Step: WhenRead, Do: Reset}, 0, 0},
		"reset, applied": {Fault{Step: WhenApplied, Do: Reset}, 0, 1},
		"half an answer": {Fault{Step: AmidAnswer, Do: Reset}, 0, 1},
		"slow":           {Fault{Do: Slow, Delay: 1}, 200, 1},
		"another one":    {Fault{On: "running", Do: Answer, Status: 503}, 200, 1},
		"a later one":    {Fault{Do: Answer, Status: 503, Skip: 1}, 200, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := Open(Options{})
			require.NoError(t, err)
			server := httptest.NewServer(g)
			defer server.Close()
			g.Break(tc.fault)
			status, said := post(t, server.URL+"/api/session/record", "s", record)
			assert.Equal(t, tc.status, status, said)
			s, _ := g.Session("s")
			assert.Equal(t, tc.applied, s.Record.Applied)
		})
	}
}
