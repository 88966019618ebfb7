package settings

import (
	"errors"
	"fmt"
	"strings"
)

// ErrChanged means that another program wrote the settings file while it was being edited. Nothing was written; try again.
var ErrChanged = errors.New("the file changed while it was being edited: try again")

// SyntaxError means that the file is not JSON, not even with comments. Err names the line and the column.
type SyntaxError struct{ Err error }

// Error implements error.
func (e *SyntaxError) Error() string {
	detail := strings.TrimPrefix(e.Err.Error(), "hujson: ")
	return "not valid JSON: " + clip(detail) + ": correct the file, then try again"
}

// Unwrap returns the parser's error; a file that ends too early wraps io.ErrUnexpectedEOF.
func (e *SyntaxError) Unwrap() error { return e.Err }

// ShapeError means that a member of the file has the wrong type, so that nothing can be wired into it.
type ShapeError struct {
	Member     string // such as "hooks.Stop", or "top level"
	Line       int    // 1-based
	Offset     int    // in bytes, not counting a byte order mark
	Have, Want string // such as "a string" and "an array"
}

// Error implements error.
func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s at line %d (byte %d) is %s, want %s: correct the file, then try again",
		e.Member, e.Line, e.Offset, e.Have, e.Want)
}

// EnvError means that a variable that heartbeat needs has another value. It was not changed.
type EnvError struct {
	Key  string
	Have string // as the file spells it
	Want string
	Line int // 1-based
}

// Error implements error.
func (e *EnvError) Error() string {
	return fmt.Sprintf("env.%s at line %d is %s, heartbeat needs %q: it was not overwritten; "+
		"remove it or set it to %q, then try again", e.Key, e.Line, clip(e.Have), e.Want, e.Want)
}

// ClashError means that a hook that this package did not write, and so does not change, takes entries from the same
// inbox, or perhaps from the same inbox. With a second hook wired, each entry could go to either.
type ClashError struct {
	Member  string // such as "hooks.Stop[0].hooks[1]"
	Line    int    // 1-based
	Command string // with its arguments
	Inbox   string // of the wiring
	Certain bool   // false if the command does not show exactly which inbox it uses
}

// Error implements error.
func (e *ClashError) Error() string {
	verb := "may already serve"
	if e.Certain {
		verb = "already serves"
	}
	return fmt.Sprintf("%s at line %d %s inbox %s (%q): remove that hook or name another inbox in it, then try again",
		e.Member, e.Line, verb, e.Inbox, clip(e.Command))
}

// clip shortens text from the file, which may be of any length, for use in a message.
func clip(text string) string {
	const limit = 160
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}
