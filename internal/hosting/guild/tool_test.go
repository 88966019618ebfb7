package guild

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
	testguild "heartbeat/internal/testing/guild"
)

func TestToolSendsWhatTheGuildExpects(t *testing.T) {
	tests := map[string]struct {
		tool   config.Tool
		args   string
		method string
		target string
		body   string
	}{
		"a group and an action": {config.Tool{Name: "writ-link-kinds", Method: "POST"}, `{"a":1}`, "POST", "/api/writ/link-kinds", `{"a":1}`},
		"no hyphen":             {config.Tool{Name: "signal", Method: "POST"}, ``, "POST", "/api/signal", `{}`},
		"null":                  {config.Tool{Name: "signal", Method: "POST"}, `null`, "POST", "/api/signal", `{}`},
		"delete":                {config.Tool{Name: "writ-drop", Method: "DELETE"}, `{"id":"x"}`, "DELETE", "/api/writ/drop", `{"id":"x"}`},
		"get": {config.Tool{Name: "writ-list", Method: "GET"}, ` {"b":"x y&z","a":1.50,"n":null,"t":true,"l":[1, 2],"o":{"k": "v"}} `,
			"GET", "/api/writ/list?a=1.50&b=x+y%26z&l=%5B1%2C2%5D&o=%7B%22k%22%3A%22v%22%7D&t=true", ""},
		"get, a name twice":  {config.Tool{Name: "writ-list", Method: "GET"}, `{"a":1,"b":2,"a":3}`, "GET", "/api/writ/list?a=3&b=2", ""},
		"get, no arguments":  {config.Tool{Name: "writ-list", Method: "GET"}, ``, "GET", "/api/writ/list", ""},
		"below another path": {config.Tool{Name: "signal", Method: "POST"}, ``, "POST", "/api/signal", `{}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				assert.Equal(t, tc.method, r.Method)
				assert.Equal(t, tc.target, r.RequestURI)
				assert.Equal(t, tc.body, string(body))
				assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
				assert.Equal(t, session, r.Header.Get("X-Session-Id"))
				assert.NotEmpty(t, r.Header.Get("Idempotency-Key"))
				_, _ = io.WriteString(w, `{"b":1,"a":[]}`)
			}))
			defer server.Close()
			text, err := newClient(t, server.URL+"/", &testguild.Clock{}).Tool(t.Context(), tc.tool, json.RawMessage(tc.args))
			require.NoError(t, err)
			assert.Equal(t, "{\n  \"b\": 1,\n  \"a\": []\n}", text)
		})
	}
}

func TestToolRefusesWhatIsNoCall(t *testing.T) {
	tests := map[string]struct {
		tool config.Tool
		args string
		want string
	}{
		"a list":      {config.Tool{Name: "a", Method: "GET"}, `[1]`, "not a JSON object"},
		"cut off":     {config.Tool{Name: "a", Method: "GET"}, `{"a":1`, "not a JSON object"},
		"two objects": {config.Tool{Name: "a", Method: "GET"}, `{} {}`, "not a JSON object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, "http://127.0.0.1:1", &testguild.Clock{}).Tool(t.Context(), tc.tool, json.RawMessage(tc.args))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestToolAnswers(t *testing.T) {
	long := strings.Repeat("ä", 600)
	deep := strings.Repeat(`["[\"",`, 9000) + "0" + strings.Repeat("]", 9000) // indents would be 300 MiB
	tests := map[string]struct {
		status int
		body   string
		want   string
		err    string
	}{
		"a string":           {200, `"two\nlines"`, "two\nlines", ""},
		"a number":           {200, `12345678901234567890`, "12345678901234567890", ""},
		"with indents":       {200, `{"a":[1,"]"]}`, "{\n  \"a\": [\n    1,\n    \"]\"\n  ]\n}", ""},
		"nested deeply":      {200, deep, deep, ""},
		"nothing":            {204, ``, "", ""},
		"no JSON":            {200, `<html>`, "", "the guild's answer is not JSON: invalid character '<' looking for beginning of value"},
		"refused":            {400, `{"error":"no","details":[]}`, "", `HTTP 400: {"error":"no","details":[]}`},
		"a long refusal":     {404, long, "", "HTTP 404: " + long[:1000]},
		"the guild's mishap": {500, `{"error":"x"}`, "", `HTTP 500: {"error":"x"}`},
		"busy":               {503, ``, "", "HTTP 503: "},
		"elsewhere":          {307, `moved`, "", "HTTP 307: moved"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			text, err := newClient(t, server.URL, &testguild.Clock{}).Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, nil)
			assert.Equal(t, tc.want, text)
			assert.Equal(t, 1, requests)
			if tc.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.err)
		})
	}
}

func TestAToolWaitsForItsGuild(t *testing.T) {
	port := newPort(t)
	clock := &testguild.Clock{}
	_, err := newClient(t, "http://"+port.address, clock).Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, nil)
	require.EqualError(t, err, "Guild HTTP API unreachable after 60000ms: dial tcp "+port.address+": connect: connection refused")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Equal(t, []int{1, 2, 4, 8, 8, 8, 8, 8, 8, 5}, clock.Seconds())

	g, err := testguild.Open(testguild.Options{})
	require.NoError(t, err)
	g.Expect(session, "signal")
	g.AddTool(testguild.Tool{Name: "signal"})
	server := &http.Server{Handler: g}
	defer server.Close()
	clock = &testguild.Clock{Woken: func(n int) {
		if n == 3 {
			l := port.listen(t)
			go func() { _ = server.Serve(l) }() // until it is closed
		}
	}}
	text, err := newClient(t, "http://"+port.address, clock).Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, json.RawMessage(`"x"`))
	require.NoError(t, err)
	assert.Equal(t, "x", text)
	assert.Equal(t, []int{1, 2, 4}, clock.Seconds())
	s, _ := g.Session(session)
	assert.Equal(t, 1, s.Calls["signal"])
}

func TestAToolThatMayHaveRunIsNotCalledAgain(t *testing.T) {
	for _, step := range testguild.Steps {
		t.Run(step, func(t *testing.T) {
			g, url := newGuild(t, testguild.Options{})
			g.Break(testguild.Fault{On: "tool", Step: step, Do: testguild.Reset})
			clock := &testguild.Clock{}
			_, err := newClient(t, url, clock).Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, nil)
			var unanswered *Unanswered
			require.ErrorAs(t, err, &unanswered)
			assert.ErrorContains(t, err, "the guild did not answer the call, and may have carried it out: ")
			assert.Empty(t, clock.Seconds())
			s, _ := g.Session(session)
			assert.LessOrEqual(t, s.Calls["signal"], 1)
		})
	}
}

func TestAToolWithAKeyIsCalledAgain(t *testing.T) {
	for _, step := range testguild.Steps {
		t.Run(step, func(t *testing.T) {
			g, url := newGuild(t, testguild.Options{})
			g.AddTool(testguild.Tool{Name: "signal", Keyed: true})
			g.Break(testguild.Fault{On: "tool", Step: step, Do: testguild.Reset, Times: 3})
			clock := &testguild.Clock{}
			text, err := newClient(t, url, clock).Tool(t.Context(), config.Tool{Name: "signal", Method: "POST", Idempotent: true}, json.RawMessage(`{"a":1}`))
			require.NoError(t, err)
			assert.JSONEq(t, `{"a":1}`, text)
			assert.Equal(t, []int{1, 2, 4}, clock.Seconds())
			s, _ := g.Session(session)
			assert.Equal(t, 1, s.Calls["signal"])
		})
	}
}

// What only reads may be asked twice.
func TestAToolThatReadsIsCalledAgain(t *testing.T) {
	for _, step := range testguild.Steps {
		t.Run(step, func(t *testing.T) {
			g, url := newGuild(t, testguild.Options{})
			g.AddTool(testguild.Tool{Name: "signal", Method: "GET"})
			g.Break(testguild.Fault{On: "tool", Step: step, Do: testguild.Reset, Times: 3})
			clock := &testguild.Clock{}
			text, err := newClient(t, url, clock).Tool(t.Context(), config.Tool{Name: "signal", Method: "GET"}, json.RawMessage(`{"a":1}`))
			require.NoError(t, err)
			assert.JSONEq(t, `{"a":"1"}`, text)
			assert.Equal(t, []int{1, 2, 4}, clock.Seconds())
		})
	}
}

func TestAToolHasItsTime(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	g.Break(testguild.Fault{On: "tool", Step: testguild.WhenApplied, Do: testguild.Hang})
	c, err := New(Options{URL: url, SessionID: session, Clock: &testguild.Clock{}, RequestTimeout: time.Second})
	require.NoError(t, err)
	_, err = c.Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, nil)
	require.EqualError(t, err, "the guild did not answer the call, and may have carried it out: no answer within 1s")
}

func TestAToolStopsWithItsContext(t *testing.T) {
	stop := errors.New("the session is cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	clock := &testguild.Clock{Woken: func(n int) {
		if n == 2 {
			cancel(stop)
		}
	}}
	_, err := newClient(t, "http://"+newPort(t).address, clock).Tool(ctx, config.Tool{Name: "signal", Method: "POST"}, nil)
	require.ErrorIs(t, err, stop)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.ErrorContains(t, err, "Guild HTTP API unreachable after 3000ms: ")
}

func TestALargeAnswer(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	c := newClient(t, url, &testguild.Clock{})
	require.EqualValues(t, MaxToolAnswer, c.limit)
	c.limit = 1 << 20
	g.AddTool(testguild.Tool{Name: "signal", Size: 1<<20 - 2})
	text, err := c.Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, nil)
	require.NoError(t, err)
	assert.Len(t, text, 1<<20-2)
	g.AddTool(testguild.Tool{Name: "signal", Size: 1<<20 - 1})
	_, err = c.Tool(t.Context(), config.Tool{Name: "signal", Method: "POST"}, nil)
	require.EqualError(t, err, "the guild's answer is over the limit of 1 MiB")
}

func TestTheClientTakesNothingFromTheEnvironment(t *testing.T) {
	assert.Nil(t, newHTTP(nil).Transport.(*http.Transport).Proxy)
}

func TestURLs(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:7471", "ftp://x", "http://", "http://:80", "http://x y", "http://x/?q=1", "http://x/#f", "http://[::1", "//x", "http://x\n"} {
		_, err := New(Options{URL: url, SessionID: session})
		require.ErrorContains(t, err, "call the guild at ", "%q", url)
	}
	for _, url := range []string{"http://127.0.0.1:7471", "http://127.0.0.1:7471/", "https://guild.example/base", "http://[::1]:80"} {
		_, err := New(Options{URL: url, SessionID: session})
		require.NoError(t, err, "%q", url)
	}
	_, err := New(Options{URL: "http://x"})
	require.EqualError(t, err, "call the guild: the session has no id")
}

// FuzzQuery: every JSON object is a query, from which its strings can be read.
func FuzzQuery(f *testing.F) {
	f.Add(`{"a":"x y","b":[1,{"c":null}],"d":1e3,"a":true}`)
	f.Add(`{"\u00e4":"\ud83d\ude00&=","n":null}`)
	f.Fuzz(func(t *testing.T, args string) {
		query, err := queryOf(json.RawMessage(args))
		var want map[string]json.RawMessage
		isObject := json.Unmarshal([]byte(args), &want) == nil && want != nil
		require.Equal(t, isObject, err == nil, "%v", err)
		if err != nil {
			return
		}
		got, err := url.ParseQuery(query)
		require.NoError(t, err)
		for name, raw := range want {
			var s *string
			if string(raw) == "null" {
				require.NotContains(t, got, name)
			} else if json.Unmarshal(raw, &s) == nil {
				require.Equal(t, []string{*s}, got[name])
			} else {
				require.Len(t, got[name], 1)
			}
		}
	})
}
