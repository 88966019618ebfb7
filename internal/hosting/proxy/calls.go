package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// server answers for the tools itself: the kit's own registry sorts the list by name,
// panics on schemas it dislikes and answers unknown names with a protocol error, which
// ends the turn of some clients.
func (p *Proxy) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: ServerName, Version: serverVersion},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if cause := recover(); cause != nil {
					p.log.printf("mcp-proxy: %s panicked: %v\n%s", method, cause, debug.Stack())
					result, err = nil, fmt.Errorf("%s failed inside the proxy: %v", method, cause)
				}
			}()
			return p.dispatch(ctx, next, method, request)
		}
	})
	return server
}

// dispatch answers one request, by the kit where there is nothing to add.
func (p *Proxy) dispatch(ctx context.Context, next mcp.MethodHandler, method string, request mcp.Request) (mcp.Result, error) {
	switch request := request.(type) {
	case *mcp.CallToolRequest:
		ctx, done := p.answers.inProgress(ctx, request.Extra)
		defer done()
		return p.call(ctx, request.Params), nil
	case *mcp.ListToolsRequest:
		result, err := next(ctx, method, request)
		if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
			list.Tools = p.list
			p.counts.list()
			p.log.printf("mcp-proxy: tools/list (%d tools)", len(p.list))
		}
		return result, err
	}
	return next(ctx, method, request)
}

// call runs one tool. Whatever goes wrong is a result that the model can read.
func (p *Proxy) call(ctx context.Context, params *mcp.CallToolParamsRaw) *mcp.CallToolResult {
	number := p.counts.begin()
	start := time.Now()
	text, err := p.answer(ctx, params)
	took := time.Since(start).Milliseconds()
	p.counts.end(err != nil)
	if err != nil {
		p.log.printf("mcp-proxy: %s FAILED (%dms, call #%d): %v", params.Name, took, number, err)
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "Error: " + err.Error()}}}
	}
	p.log.printf("mcp-proxy: %s%s (%dms, call #%d)", params.Name, arrow(p.tools[params.Name].Target), took, number)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func arrow(target string) string {
	if target == "" {
		return ""
	}
	return " → " + target
}

// answer checks the call and waits for its outcome, or for the end of the context
// where Call does not heed it: neither a client's reconnect nor Close may hang on it.
func (p *Proxy) answer(ctx context.Context, params *mcp.CallToolParamsRaw) (string, error) {
	if _, known := p.tools[params.Name]; !known {
		return "", fmt.Errorf("there is no tool %q in this session", params.Name)
	}
	args, err := arguments(params.Arguments)
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
				p.log.printf("mcp-proxy: %s panicked: %v\n%s", params.Name, cause, debug.Stack())
				done <- outcome{err: fmt.Errorf("the call failed inside the session's host: %v", cause)}
			}
		}()
		text, err := p.options.Call(ctx, params.Name, args)
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

// arguments are passed on as they came.
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
