// Package proxy serves the tools of a guild to one client over the Model Context Protocol, by
// streamable HTTP (protocol 2025-03-26 and later) on /mcp.
//
// It listens on loopback only, and serves only the holder of its token. [Options.Call] runs the calls.
package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"heartbeat/internal/gate"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
)

const (
	// ServerName is the proxy's name towards the client.
	ServerName = "nexus-guild-proxy"
	// ConfigKey is the proxy's key in the mcp-config: the client's model sees a tool as mcp__nexus-guild__NAME.
	ConfigKey = "nexus-guild"

	serverVersion = "0.0.0"
	maxRequest    = 4 << 20 // bytes of one request's body
)

// Options is what a proxy serves. Tools and Call are required.
type Options struct {
	Tools []config.Tool // listed in this order; no other name is ever called
	// Call runs a tool with the client's arguments: a JSON object, {} if it sent none. The context
	// ends when the client cancels the call or loses its connection, and when the proxy closes. An
	// error or a panic becomes the tool's result. Calls may run at the same time.
	Call      func(ctx context.Context, tool config.Tool, args json.RawMessage) (text string, err error)
	Log       func(line string) // gets a line without its newline, from any goroutine, even after Close
	KeepAlive time.Duration     // how often an open stream carries a comment; 30 s if 0

	listen func() (net.Listener, error) // nil for a free port of 127.0.0.1; tests set it
}

// Proxy is one running proxy. Its methods may be called from any goroutine.
type Proxy struct {
	options Options
	tools   map[string]config.Tool
	list    []*mcp.Tool
	port    int
	token   string

	stateful  http.Handler // versions before sessionless
	stateless http.Handler

	context context.Context // of every call; canceled by Close
	cancel  context.CancelFunc
	http    *http.Server
	mcp     *mcp.Server
	served  chan struct{}
	answers sync.Map     // a *beatingWriter for each open request, by its answerHeader
	serving sync.RWMutex // held for reading by each request, for writing by Close

	counting sync.Mutex
	stats    folder.Tools

	closing sync.Once
}

// Start listens on a free port of 127.0.0.1, until Close. The error is about a tool that cannot be served, or the port.
func Start(options Options) (*Proxy, error) {
	tools, list, err := index(options.Tools)
	if err != nil {
		return nil, err
	}
	options.KeepAlive = cmp.Or(options.KeepAlive, 30*time.Second)
	if options.listen == nil {
		options.listen = func() (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }
	}
	listener, err := options.listen()
	if err != nil {
		return nil, fmt.Errorf("no port of 127.0.0.1 could be opened: %w", err)
	}
	p := &Proxy{
		options: options, tools: tools, list: list,
		port:   listener.Addr().(*net.TCPAddr).Port,
		token:  rand.Text(), // 130 bits
		served: make(chan struct{}),
	}
	p.context, p.cancel = context.WithCancel(context.Background())
	p.stats.URL, p.stats.Configured = p.URL(), len(list)
	p.mcp = p.server()
	server := func(*http.Request) *mcp.Server { return p.mcp }
	p.stateful = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxRequest, SessionTimeout: sessionTimeout})
	p.stateless = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxRequest, Stateless: true, PropagateRequestCancellation: true})
	routes := http.NewServeMux()
	routes.HandleFunc("/mcp", p.serve)
	routes.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Not found", http.StatusNotFound) })
	p.http = &http.Server{
		Handler:           p.guard(routes),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(p, "", 0),
	}
	p.printf("MCP proxy server listening on port %d", p.port)
	go func() {
		defer close(p.served)
		_ = p.http.Serve(listener) // always ends with http.ErrServerClosed after Close
	}()
	return p, nil
}

