package stuck

import (
	"fmt"
	"os"
	"syscall"

	"github.com/stretchr/testify/require"
)

// ofPersons are those in which a person is asked, or has decided so.
func ofPersons() []state {
	asks := func(kind, text string) state {
		return state{
			kind, all(Seen{Kind: "question", State: "waiting for a person", Says: "(asked|waits) for a person.*" + text}, hook, launcher),
			func(r *rig) {
				var flags []string
				if r.wiring == launcher {
					flags = []string{"--ask-patience", "1h"}
				}
				flies("ask "+kind+": "+text, flags...)(r)
			},
			answers,
		}
	}
	return []state{
		asks("agent_needs_input", "Claude is waiting for your input"),
		asks("permission_prompt", "Claude needs your permission to use Bash"),
		{
			"paused", all(Seen{Kind: "paused", State: "paused", Says: "paused .*deploy.*until"}, hook, launcher, host, timer),
			func(r *rig) {
				r.adds("e1")
				r.does("pause", "--reason", "deploy")
				r.start()
			},
			func(r *rig) { r.does("resume") },
		},
		{
			"paused until a time", all(Seen{Kind: "paused", State: "paused", Says: "until .*deploy|deploy.*until"}, hook, launcher, host, timer),
			func(r *rig) {
				r.adds("e1")
				r.does("pause", "--for", "1h", "--reason", "deploy")
				r.does("pause") // which leaves both as they are
				r.start()
			},
			func(r *rig) { r.does("resume") },
		},
	}
}

