package claude

import (
	"strings"
	"unicode/utf16"

	"github.com/tidwall/gjson"
)

// MaxWake is how many characters (UTF-16 units) a text may have that wakes a
// session: the client cuts one of more than 100,000 in the middle.
const MaxWake = 90_000

// FitsWake reports whether a text arrives whole when it wakes a session.
func FitsWake(text string) bool { return fits(text, MaxWake) }

// fits counts as JavaScript does.
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

// TaskNotification begins the client's own prompts that tell what came of a task in
// the background.
const TaskNotification = "<task-notification>"

// announcement is in the client's own prompts that hand over what a hook said.
const announcement = "hook blocking error from command"

// Woke reports whether a prompt is the client's own, by which it hands over a
// text that woke the session. The client puts the text behind the name of the
// hook, inside tags of its own, one of which it escapes where the text has it.
// A short text may be in what stands before that, and in what another hook says:
// give a part of it that nobody else's text has. The space around a text need not
// survive.
func Woke(prompt, text string) bool {
	const tag = "</system-reminder"
	_, handed, found := strings.Cut(prompt, announcement)
	text = strings.TrimSpace(text)
	return found && (strings.Contains(handed, text) ||
		strings.Contains(handed, strings.ReplaceAll(text, tag, "&lt;"+tag[1:])))
}

// TookUp reports whether the transcript shows that the text woke the session, in
// the turn with that prompt_id, or in any if it is empty.
func (d Delivery) TookUp(promptID string) bool {
	took := false
	err := d.each(func(l gjson.Result, _ int64) {
		if l.Get("type").Str == "user" && (promptID == "" || l.Get("promptId").Str == promptID) {
			took = took || Woke(l.Get("message.content").Str, d.Text)
		}
	})
	return err == nil && took
}
