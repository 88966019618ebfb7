package model

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The Responses API of OpenAI, as Codex uses it: the same scripts answer both APIs.

// responsesBody is the part of a request body that the stand-in looks at.
type responsesBody struct {
	Model string            `json:"model"`
	Tools []json.RawMessage `json:"tools"`
	Input []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content []block         `json:"content"`
		Output  json.RawMessage `json:"output"`
	} `json:"input"`
}

// hookPrompt is how Codex hands over what a Stop hook blocked with, its text escaped.
var hookPrompt = regexp.MustCompile(`(?s)<hook_prompt [^>]*>(.*?)</hook_prompt>`)

// parseResponses reads what a Request says about a body of the Responses API.
func parseResponses(raw []byte) (Request, error) {
	var b responsesBody
	if err := json.Unmarshal(raw, &b); err != nil {
		return Request{}, fmt.Errorf("model: request body: %w", err)
	}
	req := Request{Time: time.Now(), Body: raw, Model: b.Model, Stream: true, Main: len(b.Tools) > 0}
	for _, item := range slices.Backward(b.Input) {
		switch {
		case strings.HasSuffix(item.Type, "_call_output"):
			req.ToolResults = append(req.ToolResults, string(item.Output))
		case item.Role == "user":
			req.UserText = saidTo(item.Content)
			slices.Reverse(req.ToolResults)
			return req, nil
		}
	}
	return req, nil
}

func saidTo(content []block) string {
	var all []string
	for _, b := range content {
		if handed := hookPrompt.FindAllStringSubmatch(b.Text, -1); len(handed) > 0 {
			for _, one := range handed {
				all = append(all, html.UnescapeString(one[1]))
			}
			continue
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// responses serves POST /v1/responses as messages does its own.
func (m *Model) responses(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone; there is nobody to tell
	}
	req, err := parseResponses(raw)
	if err != nil {
		writeResponsesError(w, Error(http.StatusBadRequest, "invalid_request_error", err.Error()))
		return
	}
	req = m.record(req)
	reply := Text(sideAnswer)
	if req.Main {
		reply = m.script(req)
	}
	if !m.pause(r, reply, func() {}) {
		panic(http.ErrAbortHandler)
	}
	if reply.Err != nil {
		writeResponsesError(w, reply)
		return
	}
	writeResponse(w, req, reply)
	if reply.Open {
		reply.Hang = true
		m.pause(r, reply, func() {})
		panic(http.ErrAbortHandler)
	}
	end := newResponse(req, reply)
	stream{w: w}.event("response.completed", map[string]any{"response": end})
}

// models lists none: Codex knows the one that it is told to use.
func models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, json.RawMessage(`{"data":[]}`))
}

// writeResponse streams the items of an answer.
func writeResponse(w http.ResponseWriter, req Request, reply Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	s := stream{w: w}
	s.event("response.created", map[string]any{"response": map[string]any{"id": responseID(req), "status": "in_progress", "output": []any{}}})
	for i, item := range responseItems(req, reply) {
		s.event("response.output_item.added", map[string]any{"output_index": i, "item": item})
		if item["type"] == "message" {
			s.event("response.output_text.delta", map[string]any{"output_index": i, "content_index": 0, "item_id": item["id"], "delta": reply.Text})
		}
		s.event("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
}

func newResponse(req Request, reply Reply) map[string]any {
	u := Usage{Input: 1, Output: 1}
	if reply.Usage != nil {
		u = *reply.Usage
	}
	return map[string]any{
		"id": responseID(req), "status": "completed", "output": responseItems(req, reply),
		"usage": map[string]any{
			"input_tokens": u.Input + u.CacheRead, "input_tokens_details": map[string]int{"cached_tokens": u.CacheRead},
			"output_tokens": u.Output, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
			"total_tokens": u.Input + u.CacheRead + u.Output,
		},
	}
}

func responseItems(req Request, reply Reply) (items []map[string]any) {
	if reply.Text != "" {
		items = append(items, map[string]any{
			"id": "msg_" + responseID(req), "type": "message", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": reply.Text, "annotations": []any{}}},
		})
	}
	for i, tool := range reply.Tools {
		items = append(items, toolCall(responseID(req), i, tool))
	}
	return items
}

// toolCall asks for a tool. NAMESPACE__NAME is one of a server, or of a group of the client's.
func toolCall(response string, nth int, tool ToolUse) map[string]any {
	id := fmt.Sprintf("%s_%d", response, nth)
	call := map[string]any{
		"id": "fc_" + id, "type": "function_call", "status": "completed",
		"call_id": "call_" + id, "name": tool.Name, "arguments": string(tool.Input),
	}
	if i := strings.LastIndex(tool.Name, "__"); i >= 0 {
		call["namespace"], call["name"] = tool.Name[:i], tool.Name[i+2:]
	}
	return call
}

func responseID(req Request) string { return fmt.Sprintf("standin_%04d", req.Number) }

func writeResponsesError(w http.ResponseWriter, reply Reply) {
	writeJSON(w, reply.Err.Status, map[string]any{
		"error": map[string]any{"type": reply.Err.Type, "message": reply.Err.Message, "code": nil},
	})
}
