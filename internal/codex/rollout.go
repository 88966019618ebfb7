// Package codex holds what heartbeat knows about OpenAI's Codex: which process the client is, what its rollout files
// show, and how long a hook's text may be. It knows nothing about queues. All behaviour was measured on release
// 0.169.0.
//
// A rollout is a session's transcript, a JSONL file. Its lines have a type and a payload; those of type event_msg tell
// what happened, in order:
//
//	task_started    a turn begins, with its turn_id
//	item_completed  an item of the turn: UserMessage, HookPrompt, AgentMessage, a tool's call ...
//	task_complete   the turn ended, after its Stop hooks have approved that, or with an error
//	turn_aborted    a person ended it
//
// A Stop that hooks blocked shows as one HookPrompt, with a fragment for each hook.
package codex

import (
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
	"heartbeat/internal/machine"
)

// IsRollout reports whether a transcript has a name that the client gives its rollouts.
func IsRollout(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "rollout-") && strings.HasSuffix(name, ".jsonl")
}

type line struct {
	kind  string // its type
	stamp string // when it was written
	flat.Value
}

func lineOf(raw []byte) line {
	l := flat.Begun(raw)
	return line{l.String("type"), l.String("timestamp"), l.Value("payload")}
}

func (l line) is(event string) bool { return l.kind == "event_msg" && l.Get("type").Text() == event }

// item returns the item of that type that the line completes, or "".
func (l line) item(kind string) flat.Value {
	item := l.Get("item")
	if !l.is("item_completed") || item.Get("type").Text() != kind {
		return ""
	}
	return item
}

// isPrompt recognises what a person or a program asked.
func (l line) isPrompt() bool { return l.item("UserMessage") != "" }

// hookPrompt returns the item with the texts of the Stop hooks that blocked, or "".
func (l line) hookPrompt() flat.Value { return l.item("HookPrompt") }

// hands reports whether a Stop hook handed the text over in this line, perhaps after a preamble. The client trims both
// ends of the text.
func (l line) hands(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && slices.ContainsFunc(l.hookPrompt().Get("fragments").Items(), func(f flat.Value) bool {
		fragment := strings.TrimSpace(f.Get("text").Text())
		return fragment == text || strings.HasSuffix(fragment, "\n\n"+text)
	})
}

// isAnswer recognises what the model wrote or asked for.
func (l line) isAnswer() bool {
	if l.kind != "response_item" {
		return false
	}
	switch l.Get("type").Text() {
	case "message":
		return l.Get("role").Text() == "assistant"
	case "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call":
		return true
	}
	return false
}

// reply returns the text of the model in this line, "" for none.
func (l line) reply() string {
	if !l.isAnswer() || l.Get("type").Text() != "message" {
		return ""
	}
	var all []string
	for _, part := range l.Get("content").Items() {
		if t := part.Get("text"); t.IsString() {
			all = append(all, t.Text())
		}
	}
	return strings.Join(all, "\n")
}

func (l line) begins(turn string) bool {
	return l.is("task_started") && turn != "" && l.Get("turn_id").Text() != turn
}

// HasReply reports whether a rollout has, between two offsets, a reply and after it the token usage of the reply's request.
// It reads only the last 256 KiB before to.
func HasReply(path string, from, to int64, reply string) bool {
	replied, counted := false, false
	err := handed.Back(path, from, to, func(raw []byte) {
		switch l := lineOf(raw); {
		case l.reply() == reply && reply != "":
			replied, counted = true, false
		case l.kind == "token_usage_record":
			counted = replied
		}
	})
	return err == nil && counted
}

// Command is the client's program.
const Command = "codex"

// IsName reports whether a process of this name is the client.
func IsName(name string) bool { return machine.ProgramOf(name) == Command }

// PID returns the id of the nearest process named codex, from a hook's parent upwards, or 0. The client does not name
// itself to its hooks.
func PID(parent int) int {
	return machine.Nearest(parent, func(pid int) bool { return IsName(machine.Name(pid)) })
}

// MaxReason is how many bytes a Stop hook may block with. The client cuts a text of more than 2,500 tokens, counted as
// four bytes each, and names a file that has all of it.
const MaxReason = 9_000

// IsToolRunning reports whether the model asked for a tool that has no result yet. It reads only the last 256 KiB before
// size.
func IsToolRunning(path string, size int64) bool {
	asked := map[string]bool{}
	err := handed.Back(path, 0, size, func(raw []byte) {
		l := lineOf(raw)
		if l.is("task_started") {
			clear(asked) // what ran before ended with its turn
		}
		switch call := l.Get("call_id").Text(); {
		case l.kind != "response_item" || call == "":
		case strings.HasSuffix(l.Get("type").Text(), "_call"):
			asked[call] = true
		default:
			delete(asked, call)
		}
	})
	return err == nil && len(asked) > 0
}
