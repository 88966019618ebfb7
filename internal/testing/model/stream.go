package model

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// begin begins an answer of server-sent events with message_start.
func begin(w http.ResponseWriter, msg message) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	s := stream{w: w}
	s.event("message_start", map[string]any{"message": msg})
	return s
}

// reply sends the rest, block by block, in the order the API uses: the blocks,
// message_delta, message_stop.
func (s stream) reply(msg message, reply Reply) {
	s.blocks(msg, reply)
	s.event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stopReason(reply), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": msg.Usage["output_tokens"]},
	})
	s.event("message_stop", map[string]any{})
}

// blocks sends what is said, and what a tool is asked.
func (s stream) blocks(msg message, reply Reply) {
	index := 0
	if reply.Text != "" {
		s.block(index, map[string]any{"type": "text", "text": ""},
			map[string]any{"type": "text_delta", "text": reply.Text})
		index++
	}
	for i, tool := range reply.Tools {
		s.tool(index+i, toolID(msg.ID, i), tool)
	}
}

// ping says that the answer comes.
func (s stream) ping() { s.event("ping", map[string]any{}) }

// stream writes events to one client. Write errors are ignored: the client has
// gone, and its own test knows why.
type stream struct{ w http.ResponseWriter }

// event sends one event; the type is repeated inside the data, as the API does.
func (s stream) event(kind string, data map[string]any) {
	data["type"] = kind
	raw, _ := json.Marshal(data) // strings, numbers and JSON that was checked by Tool
	_, _ = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, raw)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// block sends one content block whose whole content is a single delta.
func (s stream) block(index int, start, delta map[string]any) {
	s.event("content_block_start", map[string]any{"index": index, "content_block": start})
	s.event("content_block_delta", map[string]any{"index": index, "delta": delta})
	s.event("content_block_stop", map[string]any{"index": index})
}

// tool sends a tool_use block; its input travels as JSON text.
func (s stream) tool(index int, id string, t ToolUse) {
	s.block(index,
		map[string]any{"type": "tool_use", "id": id, "name": t.Name, "input": map[string]any{}},
		map[string]any{"type": "input_json_delta", "partial_json": string(t.Input)})
}
