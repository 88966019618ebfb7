package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/words"
)

// otherTool, which no list shows, is registered for calls of unregistered names, so that all calls are handled alike.
const otherTool = "heartbeat-other"

// server registers the tools with the MCP library, which checks calls against the protocol. It replaces the library's
// list, which is sorted by name, and its protocol error for an unknown name, which the model would not see.
func (p *Proxy) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: ServerName, Version: serverVersion},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	registered := make(map[string]bool, len(p.list))
	for _, tool := range p.list {
		registered[tool.Name] = register(server, tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return p.call(ctx, r, tool.Name), nil
		})
	}
	other := &mcp.Tool{Name: otherTool, InputSchema: json.RawMessage(`{"type":"object"}`)}
	register(server, other, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name, _ := ctx.Value(otherName{}).(string)
		return p.call(ctx, r, name), nil
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if cause := recover(); cause != nil {
					p.printf("mcp-proxy: %s panicked: %v\n%s", method, cause, debug.Stack())
					result, err = nil, fmt.Errorf("%s failed inside the proxy: %v", method, cause)
				}
			}()
			switch family, _, _ := strings.Cut(method, "/"); family {
			case "prompts", "resources", "completion", "logging": // the library would answer with empty lists
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
			}
			if call, ok := request.(*mcp.CallToolRequest); ok && !registered[call.Params.Name] {
				params := *call.Params
				params.Name = otherTool
				request = &mcp.CallToolRequest{Session: call.Session, Params: &params, Extra: call.Extra}
				ctx = context.WithValue(ctx, otherName{}, call.Params.Name)
			}
			result, err = next(ctx, method, request)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				list.Tools, list.NextCursor = p.list, "" // all at once
				p.counting.Lock()
				p.stats.Listed = true
				p.counting.Unlock()
				p.printf("mcp-proxy: tools/list (%d tools)", len(p.list))
			}
			return result, err
		}
	})
	return server
}

// register reports whether the library accepted the tool: it panics on schemas that it does not support.
func register(server *mcp.Server, tool *mcp.Tool, handler mcp.ToolHandler) (taken bool) {
	defer func() { taken = recover() == nil }()
	server.AddTool(tool, handler)
	return true
}

// otherName is the context key of the name that otherTool was called by.
type otherName struct{}

// mostRead is how many bytes of an answer Claude Code 2.1.329 reads. Longer ones are sent: later ones may read them.
const mostRead = 16 << 20

// call runs one tool. Every failure becomes a result that the model can read.
func (p *Proxy) call(ctx context.Context, r *mcp.CallToolRequest, name string) *mcp.CallToolResult {
	ctx, done := p.inProgress(ctx, r.Extra)
	defer done()
	start := time.Now()
	number := p.count(name, func(s *folder.Tools, of *folder.ToolUse) { s.Calls++; s.Open++; of.Calls++ }).Calls
	text, err := p.answer(ctx, name, r.Params.Arguments)
	took := time.Since(start).Milliseconds()
	failure := err
	if len(text) > mostRead {
		failure = fmt.Errorf("the answer has %d MiB, and the client reads none over %d", len(text)>>20, mostRead>>20)
		p.printf("mcp-proxy: %s: %v", name, failure)
	}
	p.count(name, func(s *folder.Tools, of *folder.ToolUse) {
		if s.Open--; failure != nil {
			s.Failed++
			of.Failed++
			of.LastError = words.Brief(failure.Error())
			s.LastError = of.Name + ": " + of.LastError
		}
	})
	if err != nil {
		p.printf("mcp-proxy: %s FAILED (%dms, call #%d): %v", name, took, number, err)
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "Error: " + err.Error()}}}
	}
	p.printf("mcp-proxy: %s → %s %s (%dms, call #%d)", name, p.tools[name].Method, p.tools[name].Route(), took, number)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// answer checks the call and waits for its outcome or the end of the context. Call may ignore the context,
// and must not hold up a client's reconnect or Close.
func (p *Proxy) answer(ctx context.Context, name string, raw json.RawMessage) (string, error) {
	tool, known := p.tools[name]
	if !known {
		return "", fmt.Errorf("there is no tool %q in this session", name)
	}
	args, err := arguments(raw)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.context, cancel)()
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				p.printf("mcp-proxy: %s panicked: %v\n%s", name, cause, debug.Stack())
				done <- outcome{err: fmt.Errorf("the call failed inside the session's host: %v", cause)}
			}
		}()
		text, err := p.options.Call(ctx, tool, args)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		if p.context.Err() != nil {
			return "", errors.New("the session ended before the call did")
		}
		return "", errors.New("the client canceled the call or lost its connection")
	}
}

// arguments returns a call's arguments as the client spelled them.
func arguments(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{}`), nil
	}
	if raw[0] != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return raw, nil
}

// Other is the name under which calls of all unknown tools are counted.
const Other = "(no such tool)"

// count changes the figures of a tool and returns those of all.
func (p *Proxy) count(name string, change func(*folder.Tools, *folder.ToolUse)) folder.Tools {
	if _, known := p.tools[name]; !known {
		name = Other
	}
	p.counting.Lock()
	defer p.counting.Unlock()
	s, now := &p.stats, time.Now().UTC()
	at, found := slices.BinarySearchFunc(s.Each, name, func(u folder.ToolUse, name string) int { return strings.Compare(u.Name, name) })
	if s.Each = slices.Clone(s.Each); !found { // readers may keep the old slice
		s.Each = slices.Insert(s.Each, at, folder.ToolUse{Name: name})
	}
	s.LastAt = &now
	change(s, &s.Each[at])
	return *s
}

// Stats returns what the client did so far, even after Close.
func (p *Proxy) Stats() folder.Tools {
	p.counting.Lock()
	defer p.counting.Unlock()
	return p.stats
}

// Warning returns a sentence about a client that works without the tools it was given, or "". It is valid
// once the client has answered its first prompt.
func Warning(s folder.Tools) string {
	if s.Listed || s.Configured == 0 {
		return ""
	}
	return Unlisted(s)
}

// Unlisted returns the warning about a client that has not asked for its tools.
func Unlisted(s folder.Tools) string {
	return fmt.Sprintf("the client never asked for the list of tools: none of the %d configured tools was available to it", s.Configured)
}

// printf logs one line. It escapes names and messages, which are the client's and the guild's.
func (p *Proxy) printf(format string, args ...any) {
	if p.options.Log != nil {
		p.options.Log(words.Sentence(fmt.Sprintf(format, args...)))
	}
}

// Write logs a line of the HTTP server.
func (p *Proxy) Write(line []byte) (int, error) {
	p.printf("mcp-proxy: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}
