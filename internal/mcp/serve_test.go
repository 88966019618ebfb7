package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const token = "0123456789abcdef0123456789abcdef"

// serving is heartbeat-mcp serve, which says where it is.
func serving(t *testing.T, listen string, flags ...string) (at string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\nmore\n"), 0o600))
	cmd := exec.Command("heartbeat", append([]string{"mcp", "serve", "--listen", listen, "--token-file", file}, flags...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
		assert.Equal(t, 128+int(syscall.SIGTERM), cmd.ProcessState.ExitCode())
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// bearer adds a token to each request, over a socket if there is one.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func connect(t *testing.T, at string, next http.RoundTripper) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: bearer{token, next}}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestServe(t *testing.T) {
	path := newBox(t, "")
	at := serving(t, "127.0.0.1:0", "--inbox", "work="+path)
	c := connect(t, at, http.DefaultTransport)
	r, failed := call(t, c, "enqueue", object{"prompt": "x", "id": "job"})
	require.Empty(t, failed)
	assert.Equal(t, true, r["appended"])
	r, failed = call(t, c, "result", object{"id": "job"})
	require.Empty(t, failed)
	assert.Equal(t, "queued", r["state"])
}

func TestServeOnASocket(t *testing.T) {
	path, socket := newBox(t, ""), filepath.Join(t.TempDir(), "s")
	at := serving(t, "unix:"+socket, "--inbox", "work="+path, "--role", "operator")
	assert.Equal(t, "unix:"+socket+":/work", at)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	over := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}
	c := connect(t, "http://localhost/work", over)
	_, failed := call(t, c, "status", object{})
	require.Empty(t, failed)
	_, _, _, err = listen("unix:" + socket)
	require.ErrorContains(t, err, "another process already listens there")
}

func TestWhoIsRefused(t *testing.T) {
	at := serving(t, "127.0.0.1:0", "--inbox", "work="+newBox(t, ""))
	for name, c := range map[string]struct {
		header http.Header
		host   string
		status int
	}{
		"no token":       {http.Header{}, "", http.StatusUnauthorized},
		"another token":  {http.Header{"Authorization": {"Bearer " + token[1:] + "x"}}, "", http.StatusUnauthorized},
		"a part of it":   {http.Header{"Authorization": {"Bearer " + token[1:]}}, "", http.StatusUnauthorized},
		"another scheme": {http.Header{"Authorization": {"Basic " + token}}, "", http.StatusUnauthorized},
		"another host":   {http.Header{"Authorization": {"Bearer " + token}}, "evil.example:80", http.StatusForbidden},
		"another origin": {http.Header{"Authorization": {"Bearer " + token}, "Origin": {"http://evil.example"}}, "", http.StatusForbidden},
		"the null one":   {http.Header{"Authorization": {"Bearer " + token}, "Origin": {"null"}}, "", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("{}"))
			require.NoError(t, err)
			r.Header, r.Host = c.header, c.host
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer func() { _ = answer.Body.Close() }()
			assert.Equal(t, c.status, answer.StatusCode)
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(at, "work")+"other", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusNotFound, answer.StatusCode)
}

func TestWhereItDoesNotListen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for where, says := range map[string]string{
		"0.0.0.0:0":       "of this machine alone",
		":0":              "of this machine alone",
		"192.0.2.1:80":    "of this machine alone",
		"nonsense":        "--listen nonsense",
		"unix:" + file:    "something else of that name",
		"unix:/no/such/s": "--listen",
	} {
		_, _, _, err := listen(where)
		require.ErrorContains(t, err, says, where)
	}
}

func TestATokenFile(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		says    string
	}{
		"open":   {token, 0o644, "others may read"},
		"short":  {"secret\n", 0o600, "at least 16 characters"},
		"spaces": {"a b c d e f g h i j k l m n", 0o600, "without spaces"},
		"empty":  {"", 0o600, "at least 16 characters"},
		"huge":   {strings.Repeat("x", maxToken+1), 0o600, "no more than"},
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		require.NoError(t, os.Chmod(path, c.mode))
		_, err := readToken(path)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := readToken(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "make it first")
	_, err = readToken(filepath.Join(dir, "empty", "none")) // below a file
	require.ErrorContains(t, err, "not a directory")
	assert.NotContains(t, err.Error(), "make it first")
}

// The server as a client starts it. What a session before left behind speaks for no entry.
func TestOverStdio(t *testing.T) {
	path := newBox(t, "one\n")
	deliver(t, path) // to this process, which is the client
	cmd := exec.Command("heartbeat", "mcp", "--inbox", path)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	_, failed := call(t, c, "task_done", object{"result": "42"})
	require.Empty(t, failed)
	require.NoError(t, c.Close())
	assert.Equal(t, 0, cmd.ProcessState.ExitCode())

	// Below init, like one whose client has died.
	left := exec.Command("setsid", "-f", "heartbeat-mcp", "--inbox", path)
	c, err = sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: left}, nil)
	require.NoError(t, err)
	_, failed = call(t, c, "task_reject", object{"reason": "mine"})
	assert.Contains(t, failed, "another session's")
	_ = c.Close()
}

