package claude

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// The hook events that heartbeat acts on.
const (
	EventStop             = "Stop"
	EventStopFailure      = "StopFailure"
	EventSubagentStop     = "SubagentStop"
	EventSessionStart     = "SessionStart"
	EventSessionEnd       = "SessionEnd"
	EventUserPromptSubmit = "UserPromptSubmit"
	EventNotification     = "Notification"
	// EventPostToolBatch follows the tools that one answer of the model asked for, even failed or denied ones, and
	// precedes the next request. Releases since 2.1.139, or earlier, have it.
	EventPostToolBatch = "PostToolBatch"
)

// Input is what a hook reads on stdin. Members that a release or an event lacks are empty.
type Input struct {
	Event     string // hook_event_name
	SessionID string
	// PromptID is prompt_id (since 2.1.196), or the turn_id of a client without it. It is the same along a chain of
	// blocks, and changes with each prompt.
	PromptID       string
	AgentID        string // set only inside a subagent
	TranscriptPath string
	Dir            string // cwd
	StopHookActive bool
	// LastMessage is last_assistant_message (since 2.1.47): the assistant's last text, or a StopFailure's error text.
	LastMessage string
	Error       string // of a StopFailure
	Source      string // of a SessionStart: startup, resume, clear or compact
	Prompt      string // of a UserPromptSubmit
	// Tasks run in the background; a Stop lists them since 2.1.145. [Input.Reports] has those whose end is unreported.
	Tasks []Task
	// Notification is a Notification's notification_type, and Message its text.
	Notification, Message string
	ToolUse               string // the tool_use_id of the first of a PostToolBatch's tool_calls
}

// Task is something that a turn left running in the background.
type Task struct {
	ID   string
	Type string // such as shell
	Text string // description, or command
}

// parseTasks reads background_tasks. It skips tasks that have ended, and members that are no tasks.
func parseTasks(raw []byte) (tasks []Task) {
	if len(raw) <= len("[]") {
		return nil // the usual case
	}
	for _, t := range flat.Value(raw).Items() {
		id, status := t.Get("id").Shown(), t.Get("status").Shown()
		if id == "" || status != "" && status != "running" && status != "pending" {
			continue
		}
		tasks = append(tasks, Task{id, t.Get("type").Shown(), cmp.Or(t.Get("description").Shown(), t.Get("command").Shown())})
	}
	return tasks
}

// ParseInput reads a hook's stdin. It ignores unknown members; a known member of the wrong type is an error.
func ParseInput(b []byte) (*Input, error) {
	m, err := flat.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("hook input (%d bytes): %w", len(b), err)
	}
	in := &Input{
		Event:          m.String("hook_event_name"),
		SessionID:      m.String("session_id"),
		PromptID:       cmp.Or(m.String("prompt_id"), m.String("turn_id")),
		AgentID:        m.String("agent_id"),
		TranscriptPath: m.String("transcript_path"),
		Dir:            m.Value("cwd").Text(),
		StopHookActive: m.Bool("stop_hook_active"),
		LastMessage:    m.String("last_assistant_message"),
		Error:          m.String("error"),
		Source:         m.String("source"),
		Prompt:         m.String("prompt"),
		Notification:   m.String("notification_type"),
		Message:        m.String("message"),
		Tasks:          parseTasks(m.Raw("background_tasks")),
	}
	if in.Event == EventPostToolBatch {
		if calls := m.Value("tool_calls").Items(); len(calls) > 0 {
			in.ToolUse = calls[0].Get("tool_use_id").Text()
		}
	}
	if err := m.Err(); err != nil {
		return nil, fmt.Errorf("hook input: %w", err)
	}
	return in, nil
}

// FixResumedTranscript corrects the transcript of a session that is resumed in another directory. At its start the client
// (2.1.329) names one below that directory, which it never creates; later events name the old one.
func (in *Input) FixResumedTranscript() {
	if in.Source != "resume" || in.TranscriptPath == "" || TranscriptSize(in.TranscriptPath) > 0 {
		return
	}
	projects := filepath.Dir(filepath.Dir(in.TranscriptPath))
	if all, _ := fs.Glob(os.DirFS(projects), "*/"+filepath.Base(in.TranscriptPath)); len(all) == 1 {
		in.TranscriptPath = filepath.Join(projects, all[0])
	}
}

// queueOperation is the type of the lines in which the client notes what it queues.
const queueOperation = "queue-operation"

// Reports returns the tasks that have ended, but whose report is still in the queue of the client that began to write the
// transcript at from. The client sends a report to the model with the next result of a tool, or as a prompt once no hook
// continues the turn. It writes what it queues at once, but what it takes from the queue up to seconds later: kept is
// current once the transcript shows the Stop's answer.
func (in *Input) Reports(from int64) (kept []Task, current bool) {
	size, queued, own := TranscriptSize(in.TranscriptPath), false, false
	_ = handed.Back(in.TranscriptPath, from, size, func(line []byte) {
		// To decode every line would take long.
		queued = queued || bytes.Contains(line, []byte("<task-id>")) && bytes.Contains(line, []byte(queueOperation))
	})
	if !queued {
		return nil, false
	}
	_ = handed.Back(in.TranscriptPath, from, size, func(line []byte) {
		l := flat.Begun(line)
		switch l.String("type") {
		case queueOperation:
			report := l.Value("content").Text()
			if id := between(report, "<task-id>", "</task-id>"); id != "" && l.String("operation") == "enqueue" {
				kept = append(kept, Task{ID: id, Text: between(report, "<summary>", "</summary>")})
				return
			}
		case "user":
			own, current = in.PromptID == "" || l.String("promptId") == in.PromptID, false
		case "assistant":
			current = own && isReply(l, ReplySum(in.LastMessage))
		}
		kept = slices.DeleteFunc(kept, func(t Task) bool { return bytes.Contains(line, []byte("<task-id>"+t.ID+"</task-id>")) })
	})
	return kept, current
}

// between returns what stands between two tags.
func between(text, begin, end string) string {
	_, text, _ = strings.Cut(text, begin)
	text, _, _ = strings.Cut(text, end)
	return text
}
