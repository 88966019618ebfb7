package client

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// poll is how often files are looked at while waiting for a hook event.
const poll = 5 * time.Millisecond

// Event is the input of one recorded hook: the JSON object the client wrote to
// the hook's stdin.
type Event map[string]any

// Text returns a field that holds a string, or "".
func (e Event) Text(field string) string {
	s, _ := e[field].(string)
	return s
}

// Record makes the client report the named hook events ("SessionStart",
// "UserPromptSubmit", ...) through the scratch home's own settings. The
// recording hook prints nothing, so it decides nothing; hooks of other settings
// run beside it. Call it before the client starts; a later call replaces an
// earlier one.
func (w *Workspace) Record(names ...string) {
	w.t.Helper()
	hooks := map[string]any{}
	for _, name := range names {
		hooks[name] = []any{map[string]any{"hooks": []any{map[string]any{
			"type": "command", "command": w.recorder(name),
		}}}}
	}
	w.writeJSON(filepath.Join(w.Home, ".claude", "settings.json"), map[string]any{"hooks": hooks})
}

// recorder is the shell command that keeps one event as one file. The rename
// makes sure that no half-written event is read; the counter in the name is the
// number of events so far, which is only an order between events that do not
// overlap.
func (w *Workspace) recorder(name string) string {
	quoted := "'" + strings.ReplaceAll(w.events, "'", `'\''`) + "'"
	return fmt.Sprintf(`cd %s || exit 1; cat >$$.part; n=$(ls | grep -c '^%s\.'); mv $$.part "$(printf '%s.%%06d.%%s' "$n" $$)"`,
		quoted, name, name)
}

// Events returns the recorded inputs of one hook event so far, in order.
func (w *Workspace) Events(name string) []Event {
	w.t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.events, name+".*"))
	must(w.t, err)
	var list []Event
	for _, path := range paths { // Glob sorts
		raw, err := os.ReadFile(path)
		must(w.t, err)
		var event Event
		must(w.t, json.Unmarshal(raw, &event))
		list = append(list, event)
	}
	return list
}

// WaitEvent returns the nth recorded event of one name, from 1, once the client
// has reported it. The error is the context's.
func (w *Workspace) WaitEvent(ctx context.Context, name string, n int) (Event, error) {
	w.t.Helper()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if list := w.Events(name); len(list) >= n {
			return list[n-1], nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("client: waiting for %s event %d: %w", name, n, ctx.Err())
		}
	}
}
