package claude

import (
	"cmp"
	"fmt"

	"github.com/tidwall/gjson"

	"heartbeat/internal/flat"
)

// Names of the hook events that heartbeat acts on.
const (
	EventStop             = "Stop"
	EventStopFailure      = "StopFailure"
	EventSubagentStop     = "SubagentStop"
	EventSessionStart     = "SessionStart"
	EventSessionEnd       = "SessionEnd"
	EventUserPromptSubmit = "UserPromptSubmit"
	EventNotification     = "Notification"
)

// Input is what a hook gets on stdin. Members that a release or an event lacks
// are empty.
type Input struct {
	Event          string // hook_event_name
	SessionID      string
	PromptID       string // since 2.1.196
	AgentID        string // only inside a subagent
	TranscriptPath string
	StopHookActive bool
	// LastMessage is last_assistant_message, the assistant's last text, since
	// 2.1.47; of a StopFailure, the text of the error.
	LastMessage string
	Error       string // of a StopFailure
	Source      string // of a SessionStart: startup, resume, clear or compact
	Prompt      string // of a UserPromptSubmit
	// Tasks are those that run in the background, of a Stop, since 2.1.145.
	Tasks []Task
	// Notification is the notification_type of a Notification, and Message its text.
	Notification, Message string
}

// Task is one that a turn left running in the background.
type Task struct {
	ID   string
	Type string // such as shell
	Text string // what it does, in words, or its command
}

// parseTasks reads background_tasks. What is no task there is left out, and so is
// one that has ended.
func parseTasks(raw []byte) (tasks []Task) {
	if len(raw) <= len("[]") {
		return nil // the usual case
	}
	for _, t := range gjson.ParseBytes(raw).Array() {
		id, status := t.Get("id").String(), t.Get("status").String()
		if id == "" || status != "" && status != "running" && status != "pending" {
			continue
		}
		tasks = append(tasks, Task{id, t.Get("type").String(), cmp.Or(t.Get("description").String(), t.Get("command").String())})
	}
	return tasks
}

// ParseInput reads a hook's stdin. Unknown members are left out; a known one of
// another type is an error.
func ParseInput(b []byte) (*Input, error) {
	m, err := flat.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("hook input (%d bytes): %w", len(b), err)
	}
	in := &Input{
		Event:          m.String("hook_event_name"),
		SessionID:      m.String("session_id"),
		PromptID:       m.String("prompt_id"),
		AgentID:        m.String("agent_id"),
		TranscriptPath: m.String("transcript_path"),
		StopHookActive: m.Bool("stop_hook_active"),
		LastMessage:    m.String("last_assistant_message"),
		Error:          m.String("error"),
		Source:         m.String("source"),
		Prompt:         m.String("prompt"),
		Notification:   m.String("notification_type"),
		Message:        m.String("message"),
		Tasks:          parseTasks(m.Raw("background_tasks")),
	}
	if err := m.Err(); err != nil {
		return nil, fmt.Errorf("hook input: %w", err)
	}
	return in, nil
}