// ofProcesses are those in which a process is gone, stopped, or was not to be started.
func ofProcesses() []state {
	recovers := func(r *rig) {
		answers(r)
		r.does("recover")
	}
	waits := func(then syscall.Signal) func(r *rig) {
		return func(r *rig) {
			r.start(wakes[r.wiring]...)
			r.signals(r.waiter(), then)
			r.adds("e1")
		}
	}
	return []state{
		{
			"client killed", map[wiring]Seen{
				hook:     {Kind: "orphaned", State: "orphaned", Says: "was in flight when session .* died"},
				launcher: {Kind: "dead-letters", State: "empty", Says: "1 dead letter", Wrong: "nothing is queued", Letters: 1},
				host:     {Kind: "dead-letters", State: "empty", Says: "1 dead letter", Wrong: "nothing is queued", Letters: 1},
			},
			func(r *rig) {
				r.says("hang")
				r.adds("e1")
				r.start()
				require.NoError(r.t, syscall.Kill(r.asked("e1"), syscall.SIGKILL))
			},
			func(r *rig) {
				recovers(r)
				if r.wiring != hook {
					r.does("dead-letter", "purge", "--all", "--yes")
				}
			},
		},
		{
			"launcher killed", all(Seen{Kind: "orphaned", State: "orphaned", Says: "was in flight when session .* died"}, launcher),
			func(r *rig) {
				r.says("hang")
				r.adds("e1")
				p := r.start()
				r.asked("e1")
				r.kills(p)
			},
			recovers,
		},
		{
			// Its guardian finishes for it before five places were asked.
			"host killed", all(Seen{Kind: "dead-letters", State: "empty", Says: "1 dead letter", Wrong: "nothing is queued", Letters: 1}, host),
			func(r *rig) {
				r.says("hang")
				r.adds("e1")
				p := r.start()
				r.asked("e1")
				r.kills(p)
			},
			func(r *rig) {
				recovers(r)
				r.does("dead-letter", "purge", "--all", "--yes")
			},
		},
		{
			"client not on PATH", all(Seen{Kind: "no-session", State: "no session", Says: "gave up at .*claude", Wrong: "no session has ever asked: start one"}, launcher, timer),
			func(r *rig) {
				r.adds("e1")
				require.NoError(r.t, os.Rename(r.path("bin/claude"), r.path("bin/away")))
				r.ends(r.start())
			},
			func(r *rig) {
				require.NoError(r.t, os.Rename(r.path("bin/away"), r.path("bin/claude")))
				r.start()
			},
		},
		{
			"client being updated", all(Seen{Kind: "launcher-waits", State: "launching", Says: "sees to the next session: .*trouble: there is no such command: claude"}, launcher),
			func(r *rig) {
				answers(r)
				r.adds("e1")
				r.start("--mode", "persist")
				r.hasAnswered(1)
				require.NoError(r.t, os.Rename(r.path("bin/claude"), r.path("bin/away")))
				require.NoError(r.t, syscall.Kill(r.asked("e1"), syscall.SIGKILL))
				r.adds("e2")
			},
			func(r *rig) {
				require.NoError(r.t, os.Rename(r.path("bin/away"), r.path("bin/claude")))
				r.hasAnswered(2)
			},
		},
		{
			"hooks off", map[wiring]Seen{
				hook:     {Kind: "no-session", State: "no session", Says: "no session has ever asked: start one, and see heartbeat doctor"},
				launcher: {Kind: "no-session", State: "no session", Says: "gave up at .*disableAllHooks"},
				timer:    {Kind: "no-session", State: "no session", Says: "gave up at .*disableAllHooks"},
			},
			func(r *rig) {
				r.adds("e1")
				r.write("env", "export HEARTBEAT_TEST_NO_HOOKS=1\n")
				require.NoError(r.t, os.Mkdir(r.path("cwd/.claude"), 0o700))
				r.write("cwd/.claude/settings.json", `{"disableAllHooks":true}`)
				if r.wiring != hook { // a session without hooks is none that anybody knows of
					r.ends(r.start("--start-timeout", "1s", "--max-restarts", "0"))
				}
			},
			func(r *rig) {
				r.write("env", "")
				r.write("cwd/.claude/settings.json", "{}")
				r.start()
			},
		},
		{
			"no session starts", all(Seen{Kind: "launcher-waits", State: "launching", Says: "after [2-9] sessions without an answer: .*the session", Wrong: "after [2-9] sessions without an answer: .*the session ended before it started"}, launcher),
			func(r *rig) {
				r.adds("e1")
				r.write("env", "sleep 1000\n")
				// A busy machine needs a back-off of half a minute to ask all five places within one.
				r.start("--start-timeout", "1s", "--max-restarts", "12")
			},
			func(r *rig) { r.write("env", "") },
		},
		{
			"each session dies", all(Seen{Kind: "failing", State: "no session", Says: "3 sessions in a row ended without an answer", Wrong: "waits to be delivered again .attempt 4.*gave up at .*restarts"}, launcher, timer),
			func(r *rig) {
				r.says("die")
				r.adds("e1")
				r.ends(r.start("--on-orphan", "retry", "--max-attempts", "10", "--max-restarts", "2"))
			},
			func(r *rig) {
				answers(r)
				r.start()
			},
		},
		{
			"client ends at once", all(Seen{Kind: "no-session", State: "no session", Says: "gave up at .*status 9", Wrong: "gave up at .*the reason cannot be told from its screen"}, launcher, timer),
			func(r *rig) {
				r.adds("e1")
				r.write("env", "exit 9\n")
				r.ends(r.start("--max-restarts", "2"))
			},
			func(r *rig) {
				r.write("env", "")
				r.start()
			},
		},
		{
			"waiter stopped", all(Seen{Kind: "waker-gone", State: "waker gone", Says: `is stopped, by SIGSTOP or Ctrl-Z: kill -CONT \d+ has it go on`}, hook, launcher),
			waits(syscall.SIGSTOP), func(r *rig) { require.NoError(r.t, syscall.Kill(r.waiter(), syscall.SIGCONT)) },
		},
		{
			"waiter gone", all(Seen{Kind: "waker-gone", State: "waker gone", Says: `\(process \d+\) is gone`}, hook),
			waits(syscall.SIGKILL), func(r *rig) { r.start() },
		},
		{
			"lock held by a stopped process", all(Seen{Kind: "locked", State: "locked", Says: `process \d+ .*has held the lock of the inbox`}, hook, launcher),
			func(r *rig) {
				flies("hang")(r)
				cmd := r.command(r.self, r.path("q/.inbox-lock"))
				cmd.Env = append(cmd.Env, roleVariable+"=lock")
				p := r.beside(cmd)
				r.write("holder", fmt.Sprint(p.Process.Pid))
			},
			func(r *rig) {
				text, err := os.ReadFile(r.path("holder"))
				require.NoError(r.t, err)
				var pid int
				_, err = fmt.Sscan(string(text), &pid)
				require.NoError(r.t, err)
				require.NoError(r.t, syscall.Kill(pid, syscall.SIGKILL))
			},
		},
	}
}
