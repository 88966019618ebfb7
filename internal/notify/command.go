package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
)

const (
	// TimeLimit is how long the command may take.
	TimeLimit = 30 * time.Second
	// maxOutput is how much of what it prints is kept, for the sentence on its failure.
	maxOutput = 64 << 10
	// lastWords is how long a process that the command left behind may keep its output
	// open.
	lastWords = 100 * time.Millisecond
)

// run runs the command once, with the occasion on its stdin.
func (o Options) run(ctx context.Context, of Occasion) error {
	object, err := json.Marshal(of)
	if err != nil {
		return err
	}
	limit := o.TimeLimit
	if limit <= 0 {
		limit = TimeLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out bounded
	c := guardian.Group(ctx, syscall.SIGKILL, "/bin/sh", "-c", o.Command)
	c.Dir, c.Env, c.WaitDelay = "/", environment(os.Environ(), of), lastWords
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(append(object, '\n')), &out, &out
	err = c.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the command of --notify took longer than %v, and was killed%s", limit, out.quoted())
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // it ended well, and left a process behind
		return nil
	case err != nil:
		return fmt.Errorf("the command of --notify failed: %w%s", err, out.quoted())
	}
	return nil
}

// environment is that of the caller, without the secrets of the session around it, and
// with what a script needs that cannot read JSON.
func environment(environ []string, of Occasion) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		for _, prefix := range []string{"ANTHROPIC_", "CLAUDE", "OPENAI_", "CODEX_"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return slices.Contains([]string{"PWD", "OLDPWD", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "GOTRACEBACK"}, name)
	})
	entry := ""
	if of.Entry != nil {
		entry = words.Name(of.Entry.ID, of.Entry.EntryID)
	}
	return append(env,
		"HEARTBEAT_WHAT="+string(of.What), "HEARTBEAT_TEXT="+line(of.Text), "HEARTBEAT_TYPE_THIS="+plainLine(of.TypeThis),
		"HEARTBEAT_INBOX="+plainLine(of.Inbox), "HEARTBEAT_ENTRY="+plainLine(entry))
}

// plainLine is a path on one line, and without what no variable can hold.
func plainLine(s string) string { return strings.ReplaceAll(words.Line(s), "\x00", "") }

// bounded keeps the first bytes of what is written to it, and takes the rest.
type bounded struct{ text []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxOutput-len(b.text))]...)
	return len(p), nil
}

// quoted is the last line of what was printed, to be put behind a sentence.
func (b *bounded) quoted() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(b.text), "\uFFFD"))
	if text == "" {
		return ""
	}
	return ": it printed " + words.Brief(text[strings.LastIndex(text, "\n")+1:])
}
