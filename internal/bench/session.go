package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// session makes the input that a client gives its Stop hook.
type session struct {
	input stopInput
	turns int
}

// stopInput is what Claude Code 2.1 sends with a Stop, and Codex, which calls the prompt a turn.
type stopInput struct {
	SessionID      string `json:"session_id"`
	TranscriptPath string `json:"transcript_path"`
	Cwd            string `json:"cwd"`
	PromptID       string `json:"prompt_id,omitempty"`
	TurnID         string `json:"turn_id,omitempty"`
	PermissionMode string `json:"permission_mode"`
	Event          string `json:"hook_event_name"`
	Active         bool   `json:"stop_hook_active"`
	LastMessage    string `json:"last_assistant_message"`
}

// newSession returns a session whose transcript is in dir.
func newSession(dir string) (*session, error) {
	transcript := filepath.Join(dir, "transcript.txt")
	if err := os.WriteFile(transcript, []byte(`{"type":"user"}`+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &session{input: stopInput{
		SessionID: "5c1d2f3a-0000-4000-8000-000000000001", PromptID: "5c1d2f3a-0000-4000-8000-000000000002",
		TranscriptPath: transcript, Cwd: dir, PermissionMode: "bypassPermissions", Event: "Stop", Active: true,
	}}, nil
}

// stop returns the input at the end of the next turn, with a new reply.
func (s *session) stop() ([]byte, error) {
	s.turns++
	s.input.LastMessage = fmt.Sprintf("Reply %d: done, and the tests pass.", s.turns)
	return json.Marshal(s.input)
}

// blockReason reads a blocking decision and returns its text.
func blockReason(stdout []byte) (string, error) {
	var d struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if len(stdout) == 0 {
		return "", fmt.Errorf("the stop was approved")
	}
	if err := json.Unmarshal(stdout, &d); err != nil {
		return "", fmt.Errorf("no decision: %w: %.200q", err, stdout)
	}
	if d.Decision != "block" {
		return "", fmt.Errorf("the decision is %q", d.Decision)
	}
	return d.Reason, nil
}
