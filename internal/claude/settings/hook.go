package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hookName is the base name of the hook binary of heartbeat and of heartbeat-rs.
const hookName = "heartbeat-stop"

// maxSeconds is the longest time.Duration, 292 years. A file may have more to mean "no limit".
const maxSeconds = float64(math.MaxInt64 / int64(time.Second))

// Found is a heartbeat hook in a settings file, in any form and for any inbox.
type Found struct {
	Command string
	// Args are the arguments in exec form. Nil means shell form: Command is then a line for /bin/sh.
	Args       []string
	Event      string
	Member     string        // such as hooks.Stop[0].hooks[1]
	Timeout    time.Duration // the hook's time limit, or 0 if the file has none
	Skipped    bool          // the client skips the hook, because its timeout is no number above 0
	Background bool          // the client does not wait for the hook and ignores its decision
	Wakes      bool          // in the background by asyncRewake: only then does exit status 2 wake the idle session
	Inbox      string        // as the arguments name it, or ""
	// Binary and Flags are the program and its arguments. If Exact is false, they were guessed from a shell line, and
	// Flags may contain more than the program gets.
	Binary string
	Flags  []string
	Exact  bool
}

// wired is a heartbeat hook in a document. A change of the document invalidates its path.
type wired struct {
	Found
	path     []any
	likeness likeness // of its inbox and that of the wiring
	// ours means that Install could have written the hook for the wiring's inbox, anothers for another one.
	ours, anothers bool
}

// parseHooks parses a file, and returns heartbeat's hooks in it as [document.hooksOf] does.
func parseHooks(file []byte, w Wiring) (d *document, all []wired, err error) {
	if d, err = parse(file); err == nil {
		all, err = d.hooksOf(w)
	}
	return d, all, err
}

// hooksOf returns heartbeat's hooks of all events in the order of the file. A hook is heartbeat's if its binary is
// named heartbeat-stop or has the base name of w's command, which may be empty. Malformed hooks are skipped, but
// "hooks" and "env" must be objects. If the client takes shell lines, a line that Install could have written counts as
// its program with its arguments.
func (d *document) hooksOf(w Wiring) (all []wired, err error) {
	if err := cmp.Or(d.checkObject("hooks"), d.checkObject("env")); err != nil {
		return nil, err
	}
	events, _ := items(d.at("hooks"))
	for i, event := range events {
		if find(events, event.name) != i {
			continue
		}
		groups, _ := decode(event.value).([]any)
		for j, group := range groups {
			members, _ := group.(map[string]any)
			entries, _ := members["hooks"].([]any)
			for k, entry := range entries {
				h := wired{path: []any{"hooks", event.name, j, "hooks", k}}
				if h.read(entry, w) {
					h.Event, h.Member = event.name.(string), joined(h.path)
					all = append(all, h)
				}
			}
		}
	}
	return all, nil
}

// read reads a hook, and reports whether it is heartbeat's. A hook with a member of an unexpected type is not.
func (h *wired) read(hook any, w Wiring) bool {
	object, _ := hook.(map[string]any)
	args, listed := Texts(object["args"])
	if object["type"] != "command" || object["args"] != nil && !listed {
		return false
	}
	h.Command, _ = object["command"].(string)
	if h.Args = args; w.Line && args == nil {
		h.Command, h.Args = splitLine(h.Command)
	}
	if number, ok := object["timeout"].(json.Number); ok {
		seconds, _ := number.Float64() // infinite beyond the range
		h.Timeout = time.Duration(min(seconds, maxSeconds) * float64(time.Second))
	}
	h.Skipped = object["timeout"] != nil && h.Timeout <= 0
	async, _ := object["async"].(bool)
	h.Wakes, _ = object["asyncRewake"].(bool)
	h.Background = async || h.Wakes
	is := h.program(w.Command)
	written := h.Args != nil && isHeartbeat(h.Command, w.Command)
	h.likeness = compareInbox(h.Inbox, w.Inbox())
	h.ours, h.anothers = written && h.likeness == equal, written && h.likeness == another
	return is
}

// Texts returns an array of strings, and whether value is one.
func Texts(value any) (all []string, ok bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	all = []string{}
	for _, one := range list {
		text, isText := one.(string)
		if !isText {
			return nil, false
		}
		all = append(all, text)
	}
	return all, true
}

// program searches the command for heartbeat's binary and its flags, and reports whether the command runs it. The name
// alone may be another program's argument: tail /var/log/heartbeat-stop.
func (f *Found) program(command string) bool {
	words := append([]string{f.Command}, f.Args...)
	if f.Exact = f.Args != nil; !f.Exact {
		words = shellWords(f.Command)
		f.Exact = !strings.ContainsAny(f.Command, "$`;&|()<>*?[]{}~#!\\\r\n")
	}
	at := slices.IndexFunc(words, func(word string) bool { return isHeartbeat(word, command) })
	if at != 0 {
		f.Exact = false
		words = innerWords(words)
		at = slices.IndexFunc(words, func(word string) bool { return isHeartbeat(word, command) })
	}
	if at < 0 {
		return false
	}
	f.Binary, f.Flags = words[at], slices.Clone(words[at+1:])
	var named bool
	f.Inbox, named = inboxFlag(f.Flags)
	return named || at == 0
}

// ParseLine parses a shell line of an event, and reports whether it runs heartbeat's hook.
func ParseLine(event, line string) (f Found, is bool) {
	f.Event = event
	f.Command, f.Args = splitLine(line)
	return f, f.program("")
}

// innerWords splits the lines within a line, as after sh -c.
func innerWords(words []string) []string {
	for i := 0; i < len(words); {
		if !strings.ContainsAny(words[i], blanks) {
			i++
			continue
		}
		words = slices.Replace(words, i, i+1, shellWords(words[i])...) // each pass removes blanks or quotes, so this ends
	}
	return words
}

func isHeartbeat(path, command string) bool {
	base := filepath.Base(path)
	return base == hookName || command != "" && base == filepath.Base(command)
}

// refuse returns an error for a hook that may serve our inbox and that Install did not write, and so does not change:
// each entry could then go to either hook. A hook may serve the inbox if it names a relative path, a shell variable or
// no inbox.
func (e *editor) refuse(h wired) error {
	if h.likeness == another || h.ours {
		return nil
	}
	verb := "may already serve"
	if h.likeness == equal {
		verb = "already serves"
	}
	return fmt.Errorf("%s at line %d %s inbox %s (%q): remove that hook or name another inbox in it, then try again",
		h.Member, e.line(e.at(h.path...)), verb, e.wiring.Inbox(), clip(strings.Join(append([]string{h.Command}, h.Args...), " "), 160))
}

// inboxFlag returns the value of the last inbox flag, parsed as by Go's flag package and heartbeat-rs, and whether
// there is one.
func inboxFlag(args []string) (inbox string, ok bool) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if name != "--inbox" && name != "-inbox" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		inbox, ok = value, true
	}
	return inbox, ok
}

type likeness uint8

const (
	another likeness = iota
	equal
	unclear // one is relative, or contains a variable or ~
)

// compareInbox compares a hook's spelling of its inbox with the absolute path of ours.
func compareInbox(named, inbox string) likeness {
	base := filepath.Base(named)
	variable := func(path string) bool { return strings.ContainsAny(path, "$`") }
	switch {
	case named == "":
		return unclear
	case filepath.Clean(named) == filepath.Clean(inbox):
		return equal
	case filepath.IsAbs(named) && !variable(named):
		return another
	case variable(base) || base == filepath.Base(inbox):
		return unclear
	}
	return another // the last element is known, and it differs
}
