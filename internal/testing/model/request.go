package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrClosed is what WaitRequests returns when the model is closed first.
var ErrClosed = errors.New("model: closed")

// Request is one recorded POST /v1/messages.
type Request struct {
	Time   time.Time       // when the whole body had arrived
	Body   json.RawMessage // the whole body as it was sent
	Model  string          // the model the client asked for
	Stream bool            // whether the answer goes out as SSE
	Main   bool            // the conversation itself, not a side request
	Number int             // the nth main request, from 1; 0 for a side request

	// UserText is the text of the last user message: its text blocks joined
	// by a newline. Blocks that are nothing but a <system-reminder> are left
	// out while there is other text, since the client puts them in front of
	// what the person wrote; a notification is said, though it looks like one.
	UserText string
	// ToolResults holds the text of the last user message's tool_result
	// blocks, in order.
	ToolResults []string
}

// body is the part of a request body that the stand-in looks at.
type body struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// block is one content block of a message.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// parse reads what a Request says about its body. A retry looks like any other
// request: the client numbers its retries nowhere.
func parse(raw []byte) (Request, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return Request{}, fmt.Errorf("model: request body: %w", err)
	}
	req := Request{Time: time.Now(), Body: raw, Model: b.Model, Stream: b.Stream, Main: len(b.Tools) > 0}
	for _, msg := range slices.Backward(b.Messages) {
		if msg.Role == "user" {
			req.UserText, req.ToolResults = userContent(blocks(msg.Content))
			break
		}
	}
	return req, nil
}

// blocks reads message content, which is a string or a list of blocks.
func blocks(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(content, &list) // unknown shapes count as no text
	return list
}

// userContent splits one user message into its text and its tool results.
func userContent(list []block) (text string, results []string) {
	var said, reminders []string
	for _, b := range list {
		switch {
		case b.Type == "tool_result":
			result, _ := userContent(blocks(b.Content))
			results = append(results, result)
		case b.Type != "text":
		case isReminder(b.Text):
			reminders = append(reminders, b.Text)
		default:
			said = append(said, b.Text)
		}
	}
	if len(said) == 0 {
		said = reminders
	}
	return strings.Join(said, "\n"), results
}

// isReminder reports whether a text is one <system-reminder> and no more.
func isReminder(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>") &&
		!strings.HasPrefix(text, "<system-reminder>\n[SYSTEM NOTIFICATION")
}

// record numbers the request, keeps it and wakes every waiter.
func (m *Model) record(req Request) Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	if req.Main {
		m.mains++
		req.Number = m.mains
	}
	m.requests = append(m.requests, req)
	close(m.arrived)
	m.arrived = make(chan struct{})
	return req
}

// Requests returns every request so far, main and side, in order of arrival.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// MainRequests returns the main requests so far, in order of arrival.
func (m *Model) MainRequests() []Request {
	return slices.DeleteFunc(m.Requests(), func(r Request) bool { return !r.Main })
}

// WaitRequests blocks until the nth main request (from 1) has arrived and
// returns it; its answer may still be on its way. The error is the context's,
// or ErrClosed.
func (m *Model) WaitRequests(ctx context.Context, n int) (Request, error) {
	for {
		req, arrived := m.nthMain(n)
		if arrived == nil {
			return req, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("model: waiting for main request %d: %w", n, ctx.Err())
		case <-m.closed:
			return Request{}, ErrClosed
		}
	}
}

// nthMain returns the nth main request, or the channel that closes at the next
// arrival. Both come from one critical section, so no arrival is missed.
func (m *Model) nthMain(n int) (Request, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, req := range m.requests {
		if req.Main && req.Number == n {
			return req, nil
		}
	}
	return Request{}, m.arrived
}
