package orchestrate

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

const (
	// DefaultMaxIterations is the CLI's default limit.
	DefaultMaxIterations = 256
	// KeepLimit in a state has [StateFile.Bind] keep the limit that the session has.
	KeepLimit = -1
)

// State is the content of a state file.
type State struct {
	Active        bool
	Iteration     int    // counts from 1
	MaxIterations int    // 0 is no limit
	RunID         string // empty until a run is bound
	// StartedAt and LastIterationAt have the form of [StateStamp]. A value read from a file is kept as it is.
	StartedAt       string
	LastIterationAt string
	// Prompt is the person's prompt, without white space around it.
	Prompt string
}

// NewState returns the state of a session at its start.
func NewState(runID, prompt string, maxIterations int, now time.Time) State {
	return State{
		Active: true, Iteration: 1, MaxIterations: maxIterations, RunID: runID, Prompt: prompt,
		StartedAt: StateStamp(now), LastIterationAt: StateStamp(now),
	}
}

// StateStamp formats a time for the state file: RFC 3339, UTC, whole seconds.
func StateStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// IterationFigures returns an iteration and its limit in words; 0 is no limit.
func IterationFigures(iteration, most int) string {
	text := fmt.Sprintf("iteration %d", iteration)
	if most > 0 {
		text += fmt.Sprintf("/%d", most)
	}
	return text
}

// Next returns the state at the start of the next iteration, which is now.
func (s State) Next(now time.Time) State {
	s.Iteration++
	s.LastIterationAt = StateStamp(now)
	return s
}

// Limit returns a sentence if the session has used up its iterations, else "".
func (s State) Limit() string {
	if s.MaxIterations == 0 || s.Iteration < s.MaxIterations {
		return ""
	}
	return fmt.Sprintf("its session has had its %d iterations (max_iterations)", s.MaxIterations)
}

// ParseState reads a state file as the CLI does, which accepts anything. A missing or invalid field has its default (not
// active, iteration 1, at most 256), and a file without front matter is all prompt.
func ParseState(b []byte) State {
	fields, body := splitFrontMatter(string(b))
	return State{
		Active:          strings.EqualFold(fields["active"], "true"),
		Iteration:       parseInt(fields["iteration"], 1),
		MaxIterations:   parseInt(fields["max_iterations"], DefaultMaxIterations),
		RunID:           fields["run_id"],
		StartedAt:       fields["started_at"],
		LastIterationAt: fields["last_iteration_at"],
		Prompt:          body,
	}
}

// splitFrontMatter separates front matter and body. It skips text before the first rule. Without a second one, all is body.
func splitFrontMatter(content string) (fields map[string]string, body string) {
	fields = map[string]string{}
	inside := false
	for rest := content; ; {
		line, after, more := strings.Cut(rest, "\n")
		line = trim(line)
		switch {
		case line == "---" && inside:
			return fields, trim(after)
		case line == "---":
			inside = true
		case inside:
			if name, value, ok := strings.Cut(line, ":"); ok && name != "" {
				fields[trim(name)] = unquote(trim(value))
			}
		}
		if !more {
			return fields, content
		}
		rest = after
	}
}

// unquote removes one pair of quotes. Like the CLI, it takes a single quote for an empty quoted text.
func unquote(s string) string {
	for _, q := range []string{`"`, `'`} {
		if strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[1:max(1, len(s)-1)]
		}
	}
	return s
}

// parseInt is JavaScript's parseInt: the digits at the start of s, or the default if there are none, or too many.
func parseInt(s string, otherwise int) (n int) {
	if _, err := fmt.Sscanf(trim(s), "%d", &n); err != nil {
		return otherwise
	}
	return n
}

// Format writes a state as the CLI does, without the times of iterations, which only babysitter's own hook uses. It
// fails on a line break in a field, or a number below 0.
func (s State) Format() ([]byte, error) {
	for _, v := range []string{s.RunID, s.StartedAt, s.LastIterationAt} {
		if strings.Contains(v, "\n") {
			return nil, fmt.Errorf("spell a session's state: %q has a line break", v)
		}
	}
	if s.Iteration < 0 || s.MaxIterations < 0 {
		return nil, fmt.Errorf("spell a session's state: iteration %d of at most %d: neither may be below 0", s.Iteration, s.MaxIterations)
	}
	return fmt.Appendf(nil, `---
active: %t
iteration: %d
max_iterations: %d
run_id: "%s"
started_at: "%s"
last_iteration_at: "%s"
iteration_times: 
---

%s
`, s.Active, s.Iteration, s.MaxIterations, s.RunID, s.StartedAt, s.LastIterationAt, trim(s.Prompt)), nil
}

// isSpace reports whether r is white space to JavaScript, in which the CLI trims: a byte order mark is, U+0085 is not.
func isSpace(r rune) bool {
	return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r)
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }
