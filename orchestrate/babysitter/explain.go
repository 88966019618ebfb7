package babysitter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/tidwall/gjson"

	"heartbeat/orchestrate/effect"
)

// Kinds of failure, for [errors.Is]. Each error is a sentence: which command failed, for which run, why, what to do.
var (
	// ErrResolved: the effect has its result, and keeps it.
	ErrResolved = errors.New("the effect is resolved already")
	// ErrLocked: another process works on the run, and did not end within the wait.
	ErrLocked = errors.New("the run is locked")
	// ErrTimeout: the CLI did not answer in time, even the second time.
	ErrTimeout = errors.New("the babysitter CLI did not answer in time")
	// ErrOutput: the CLI ended without an answer, as when process code ends the program, or waits for what never comes.
	ErrOutput = errors.New("the babysitter CLI gave no answer")
)

// problem is a sentence for people that matches one of the errors above without containing its text.
type problem struct{ kind, sentence error }

func (p *problem) Error() string { return p.sentence.Error() }

func (p *problem) Unwrap() []error { return []error{p.kind, p.sentence} }

func fault(kind error, format string, args ...any) error {
	return &problem{kind, fmt.Errorf(format, args...)}
}

// knownMessages are the messages of the CLI, in the order in which they are tried, and what to do about each.
var knownMessages = []struct {
	pattern func() *regexp.Regexp
	kind    error
	advice  string
}{
	{lazily(`run\.lock already held|ENOENT[^\n]*run\.lock'`), ErrLocked, ""},
	{lazily(`is already resolved|is not requested \(status=resolved`), ErrResolved, ""},
	{lazily(`Failed to (parse|load) journal|Journal (seq|sequence|ULID)|[Ii]nvalid (journal|ULID on journal)|Duplicate (effectId|invocation key) detected|` +
		`Malformed EFFECT_|Unknown EFFECT_RESOLVED status|EFFECT_RESOLVED references unknown|^Effect \S+ already resolved|ENOENT[^\n]*scandir[^\n]*/journal'`), nil,
		": mend it with run:repair-journal, once nothing else works on the run"},
	{lazily(`was not a function in`), nil,
		": the module must have that export; one with a default export only is named with #default when the run is made"},
	{lazily(`UnknownCommandError|Unknown command:`), ErrOutput,
		": this is another CLI than the one that heartbeat knows: " + effect.Install},
}

func (c *CLI) explain(r request, out result) error {
	text, own := message(r.command, out.stderr)
	words := brief(text)
	if words != "" {
		words = ": " + words
	}
	if out.timedOut {
		return fault(ErrTimeout, "%s: no answer in time%s", r.doing, words)
	}
	for _, s := range knownMessages {
		if s.pattern().MatchString(text) {
			err := fmt.Errorf("%s: %s%s", r.doing, brief(text), s.advice)
			if s.kind == nil {
				return err
			}
			return &problem{s.kind, err}
		}
	}
	switch {
	case out.cut:
		return fault(ErrOutput, "%s: it printed more than %d MiB, and its answer was cut off: have the process ask for less at once, with large inputs in files", r.doing, outputLimit>>20)
	case out.code == 126 || out.code == 127:
		return fmt.Errorf("%s: %s does not run%s: is node installed?", r.doing, c.commandLine(), words)
	case out.code == 1 && own:
		return fmt.Errorf("%s: %s", r.doing, brief(text))
	}
	// The CLI printed no message of its own.
	how := fmt.Sprintf("ended with status %d", out.code)
	if out.code < 0 {
		how = "was killed"
	}
	hint := ""
	switch {
	case r.command == "version":
		hint = fmt.Sprintf(": is this the babysitter CLI? It is installed with %s", effect.Install)
	case r.command != "run:iterate": // which alone runs the process
	case out.code == 0:
		hint = ": does the process end the program, or wait for a promise that is never settled?"
	case out.code > 0:
		hint = ": does the process end the program, or leave a rejected promise alone?"
	}
	return fault(ErrOutput, "%s: %s %s without an answer%s%s", r.doing, c.commandLine(), how, words, hint)
}

// thrown matches the first line of a stack trace.
var thrown = lazily(`(?m)^[A-Za-z]*Error(: |\b).*$`)

// staleLock matches what the CLI prints about the lock of a killed process, before it continues.
var staleLock = lazily(`(?m)^Stale lock detected: .*$`)

// message returns the CLI's message in its error output: an object with name and message; the text after the command's
// name in brackets; the error that ended the program; or else all of the output, which is the CLI's own only when it
// makes a run.
func message(command string, stderr []byte) (text string, own bool) {
	if e, ok := findObject(stderr, func(e gjson.Result) bool {
		return e.Get("name").Str != "" && e.Get("message").Str != "" && e.Get("category").Str != ""
	}); ok {
		text := e.Get("message").Str
		if name := e.Get("name").Str; name == "UnknownCommandError" || name == "SyntaxError" {
			text = name + ": " + text
		}
		return text, true
	}
	s := strings.TrimSpace(staleLock().ReplaceAllString(string(stderr), ""))
	if i := strings.LastIndex("\n"+s, "\n["+command+"]"); i >= 0 {
		s = s[i+len(command)+2:]
		return strings.TrimPrefix(strings.TrimSpace(s), "Error: "), true
	}
	own = command == "run:create" && s != ""
	if uncaught := thrown().FindString(s); uncaught != "" {
		return uncaught, own
	}
	return s, own
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

// lazily compiles a pattern on first use: most commands that link this package never call babysitter.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
