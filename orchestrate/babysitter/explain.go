package babysitter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"heartbeat/orchestrate/babysitter/invocation"
)

// sayings are the messages of the CLI, in the order in which they are tried, and what to do
// about each.
var sayings = []struct {
	pattern func() *regexp.Regexp
	kind    error
	advice  string
}{
	{lazily(`run\.lock already held|ENOENT[^\n]*run\.lock'`), ErrLocked, ""},
	{lazily(`ENOENT[^\n]*run\.json'|unable to read run metadata[^\n]*ENOENT`), ErrNoRun, ""},
	{lazily(`is already resolved|is not requested \(status=resolved`), ErrResolved, ""},
	{lazily(`^effect \S+ not found|Unknown effectId`), ErrUnknownEffect, ""},
	{lazily(`Failed to (parse|load) journal|Journal (seq|sequence|ULID)|[Ii]nvalid (journal|ULID on journal)|Duplicate (effectId|invocation key) detected|` +
		`Malformed EFFECT_|Unknown EFFECT_RESOLVED status|EFFECT_RESOLVED references unknown|^Effect \S+ already resolved|ENOENT[^\n]*scandir[^\n]*/journal'`), ErrJournal,
		": mend it with run:repair-journal, once nothing else works on the run"},
	{lazily(`was not a function in`), ErrProcess,
		": the module must have that export; one with a default export only is named with #default when the run is made"},
	{lazily(`Failed to load process module|Process import path is missing|Process entry file not found|Process module .* does not export`), ErrProcess, ""},
	{lazily(`UnknownCommandError|Unknown command:`), ErrOutput,
		": this is another CLI than the one that heartbeat knows: " + invocation.Install},
}

// explain is the error of a call without an answer.
func (c *CLI) explain(r request, out result) error {
	said := message(r.command, out.stderr)
	if out.timedOut {
		return &problem{kind: ErrTimeout, sentence: fmt.Sprintf("%s: no answer in time%s", r.doing, colon(brief(said)))}
	}
	for _, s := range sayings {
		if s.pattern().MatchString(said) {
			return &problem{kind: s.kind, sentence: fmt.Sprintf("%s: %s%s", r.doing, brief(said), s.advice)}
		}
	}
	switch {
	case out.code == 126 || out.code == 127:
		return &problem{kind: ErrMissing, sentence: fmt.Sprintf("%s: %s does not run%s: is node installed?", r.doing, c.shown(), colon(brief(said)))}
	case out.code == 1 && fromCLI(r.command, out.stderr):
		return &problem{sentence: fmt.Sprintf("%s: %s", r.doing, brief(said))}
	}
	return c.silent(r, out)
}

// silent is the error of a CLI that ended and printed nothing.
func (c *CLI) silent(r request, out result) error {
	how := fmt.Sprintf("ended with status %d", out.code)
	if out.code < 0 {
		how = "was killed"
	}
	hint := ""
	switch {
	case r.command == "version":
		hint = fmt.Sprintf(": is this the babysitter CLI? It is installed with %s", invocation.Install)
	case out.code == 0:
		hint = ": does the process wait for a promise that is never settled?"
	case out.code > 0:
		hint = ": does the process end the program, or leave a rejected promise alone?"
	}
	return &problem{kind: ErrOutput, sentence: fmt.Sprintf("%s: %s %s without an answer%s%s", r.doing, c.shown(), how, colon(brief(message(r.command, out.stderr))), hint)}
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// thrown matches the first line of a stack trace.
var thrown = lazily(`(?m)^[A-Za-z]*Error(: |\b).*$`)

// staleLock matches what the CLI prints about the lock of a killed process, before it
// continues.
var staleLock = lazily(`(?m)^Stale lock detected: .*$`)

// message picks the CLI's own message from its error output: an object with name and
// message; the text after the command's name in brackets; the error that ended the program;
// or else all of the output.
func message(command string, stderr []byte) string {
	if said, ok := findError(stderr); ok {
		return said
	}
	s := strings.TrimSpace(staleLock().ReplaceAllString(string(stderr), ""))
	if i := prefixAt(command, s); i >= 0 {
		s = s[i+len(command)+2:]
		return strings.TrimPrefix(strings.TrimSpace(s), "Error: ")
	}
	if uncaught := thrown().FindString(s); uncaught != "" {
		return uncaught
	}
	return s
}

func prefixAt(command, stderr string) int {
	return strings.LastIndex("\n"+stderr, "\n["+command+"]")
}

func fromCLI(command string, stderr []byte) bool {
	_, ok := findError(stderr)
	return ok || prefixAt(command, string(stderr)) >= 0 || command == "run:create" && len(bytes.TrimSpace(stderr)) > 0
}

func findError(stderr []byte) (string, bool) {
	type structured struct {
		Name, Message, Category string
		Details                 json.RawMessage
	}
	e, ok := find(stderr, func(e *structured) bool { return e.Name != "" && e.Message != "" && e.Category != "" })
	if !ok {
		return "", false
	}
	if e.Name == "UnknownCommandError" || e.Name == "SyntaxError" {
		return e.Name + ": " + e.Message, true
	}
	return e.Message, true
}

// brief shortens a message so that it fits into a sentence.
func brief(s string) string {
	const most = 600
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " …"
	}
	return strings.TrimRight(s, ".:")
}
