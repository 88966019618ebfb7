package supervise

import (
	"strconv"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/supervise/client"
)

// given is what the next session gets. resume is the conversation to go on with, "" for a
// new one.
func (r *run) given(resume string) client.Session {
	return client.Session{
		Wishes: r.wishes(), Env: r.Client.Environ(r.Terminal.Env, r.box.Path(), r.Background), Dir: r.Terminal.Dir, Hook: r.Hook, Args: r.hookArguments(),
		Inbox: r.box.Path(), Private: r.private.dir, Tools: r.Tools, Resume: resume,
		Checks: r.Settings.Checks.Longest(),
	}
}

func (o *Options) wishes() client.Wishes {
	return client.Wishes{Command: o.Terminal.Command, Persist: o.Mode == Persist, Limits: o.Settings.Limits}
}

// hookArguments are the hook's flags.
func (r *run) hookArguments() []string {
	args := []string{"--inbox", r.box.Path(), "--launched", "--signal-file", r.Terminal.ExitSignal}
	if r.MaxEntries > 0 {
		args = append(args, "--max-entries", strconv.Itoa(r.MaxEntries))
	}
	if !r.Until.IsZero() {
		args = append(args, "--until", r.Until.Format(time.RFC3339))
	}
	args = append(args, cli.HookArguments(r.Settings)...)
	if r.Mode == Drain {
		args = append(args, "--background-timeout", r.Background.String())
	}
	return append(args, r.Runs.HookArguments()...)
}
