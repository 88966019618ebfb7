package claude

import (
	"strings"
	"time"
	"unicode/utf16"
)

// MaxWake is the longest text, in UTF-16 units, that may wake a session. From one of more than 100,000 the client cuts the
// middle.
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

// IsTaskReport reports whether the client tells of a background task in this prompt. A text that wakes the session comes
// in the same tag.
func IsTaskReport(prompt string) bool {
	report, is := strings.CutPrefix(strings.TrimSpace(prompt), "<task-notification>")
	return is && !strings.HasPrefix(strings.TrimSpace(report), "<summary>Stop hook feedback<")
}

// announcement occurs in the prompts in which the client passes on a hook's text.
const announcement = "hook blocking error from command"

// IsWakePrompt reports whether the client passes on, in this prompt, the text that woke the session. The client puts the
// text after the hook's name, inside tags. It escapes one of those tags in the text, and may trim the text. text must be
// unique: a short one may also occur before it or in another hook's text.
func IsWakePrompt(prompt, text string) bool {
	const tag = "</system-reminder"
	_, handed, found := strings.Cut(prompt, announcement)
	text = strings.TrimSpace(text)
	return found && (strings.Contains(handed, text) ||
		strings.Contains(handed, strings.ReplaceAll(text, tag, "&lt;"+tag[1:])))
}

// Failed returns false, because the client reports API errors to a hook.
func (Delivery) Failed() (at time.Time, name, message string, failed bool) { return }
