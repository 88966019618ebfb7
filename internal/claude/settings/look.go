package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// maxSeconds is the longest time.Duration, 292 years. A file may state more to mean "no limit".
const maxSeconds = float64(math.MaxInt64 / int64(time.Second))

// Content is what a settings file says about heartbeat and what its hooks depend on.
type Content struct {
	Hooks []Found
	// Env are the members of "env" that the client turns into variables: strings, and numbers and booleans as spelled.
	Env map[string]string
	// StatusLine is the file's status line, nil if it has none.
	StatusLine *StatusLine
	// Switches are the booleans at the top level, such as disableAllHooks.
	Switches map[string]bool
	// Lax is the line of the first comment or trailing comma, or 0. Release 2.1.329 of the client loads nothing from a
	// file that has one.
	Lax int
}

// Found is a heartbeat hook in a settings file, in any form and for any inbox.
type Found struct {
	Hook
	Event  string
	Member string // such as hooks.Stop[0].hooks[1]
	Line   int    // 1-based
	// Timeout is the hook's time limit, 0 if the file states none.
	Timeout time.Duration
	// Background says that the client does not wait for the hook, and so ignores its decision.
	Background bool
	// Wakes says that the hook is in the background by asyncRewake: only then does exit status 2 wake the idle session.
	Wakes bool
	// Inbox is the inbox as the arguments name it, or "".
	Inbox string
	// Binary and Flags are the program and its arguments. If Exact is false they are a guess from a shell line, and Flags
	// may contain more than the program gets.
	Binary string
	Flags  []string
	Exact  bool
}

// Look reads a settings file. A hook is heartbeat's if its binary is named heartbeat-stop or has the base name of
// command, which may be empty; with a verb it is no hook. A nil or empty file means that there is none.
//
// The error is a *SyntaxError or *ShapeError.
func Look(file []byte, command string) (Content, error) {
	text, marked := bytes.CutPrefix(file, byteOrderMark)
	if len(text) == 0 && !marked {
		return Content{}, nil
	}
	d, err := parse(text)
	if err != nil {
		return Content{}, err
	}
	hooks, err := d.hooks()
	if err != nil {
		return Content{}, err
	}
	c := Content{Lax: d.lax(), Switches: d.switches(), StatusLine: d.statusLine()}
	for _, w := range hooks {
		if f, ok := d.find(w, command); ok {
			c.Hooks = append(c.Hooks, f)
		}
	}
	c.Env, err = d.variables()
	return c, err
}

// lax returns the first line that is not plain JSON, or 0.
func (d document) lax() int {
	var plain json.RawMessage
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(d.text, &plain), &syntax) {
		return 0
	}
	return d.line(min(int(syntax.Offset), len(d.text)))
}

func (d document) switches() map[string]bool {
	found := map[string]bool{}
	for _, it := range d.top().items {
		if on, ok := decode(it.value).(bool); ok {
			found[it.name] = on
		}
	}
	return found
}

func (d document) variables() (map[string]string, error) {
	env, ok, err := d.object(d.top(), "env", "env")
	if err != nil || !ok {
		return nil, err
	}
	found := map[string]string{}
	for _, it := range env.items {
		switch value := decode(it.value).(type) {
		case string:
			found[it.name] = value
		case float64, bool:
			found[it.name] = spelled(&hujson.Value{Value: it.value.Value})
		}
	}
	return found, nil
}

// find reads a hook, and reports whether it is heartbeat's.
func (d document) find(w wired, command string) (Found, bool) {
	if w.Type != "command" {
		return Found{}, false
	}
	f := Found{Hook: w.Hook, Event: w.event, Member: w.member, Line: d.line(w.value().StartOffset)}
	if !f.program(command) || len(f.Flags) > 0 && !strings.HasPrefix(f.Flags[0], "-") {
		return Found{}, false
	}
	f.Inbox, _ = inboxFlag(f.Flags)
	members, _ := decode(w.value()).(map[string]any)
	if seconds, ok := members["timeout"].(float64); ok {
		f.Timeout = time.Duration(min(seconds, maxSeconds) * float64(time.Second))
	}
	async, _ := members["async"].(bool)
	f.Wakes, _ = members["asyncRewake"].(bool)
	f.Background = async || f.Wakes
	return f, true
}

// program finds heartbeat's binary and its flags in the command, and reports whether the command runs it.
func (f *Found) program(command string) bool {
	if f.Args != nil && isHeartbeat(f.Command, command) {
		f.Binary, f.Flags, f.Exact = f.Command, f.Args, true
		return true
	}
	if f.Args == nil && !strings.ContainsAny(f.Command, "$`;&|()<>*?[]{}~#!\\\r\n") {
		if words := shellWords(f.Command); len(words) > 0 && isHeartbeat(words[0], command) {
			f.Binary, f.Flags, f.Exact = words[0], words[1:], true
			return true
		}
	}
	words, at := mention(f.Hook, command)
	if at < 0 {
		return false
	}
	f.Binary, f.Flags = words[at], words[at+1:]
	_, named := inboxFlag(f.Flags)
	return named || at == 0
}
