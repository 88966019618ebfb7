package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Content is what a settings file has of heartbeat, and of what its hooks depend on.
type Content struct {
	Hooks []Found
	// Env are the members of "env" that become variables: strings, and numbers and booleans as spelled.
	Env      map[string]string
	Switches map[string]bool // the top-level booleans, such as disableAllHooks
	Plugins  map[string]bool // the members of "enabledPlugins", and whether each is enabled
	// Lax is the line of the first comment or trailing comma, or 0. Claude Code 2.1.329 loads nothing from such a file.
	Lax      int
	Mistyped error // names a member with whose value Claude Code loads nothing from the file
	Meter    bool  // the status line runs the meter of earlier releases, which no longer exists
}

// ReadContent parses a settings file. A hook is heartbeat's if its binary is named heartbeat-stop or has the base name
// of command, which may be empty; with a verb it is no hook. A nil or empty file means that there is none.
func ReadContent(file []byte, command string) (Content, error) {
	d, hooks, err := parseHooks(file, Wiring{Command: command})
	if err != nil {
		return Content{}, err
	}
	c := Content{Lax: d.lax(), Mistyped: d.mistyped(), Switches: map[string]bool{}, Env: map[string]string{}, Plugins: map[string]bool{}}
	for _, h := range hooks {
		if len(h.Flags) == 0 || strings.HasPrefix(h.Flags[0], "-") {
			c.Hooks = append(c.Hooks, h.Found)
		}
	}
	top, _ := decode(&d.root).(map[string]any)
	for name, value := range top {
		if on, ok := value.(bool); ok {
			c.Switches[name] = on
		}
	}
	words := shellWords(d.textAt("statusLine", "command"))
	c.Meter = len(words) > 0 && (filepath.Base(words[0]) == "heartbeat-meter" || len(words) > 1 && filepath.Base(words[0]) == hookName && words[1] == "meter")
	plugins, _ := top["enabledPlugins"].(map[string]any)
	for name, value := range plugins {
		c.Plugins[name] = value != false // a list of versions also enables the plugin
	}
	env, _ := top["env"].(map[string]any)
	for name, value := range env {
		switch value.(type) {
		case string, json.Number, bool:
			c.Env[name] = fmt.Sprint(value)
		}
	}
	return c, nil
}

// lax returns the line of the first syntax that is not plain JSON, or 0.
func (d *document) lax() int {
	var plain json.RawMessage
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(d.text, &plain), &syntax) {
		return 0
	}
	return d.line(&hujson.Value{StartOffset: int(syntax.Offset)})
}

// In reports whether a file has hooks for w's inbox, and whether all of them have w's arguments.
func (w Wiring) In(file []byte) (wired, same bool) {
	content, _ := ReadContent(file, w.Command)
	same = true
	for _, f := range content.Hooks {
		if compareInbox(f.Inbox, w.Inbox()) == equal {
			wired, same = true, same && slices.Equal(f.Flags, w.Args)
		}
	}
	return wired, same
}
