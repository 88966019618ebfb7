package supervise

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/supervise/client"
)

// given is what the next session gets. resume is the conversation to go on with, "" for a
// new one.
func (r *run) given(resume string) client.Session {
	return client.Session{
		Wishes: r.wishes(), Env: r.environment(), Dir: r.Terminal.Dir, Hook: r.Hook, Args: r.hookArguments(),
		Inbox: r.box.Path(), Private: r.private.dir, Meter: r.Meter, Tools: r.Tools, Resume: resume,
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

// environment is the session's: it names the inbox that the launcher wired a hook for,
// and nothing of the launcher's own service manager.
func (r *run) environment() []string {
	env := slices.DeleteFunc(slices.Clone(r.Terminal.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", cli.LaunchedVariable}, name)
	})
	if kv := r.Client.Waits(r.Background); kv != "" {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			env = append(env, kv)
		}
	}
	return append(env, cli.LaunchedVariable+"="+r.box.Path())
}
