package notify

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"heartbeat/internal/words"
)

// TimeLimit is how long the command may take by default.
const TimeLimit = 30 * time.Second

// run runs the command once, with the occasion as JSON on its stdin.
func (o Options) run(ctx context.Context, of Occasion) error {
	object, err := json.Marshal(of)
	if err != nil {
		return err
	}
	limit := o.TimeLimit
	if limit <= 0 {
		limit = TimeLimit
	}
	s := Shell{Line: o.Command, Flag: "--notify", Dir: "/", Env: environment(of), Input: append(object, '\n'), Limit: limit}
	return s.Run(ctx)
}

// environment carries the occasion for scripts that cannot read JSON.
func environment(of Occasion) []string {
	entry := ""
	if of.Entry != nil {
		entry = words.Name(of.Entry.ID, of.Entry.EntryID)
	}
	return []string{
		"HEARTBEAT_WHAT=" + string(of.What), "HEARTBEAT_TEXT=" + line(of.Text), "HEARTBEAT_TYPE_THIS=" + plainLine(of.TypeThis),
		"HEARTBEAT_INBOX=" + plainLine(of.Inbox), "HEARTBEAT_ENTRY=" + plainLine(entry),
	}
}

// plainLine puts a path on one line, without NUL bytes, which no variable can hold.
func plainLine(s string) string { return strings.ReplaceAll(words.Line(s), "\x00", "") }
