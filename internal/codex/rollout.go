package codex

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/lines"
)

// IsRollout reports whether a transcript is named as the client names its rollouts.
func IsRollout(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "rollout-") && strings.HasSuffix(name, ".jsonl")
}

// line is a line of a rollout.
type line struct {
	kind string // its type
	flat.Value
}

func lineOf(raw []byte) line {
	l := flat.Begun(raw)
	return line{l.String("type"), l.Value("payload")}
}

// is reports whether the line tells of an event.
func (l line) is(event string) bool { return l.kind == "event_msg" && l.Get("type").Text() == event }

// item is the item that the line says was completed, and its type.
func (l line) item() (flat.Value, string) {
	if !l.is("item_completed") {
		return "", ""
	}
	item := l.Get("item")
	return item, item.Get("type").Text()
}

// isPrompt recognises what a person, or a program, asked.
func (l line) isPrompt() bool {
	_, kind := l.item()
	return kind == "UserMessage"
}

// isHookPrompt recognises what Stop hooks blocked with.
func (l line) isHookPrompt() bool {
	_, kind := l.item()
	return kind == "HookPrompt"
}

// hands reports whether a Stop hook handed the text over in this line, perhaps behind a
// preamble. The client takes blanks off both its ends.
func (l line) hands(text string) bool {
	item, kind := l.item()
	if kind != "HookPrompt" {
		return false
	}
	text = strings.TrimSpace(text)
	return text != "" && slices.ContainsFunc(item.Get("fragments").Items(), func(f flat.Value) bool {
		said := strings.TrimSpace(f.Get("text").Text())
		return said == text || strings.HasSuffix(said, "\n\n"+text)
	})
}

// isAnswer recognises what the model said or asked for.
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

// reply is what the model said in this line, "" for nothing.
func (l line) reply() string {
	if l.kind != "response_item" || l.Get("type").Text() != "message" || l.Get("role").Text() != "assistant" {
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

// begins reports whether the line begins another turn than the one with this id.
func (l line) begins(turn string) bool {
	return l.is("task_started") && turn != "" && l.Get("turn_id").Text() != turn
}

// errNotGrown says that a rollout shows nothing yet.
var errNotGrown = errors.New("the rollout has not grown")

// each calls f for every whole line from an offset on, with the line's offset, and up to
// end, 0 for all. It is an error if there is none since size.
func each(path string, from, size, end int64, f func(l line, at int64)) error {
	file, err := disk.OpenForeign(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close() // it was only read
	grown := false
	err = lines.Each(io.NewSectionReader(file, from, 1<<62), from, func(start, _ int64, raw []byte, whole bool) bool {
		if !whole || end != 0 && start >= end { // a last line may still be being written
			return false
		}
		if len(raw) > 0 && len(raw) <= lines.Max {
			grown = grown || start >= size
			f(lineOf(raw), start)
		}
		return true
	})
	if err != nil {
		return err
	}
	if !grown {
		return errNotGrown
	}
	return nil
}
