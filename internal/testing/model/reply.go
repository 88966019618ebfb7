package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Reply is what the model does with one request. Build it with Text, Tool,
// Error or Hang; After adds a delay to any of them.
type Reply struct {
	Text  string        // the answer's text; empty for no text block
	Tools []ToolUse     // tool calls after the text, which the client may run at the same time
	Err   *APIError     // an HTTP error instead of an answer, or nil
	Delay time.Duration // how long to hold the answer back
	Alive bool          // while a streamed answer is held back, say every few seconds that it comes, as the API does
	Hang  bool          // never answer; the connection stays open until Close
	Open  bool          // stream the answer's blocks and never its end
	Usage *Usage        // the tokens that it says it took, or nil for one in and one out
	Model string        // the model that answers, empty for the one that was asked
}

// Usage is what an answer says it took, in tokens.
type Usage struct {
	Input, Output, CacheRead int
	CacheWrite               int    // all that was written to the cache
	CacheWrite1h             int    // how much of CacheWrite is kept for an hour
	WebSearches              int    // not tokens, but searches
	Speed                    string // such as "fast", empty for none
}

// ToolUse is a tool_use block: the model asks the client to run a tool.
type ToolUse struct {
	Name  string          // such as "Bash"
	Input json.RawMessage // the tool's arguments, one JSON object
}

// APIError is an HTTP status with the API's error body.
type APIError struct {
	Status  int    // such as 529
	Type    string // such as "overloaded_error"
	Message string // in words
}

// Text answers with one text block and ends the turn.
func Text(s string) Reply { return Reply{Text: s} }

// Tool answers with one tool call, such as Tool("Bash", map[string]any{"command": "true"}).
// The client then sends the tool's result as the next main request. It panics
// when input cannot be JSON, which is a mistake in the script.
func Tool(name string, input map[string]any) Reply {
	if input == nil {
		input = map[string]any{} // the API sends an object, never null
	}
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("model: input of tool %s: %v", name, err))
	}
	return Reply{Tools: []ToolUse{{Name: name, Input: raw}}}
}

// And returns the same reply with the tool calls of another one behind its own.
func (r Reply) And(more Reply) Reply {
	r.Tools = slices.Concat(r.Tools, more.Tools)
	return r
}

// Error answers with an HTTP status and the API's error body.
func Error(status int, kind, message string) Reply {
	return Reply{Err: &APIError{Status: status, Type: kind, Message: message}}
}

// Overloaded is the API's 529.
func Overloaded() Reply { return Error(529, "overloaded_error", "Overloaded") }

// Hang never answers: the request stays open until the client gives up or the
// model is closed.
func Hang() Reply { return Reply{Hang: true} }

// Unended returns the same reply as one whose blocks are streamed and whose end never
// comes: the client has said it, and cannot end its turn.
func (r Reply) Unended() Reply {
	r.Open = true
	return r
}

// After returns the same reply held back for d. The wait ends early when the
// client gives up or the model is closed.
func (r Reply) After(d time.Duration) Reply {
	r.Delay = d
	return r
}

// Living returns the same reply, which says that it comes while it is held back: after five
// minutes of silence the client gives up.
func (r Reply) Living() Reply {
	r.Alive = true
	return r
}

// Using returns the same reply, which says that it took those tokens.
func (r Reply) Using(u Usage) Reply {
	r.Usage = &u
	return r
}

// By returns the same reply of a model of that name.
func (r Reply) By(model string) Reply {
	r.Model = model
	return r
}

// members are the figures as the API spells them.
func (u *Usage) members() map[string]any {
	if u == nil {
		return map[string]any{"input_tokens": 1, "output_tokens": 1}
	}
	all := map[string]any{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
	if u.CacheWrite1h > 0 {
		all["cache_creation"] = map[string]int{"ephemeral_1h_input_tokens": u.CacheWrite1h, "ephemeral_5m_input_tokens": u.CacheWrite - u.CacheWrite1h}
	}
	if u.WebSearches > 0 {
		all["server_tool_use"] = map[string]int{"web_search_requests": u.WebSearches}
	}
	if u.Speed != "" {
		all["speed"] = u.Speed
	}
	return all
}
