package session

import (
	"encoding/json"

	"heartbeat/inbox"
)

// lookAt reads what an assistant message says about itself: the model that it is from,
// and the error of the API that it stands for, nil for none.
func lookAt(raw json.RawMessage) (model string, failure *inbox.Failure) {
	var m struct {
		Error   json.RawMessage `json:"error"`
		Message struct {
			Model   string          `json:"model"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return "", nil
	}
	var name string
	if json.Unmarshal(m.Error, &name) != nil || name == "" {
		return m.Message.Model, nil
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	failure = &inbox.Failure{Error: name}
	if json.Unmarshal(m.Message.Content, &blocks) == nil {
		for _, b := range blocks {
			failure.Message += b.Text
		}
	}
	failure.Message, _ = cut(failure.Message, 4<<10)
	return m.Message.Model, failure
}

// sessionOf is the session that a line of a transcript is of.
func sessionOf(raw json.RawMessage) string {
	var m struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(raw, &m) // it is JSON; a member of another kind names no session
	return m.SessionID
}
