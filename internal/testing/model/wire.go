package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
)

// message is an assistant message on the wire.
type message struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []map[string]any `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        map[string]any   `json:"usage"`
}

// write sends the reply in the form the request asked for.
func write(w http.ResponseWriter, req Request, reply Reply) {
	if reply.Err != nil {
		writeError(w, reply)
		return
	}
	msg := newMessage(req, reply)
	if req.Stream {
		begin(w, msg).reply(msg, reply)
		return
	}
	msg.Content = content(msg, reply)
	msg.StopReason = stopReason(reply)
	writeJSON(w, http.StatusOK, msg)
}

// newMessage is an assistant message without content. Its ID is derived from
// the request, so that the same script gives the same session.
func newMessage(req Request, reply Reply) message {
	return message{
		ID:      fmt.Sprintf("msg_standin_%04d", req.Number),
		Type:    "message",
		Role:    "assistant",
		Model:   cmp.Or(reply.Model, req.Model),
		Content: []map[string]any{},
		Usage:   reply.Usage.members(),
	}
}

// content is the reply's blocks in full.
func content(msg message, reply Reply) []map[string]any {
	blocks := []map[string]any{}
	if reply.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": reply.Text})
	}
	for i, tool := range reply.Tools {
		blocks = append(blocks, map[string]any{
			"type": "tool_use", "id": toolID(msg.ID, i), "name": tool.Name, "input": tool.Input,
		})
	}
	return blocks
}

// toolID names the nth tool call of a message, from 0.
func toolID(message string, nth int) string { return fmt.Sprintf("toolu_%s_%d", message, nth) }

// stopReason is "tool_use" after a tool call, else "end_turn".
func stopReason(reply Reply) *string {
	reason := "end_turn"
	if len(reply.Tools) > 0 {
		reason = "tool_use"
	}
	return &reason
}

// writeError sends the API's error body. The status alone tells the client
// whether to retry.
func writeError(w http.ResponseWriter, reply Reply) {
	writeJSON(w, reply.Err.Status, map[string]any{
		"type":  "error",
		"error": map[string]string{"type": reply.Err.Type, "message": reply.Err.Message},
	})
}

// writeJSON sends v. A write error means that the client has gone.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