// guard lets only the session's client through.
func (p *Proxy) guard(next http.Handler) http.Handler {
	g := gate.Gate{Hosts: gate.Loopback(p.port), Token: p.token}
	return g.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serving.RLock()
		defer p.serving.RUnlock()
		if p.context.Err() != nil {
			http.Error(w, "The session has ended", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// URL returns the address in the mcp-config, such as "http://127.0.0.1:40123/mcp".
func (p *Proxy) URL() string { return fmt.Sprintf("http://127.0.0.1:%d/mcp", p.port) }

// Config returns the mcp-config for the client, as a line of JSON with the token: its file is for its owner only.
func (p *Proxy) Config() []byte {
	// Without alwaysLoad the model gets only the tools' names, and has to search for a tool before its first call.
	return fmt.Appendf(nil, `{"mcpServers":{%q:{"type":"http","url":%q,"headers":{"Authorization":"Bearer %s"},"alwaysLoad":true}}}`,
		ConfigKey, p.URL(), p.token)
}

// Close cancels the calls in progress, ends every connection and frees the port. It waits neither
// for a Call that ignores its context nor for a client. Further calls do nothing.
func (p *Proxy) Close() {
	p.closing.Do(func() {
		p.cancel()
		_ = p.http.Close() // the listener's close error helps nobody
		<-p.served
		p.serving.Lock() // waits for the requests, whose calls and connections have ended
		defer p.serving.Unlock()
		for session := range p.mcp.Sessions() {
			_ = session.Close() // nothing is left to deliver
		}
		if warning := Warning(p.Stats()); warning != "" {
			p.printf("mcp-proxy: WARNING: %s", warning)
		}
	})
}

const loopback = "127.0.0.1"

// Environment returns the client's environment, changed so that the client reaches the proxy: with HTTP_PROXY
// it would reach another machine's loopback. The last NAME=value of a name counts.
func Environment(env []string) []string {
	last := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		last[name] = value
	}
	if !slices.ContainsFunc([]string{"http_proxy", "https_proxy", "all_proxy"}, func(name string) bool {
		return last[name] != "" || last[strings.ToUpper(name)] != ""
	}) {
		return env
	}
	env = slices.Clone(env) // DeleteFunc changes it in place
	// Change only the spellings in use: a new one would hide the other.
	both := []string{"NO_PROXY", "no_proxy"}
	used := slices.DeleteFunc(slices.Clone(both), func(name string) bool { return last[name] == "" })
	if len(used) == 0 {
		used = both
	}
	for _, name := range used {
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		env = append(env, name+"="+exempt(last[name]))
	}
	return env
}

// exempt adds the loopback address to a list of hosts.
func exempt(hosts string) string {
	for host := range strings.SplitSeq(hosts, ",") {
		if host = strings.TrimSpace(host); host == loopback || host == "*" {
			return hosts
		}
	}
	if strings.TrimSpace(hosts) == "" {
		return loopback
	}
	return hosts + "," + loopback
}

func index(tools []config.Tool) (map[string]config.Tool, []*mcp.Tool, error) {
	byName := make(map[string]config.Tool, len(tools))
	list := make([]*mcp.Tool, 0, len(tools))
	for i, tool := range tools {
		if tool.Name == otherTool {
			return nil, nil, fmt.Errorf("the name %q of tools[%d] is taken", tool.Name, i)
		}
		schema, err := inputSchema(tool.Params)
		if err != nil {
			return nil, nil, fmt.Errorf("the params of tool %q: %w", tool.Name, err)
		}
		byName[tool.Name] = tool
		list = append(list, &mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: schema})
	}
	return byName, list, nil
}

// inputSchema returns {"type":"object", ...params}, whose members are as spelled: no number or keyword is lost.
func inputSchema(params json.RawMessage) (json.RawMessage, error) {
	params = bytes.TrimSpace(params)
	if len(params) == 0 || string(params) == "null" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if kind, given := members["type"]; given {
		// Clients refuse the whole list for one schema of another type.
		if string(kind) != `"object"` {
			return nil, fmt.Errorf(`its "type" is %s, and arguments are always an "object"`, kind)
		}
		return params, nil
	}
	rest := bytes.TrimSpace(params[1:])
	schema := []byte(`{"type":"object"`)
	if len(members) > 0 {
		schema = append(schema, ',')
	}
	return append(schema, rest...), nil
}
