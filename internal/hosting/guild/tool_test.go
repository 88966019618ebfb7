package guild

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func client(t *testing.T, url string) *Client {
	c, err := New(Options{URL: url, SessionID: "ses-1", Clock: &testClock{}})
	require.NoError(t, err)
	return c
}

func TestToolSendsWhatTheGuildExpects(t *testing.T) {
	tests := map[string]struct {
		tool   Tool
		args   string
		method string
		target string
		body   string
	}{
		"a group and an action": {Tool{Name: "writ-link-kinds"}, `{"a":1}`, "POST", "/api/writ/link-kinds", `{"a":1}`},
		"no hyphen":             {Tool{Name: "signal"}, ``, "POST", "/api/signal", `{}`},
		"null":                  {Tool{Name: "signal"}, `null`, "POST", "/api/signal", `{}`},
		"delete":                {Tool{Name: "writ-drop", Method: "DELETE"}, `{"id":"x"}`, "DELETE", "/api/writ/drop", `{"id":"x"}`},
		"get":                   {Tool{Name: "writ-list", Method: "GET"}, ` {"b":"x y&z","a":1.50,"n":null,"t":true,"l":[1, 2],"o":{"k": "v"}} `, "GET", "/api/writ/list?b=x+y%26z&a=1.50&t=true&l=%5B1%2C2%5D&o=%7B%22k%22%3A%22v%22%7D", ""},
		"get, a name twice":     {Tool{Name: "writ-list", Method: "GET"}, `{"a":1,"b":2,"a":3}`, "GET", "/api/writ/list?a=3&b=2", ""},
		"get, no arguments":     {Tool{Name: "writ-list", Method: "GET"}, ``, "GET", "/api/writ/list", ""},
		"odd characters":        {Tool{Name: "a/b-c?d"}, ``, "POST", "/api/a%2Fb/c%3Fd", `{}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				assert.Equal(t, tc.method, r.Method)
				assert.Equal(t, tc.target, r.RequestURI)
				assert.Equal(t, tc.body, string(body))
				assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
				assert.Equal(t, "ses-1", r.Header.Get("X-Session-Id"))
				assert.NotEmpty(t, r.Header.Get("Idempotency-Key"))
				_, _ = io.WriteString(w, `{"b":1,"a":[]}`)
			}))
			defer server.Close()
			text, err := client(t, server.URL).Tool(t.Context(), tc.tool, json.RawMessage(tc.args))
			require.NoError(t, err)
			assert.Equal(t, "{\n  \"b\": 1,\n  \"a\": []\n}", text)
		})
	}
}
