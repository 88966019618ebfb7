package claude

import (
	"strings"
	"time"
	"unicode/utf16"

	"heartbeat/internal/flat"
)

// MaxWake is the longest text, in UTF-16 units, that wakes a session whole. The client cuts the middle out of a text of
// more than 100,000.
const MaxWake = 90_000

// FitsWake reports whether a text arrives whole when it wakes a session.
func FitsWake(text string) bool { return fits(text, MaxWake) }

// fits counts UTF-16 units, as JavaScript does.
func fits(text string, units int) bool {
	if len(text) <= units {
		return true
	}
	for _, r := range text {
		if units -= utf16.RuneLen(r); units < 0 {
			return false
		}
	}
	return true
}

// TaskNotification begins the prompts in which the client reports the end of a background task.
const TaskNotification = "<task-notification>"

// announcement occurs in the prompts in which the client passes on what a hook said.
const announcement = "hook blocking error from command"

// IsWakePrompt reports whether the client passes on, in this prompt, the text that woke the session. The client puts
// the text after the hook's name, inside tags. It escapes one of those tags in the text, and may trim the text. A short
// text may also occur in what precedes it or in another hook's text, so pass a part that is unique.
func IsWakePrompt(prompt, text string) bool {
	const tag = "</system-reminder"
	_, handed, found := strings.Cut(prompt, announcement)
	text = strings.TrimSpace(text)
	return found && (strings.Contains(handed, text) ||
		strings.Contains(handed, strings.ReplaceAll(text, tag, "&lt;"+tag[1:])))
}

// Failed is false: the client tells a hook of API errors.
func (Delivery) Failed() (at time.Time, name, message string, failed bool) { return }

// Woke reports whether the transcript shows that the text woke the session: in the turn with this prompt_id, or in any
// turn if promptID is empty.
func (d Delivery) Woke(promptID string) bool {
	took := false
	err := d.each(func(l *flat.Members, _ int64) {
		if l.String("type") == "user" && (promptID == "" || l.String("promptId") == promptID) {
			took = took || IsWakePrompt(l.Value("message").Get("content").Text(), d.Text)
		}
	})
	return err == nil && took
}