// A line that is no message is answered, and the next one is served.
func TestALineThatIsNotJSON(t *testing.T) {
	cmd := exec.Command("heartbeat", "mcp", "--inbox", newBox(t, ""), "--role", "producer")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers := json.NewDecoder(out)
	for _, c := range []struct{ line, id, has string }{
		{"not json", "null", `"code":-32700`},
		{"42", "null", `"code":-32600`},
		{"[1]", "null", `"code":-32600`},
		{`{"jsonrpc":"2.0"}`, "null", `"code":-32600`},
		{`{"jsonrpc":"2.0","id":1,`, "null", `"code":-32700`},
		{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, "2", "serverInfo"},
	} {
		_, err = io.WriteString(in, c.line+"\n\n")
		require.NoError(t, err)
		var answer json.RawMessage
		require.NoError(t, answers.Decode(&answer), c.line)
		assert.Contains(t, string(answer), `"id":`+c.id)
		assert.Contains(t, string(answer), c.has)
	}
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

func TestPrintConfig(t *testing.T) {
	path := newBox(t, "")
	out, err := exec.Command("heartbeat", "mcp", "print-config", "--inbox", path, "--to", "other="+path, "--rate", "5").Output()
	require.NoError(t, err)
	var config struct {
		Servers map[string]struct {
			Command    string
			Args       []string
			AlwaysLoad bool
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal(out, &config))
	s := config.Servers[serverName]
	assert.True(t, s.AlwaysLoad)
	assert.True(t, filepath.IsAbs(s.Command))
	assert.Equal(t, []string{"mcp", "--inbox", path, "--role", "agent", "--rate", "5", "--to", "other=" + path}, s.Args)
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "no inbox"},
		{[]string{"--inbox", "x", "--role", "boss"}, "agent, producer, operator"},
		{[]string{"--inbox", "x", "--to", "nonsense"}, "is not NAME=PATH"},
		{[]string{"--inbox", "x", "--to", "../x=y"}, "letters, digits"},
		{[]string{"--inbox", "x", "--rate", "-1"}, "0 or more"},
		{[]string{"--inbox", "x", "--role", "producer", "--to", "a=b"}, "--to is for"},
		{[]string{"serv"}, "serve"},
		{[]string{"serve"}, "--token-file is needed"},
		{[]string{"serve", "--token-file", "x"}, "--inbox NAME=PATH"},
		{[]string{"serve", "--token-file", "x", "--inbox", "a=b", "--role", "agent"}, "one of producer, operator"},
		{[]string{"print-config"}, "no inbox"},
	} {
		cmd := exec.Command("heartbeat", append([]string{"mcp"}, c.args...)...)
		var said strings.Builder
		cmd.Stderr, cmd.Env = &said, append(os.Environ(), "HEARTBEAT_INBOX=")
		require.Error(t, cmd.Run(), c.args)
		assert.Equal(t, 1, cmd.ProcessState.ExitCode(), c.args)
		assert.Contains(t, strings.Join(strings.Fields(said.String()), " "), c.says, c.args)
	}
	out, err := exec.Command("heartbeat", "mcp", "--help").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "print-config")
}

// TestConformance runs the suite of the protocol's authors. Most of it asks for tools of its
// own, which are not here; what is left has to pass.
func TestConformance(t *testing.T) {
	command := os.Getenv("HEARTBEAT_CONFORMANCE")
	if command == "" {
		t.Skip("this test runs the suite of the protocol's authors; set HEARTBEAT_CONFORMANCE to the command of @modelcontextprotocol/conformance")
	}
	target, err := url.Parse(serving(t, "127.0.0.1:0", "--inbox", "mcp="+newBox(t, "")))
	require.NoError(t, err)
	var server *httptest.Server
	server = httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		port := server.URL[strings.LastIndexByte(server.URL, ':'):]
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		if r.Out.Host = r.In.Host; strings.HasSuffix(r.In.Host, port) {
			r.Out.Host = target.Host
		}
		if origin := r.In.Header.Get("Origin"); strings.HasSuffix(origin, port) {
			r.Out.Header.Set("Origin", "http://"+target.Host)
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"} {
		t.Run(scenario, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), command, "server", "--url", server.URL+"/mcp", "--scenario", scenario,
				"--spec-version", "2025-11-25", "--output-dir", t.TempDir()).CombinedOutput()
			require.NoError(t, err, string(out))
			assert.NotContains(t, string(out), "0 passed")
		})
	}
}

// A client that sends no end of a line, or nonsense, ends nothing but its own connection.
func TestNonsenseOnStdin(t *testing.T) {
	for _, input := range []string{"\x00\xff\n", "{\"jsonrpc\":\"2.0\"", "[]\n", strings.Repeat("[", 100_000) + "\n", "\n\n\n"} {
		cmd := exec.Command("heartbeat", "mcp", "--inbox", newBox(t, ""))
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, _ = io.WriteString(in, input)
		require.NoError(t, in.Close())
		said, err := io.ReadAll(out)
		require.NoError(t, err)
		_ = cmd.Wait()
		assert.NotContains(t, string(said), "panic", fmt.Sprintf("%.20q", input))
		assert.LessOrEqual(t, cmd.ProcessState.ExitCode(), 1)
	}
}
