package notify

import (
	"bytes"
	"cmp"
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
	maxOutput = 64 << 10               // how many bytes of the command's output are kept to quote in an error
	lastWords = 100 * time.Millisecond // how long a process that the command left behind may keep the output open
)

// Shell is a command line that a person configured, with its input.
type Shell struct {
	Line  string // for /bin/sh
	Flag  string // the flag that set it, for sentences
	Dir   string
	Env   []string // added to this process's environment
	Input []byte
	Limit time.Duration // how long it may take
}

// Run runs the command once, in its own process group, which is killed when the limit passes or ctx ends. All
// output is discarded but one line, which an error quotes.
func (s Shell) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	// The command gets neither the secrets of the surrounding session nor variables that describe another process.
	environ := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc([]string{"ANTHROPIC_", "CLAUDE", "OPENAI_", "CODEX_", "HEARTBEAT_META_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
			slices.Contains([]string{"PWD", "OLDPWD", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "GOTRACEBACK"}, name)
	})
	out := &words.Head{Most: maxOutput}
	c := guardian.Group(ctx, syscall.SIGKILL, "/bin/sh", "-c", s.Line)
	c.Dir, c.Env, c.WaitDelay = s.Dir, append(environ, s.Env...), lastWords
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(s.Input), out, out
	err := c.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the command of %s took longer than %v, and was killed%s", s.Flag, s.Limit, quoted(out))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // it ended well, and left a process behind
		return nil
	case err != nil:
		return fmt.Errorf("the command of %s failed: %w%s", s.Flag, err, quoted(out))
	}
	return nil
}

// quoted returns the last line of an output, to append to a sentence.
func quoted(output *words.Head) string {
	text := strings.TrimSpace(strings.ToValidUTF8(output.String(), "\uFFFD"))
	if text == "" {
		return ""
	}
	return ": it printed " + words.Brief(text[strings.LastIndex(text, "\n")+1:])
}

// TimeLimit is how long the command may take by default.
const TimeLimit = 30 * time.Second

// run runs the command once, with the occasion as JSON on its stdin, and in the environment for scripts that cannot
// read JSON. No value has a NUL byte, which a variable cannot hold.
func (o Options) run(ctx context.Context, of Occasion) error {
	object, err := json.Marshal(of)
	if err != nil {
		return err
	}
	entry := ""
	if of.Entry != nil {
		entry = words.Name(of.Entry.ID, of.Entry.EntryID)
	}
	return Shell{
		Line: o.Command, Flag: "--notify", Dir: "/", Input: append(object, '\n'), Limit: cmp.Or(o.TimeLimit, TimeLimit),
		Env: []string{
			"HEARTBEAT_WHAT=" + string(of.What), "HEARTBEAT_TEXT=" + line(of.Text), "HEARTBEAT_TYPE_THIS=" + words.Line(of.TypeThis),
			"HEARTBEAT_INBOX=" + words.Line(of.Inbox), "HEARTBEAT_ENTRY=" + words.Line(entry),
		},
	}.Run(ctx)
}
