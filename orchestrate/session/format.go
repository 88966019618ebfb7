package session

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Parse reads a state file as the CLI does, which accepts anything: a field that is missing
// or invalid has its default (not active, iteration 1, at most 256), and a file without
// front matter is all prompt.
func Parse(b []byte) State {
	fields, body := split(string(b))
	return State{
		Active:          strings.EqualFold(fields["active"], "true"),
		Iteration:       number(fields["iteration"], 1),
		MaxIterations:   number(fields["max_iterations"], DefaultMaxIterations),
		RunID:           fields["run_id"],
		StartedAt:       fields["started_at"],
		LastIterationAt: fields["last_iteration_at"],
		IterationTimes:  seconds(fields["iteration_times"]),
		Prompt:          body,
	}
}

// split separates the front matter from the body. Text before the first rule is skipped,
// and without a second rule everything is body.
func split(content string) (fields map[string]string, body string) {
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

// unquote removes one pair of quotes. Like the CLI, it takes a single quote for an empty
// quoted text.
func unquote(s string) string {
	for _, q := range []string{`"`, `'`} {
		if strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[1:max(1, len(s)-1)]
		}
	}
	return s
}

// maxNumber is the largest integer that the CLI's numbers hold exactly.
const maxNumber = 1 << 53

// number is JavaScript's parseInt: the digits at the start of s, or the default if there
// are none. A number that is too large becomes the largest possible.
func number(s string, otherwise int) int {
	if n, ok := parseInt(s); ok {
		return n
	}
	return otherwise
}

func parseInt(s string) (n int, ok bool) {
	s = trim(s)
	end := 0
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		end = 1
	}
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	f, err := strconv.ParseFloat(s[:end], 64)
	if err != nil { // no digits, or too many
		return 0, false
	}
	return int(math.Max(-maxNumber, math.Min(f, maxNumber))), true
}

func seconds(csv string) (times []int) {
	for _, s := range strings.Split(csv, ",") {
		if n, ok := parseInt(s); ok && n > 0 {
			times = append(times, n)
		}
	}
	return times
}

// Format writes a state as the CLI does. It fails if the format cannot represent the state:
// a line break in a field, or a number below 0.
func (s State) Format() ([]byte, error) {
	for _, v := range []string{s.RunID, s.StartedAt, s.LastIterationAt} {
		if strings.Contains(v, "\n") {
			return nil, fmt.Errorf("spell a session's state: %q has a line break", v)
		}
	}
	if s.Iteration < 0 || s.MaxIterations < 0 {
		return nil, fmt.Errorf("spell a session's state: iteration %d of at most %d: neither may be below 0", s.Iteration, s.MaxIterations)
	}
	times := make([]string, len(s.IterationTimes))
	for i, t := range s.IterationTimes {
		times[i] = strconv.Itoa(t)
	}
	return fmt.Appendf(nil, `---
active: %t
iteration: %d
max_iterations: %d
run_id: "%s"
started_at: "%s"
last_iteration_at: "%s"
iteration_times: %s
---

%s
`, s.Active, s.Iteration, s.MaxIterations, s.RunID, s.StartedAt, s.LastIterationAt, strings.Join(times, ","), trim(s.Prompt)), nil
}
