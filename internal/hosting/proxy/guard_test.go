package proxy

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// request is one with all that the proxy asks for.
func request(t *testing.T, p *Proxy, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.address(path), strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// send makes one request and returns the status and the whole answer.
func send(t *testing.T, p *Proxy, method, path, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	r := request(t, p, method, path, body)
	if change != nil {
		change(r)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(raw)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestOnlyTheTokenOpens(t *testing.T) {
	p, _ := start(t, Options{})
	assert.GreaterOrEqual(t, len(p.token), 26, "26 letters of base 32 are 130 bits")
	for _, path := range []string{"/mcp", "/", "/else"} {
		for _, value := range []string{"", "Bearer", "Bearer ", "Bearer x", "Basic " + p.token, p.token, "Bearer " + p.token + "x", "Bearer " + strings.ToLower(p.token)} {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
				status, said := send(t, p, method, path, initialize, func(r *http.Request) { r.Header.Set("Authorization", value) })
				assert.Equal(t, http.StatusUnauthorized, status, "%s %s %q", method, path, value)
				assert.NotContains(t, said, p.token)
			}
		}
	}
	status, said := send(t, p, "POST", "/mcp", initialize, nil)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, said, `"serverInfo":{"name":"nexus-guild-proxy","version":"0.0.0"}`)
	assert.Contains(t, said, `"capabilities":{"tools":{}}`)
}

func TestAWebPageIsRefused(t *testing.T) {
	p, _ := start(t, Options{})
	port := strconv.Itoa(p.port)
	for host, want := range map[string]int{
		"127.0.0.1:" + port: http.StatusOK, "localhost:" + port: http.StatusOK,
		"localhost": http.StatusForbidden, "evil.example": http.StatusForbidden, "evil.example:" + port: http.StatusForbidden,
		"127.0.0.1.evil.example:" + port: http.StatusForbidden, "127.0.0.1:1": http.StatusForbidden,
	} {
		status, _ := send(t, p, "POST", "/mcp", initialize, func(r *http.Request) { r.Host = host })
		assert.Equal(t, want, status, host)
	}
	for origin, want := range map[string]int{
		"http://127.0.0.1:" + port: http.StatusOK, "http://localhost:" + port: http.StatusOK,
		"http://evil.example": http.StatusForbidden, "null": http.StatusForbidden, "": http.StatusForbidden,
		"https://localhost:" + port: http.StatusForbidden, "http://localhost:1": http.StatusForbidden, "localhost:" + port: http.StatusForbidden,
	} {
		status, _ := send(t, p, "POST", "/mcp", initialize, func(r *http.Request) { r.Header["Origin"] = []string{origin} })
		assert.Equal(t, want, status, origin)
	}
	status, _ := send(t, p, "POST", "/mcp", initialize, func(r *http.Request) {
		r.Header["Origin"] = []string{"http://localhost:" + port, "http://evil.example"}
	})
	assert.Equal(t, http.StatusForbidden, status)
}

func TestOtherPaths(t *testing.T) {
	p, _ := start(t, Options{})
	for _, path := range []string{"/", "/sse", "/message", "/mcp/x", "/.well-known/oauth-protected-resource"} {
		status, said := send(t, p, "GET", path, "", nil)
		assert.Equal(t, http.StatusNotFound, status, path)
		assert.Equal(t, "Not found\n", said)
	}
}

func TestABodyOverTheLimit(t *testing.T) {
	p, _ := start(t, Options{})
	big := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":"` + strings.Repeat("x", 4<<20) + `"}}}`
	status, said := send(t, p, "POST", "/mcp", big, nil)
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
	assert.Contains(t, said, "4194304")
}
