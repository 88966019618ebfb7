package stuck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
)

// states are all of the table.
func states() []state {
	return slices.Concat(ofTheModel(), ofPersons(), ofProcesses(), ofFiles(), ofRuns())
}

// flies brings about that an entry is in flight, and the model is asked.
func flies(act string, flags ...string) func(r *rig) {
	return func(r *rig) {
		r.says(act)
		r.adds("e1")
		r.start(flags...)
		r.asked("e1")
	}
}

// wakes are the flags with which a hook in the background wakes the session.
var wakes = map[wiring][]string{hook: {"--rewake"}, launcher: {"--mode", "persist"}}

// answers has the model answer from now on.
func answers(r *rig) { r.says("answer") }

// ofTheModel are those in which the client or the model does not go on.
func ofTheModel() []state {
	fails := func(failure string, in map[wiring]seen, flags ...string) func(name string) state {
		return func(name string) state {
			return state{name, in, func(r *rig) {
				if r.wiring == timer {
					r.says("fail " + failure)
					r.adds("e1")
					r.start(slices.Concat(flags, []string{"--patience", "1ms"})...)
					return
				}
				flies("fail "+failure, flags...)(r)
			}, func(r *rig) {
				answers(r)
				r.write("quit", "")
				if r.wiring == hook {
					r.until("the session to end", func() bool { return r.json("status").State != "failed" })
					r.does("recover", "--on-orphan", "retry")
				}
				r.does("resume")
			}}
		}
	}
	turnFailed := func(says string) seen { return seen{kind: "turn-failed", state: "failed", says: says} }
	backsOff := func(says string) seen { return seen{kind: "backing-off", state: "backing off", says: says} }
	woken := func(name, failure string, s seen) state {
		return state{name, all(s, hook, launcher), func(r *rig) {
			r.start(wakes[r.wiring]...)
			r.waiter()
			r.says("fail " + failure)
			r.adds("e1")
			r.asked("e1")
		}, func(r *rig) {
			answers(r)
			r.does("resume")
		}}
	}
	return []state{
		{
			"the model hangs", all(seen{kind: "stalled", state: "answering", says: "nothing has moved for 1h", wrong: "waiting for an answer to the entry e1 since .* \\(1h"}, hook, launcher, host),
			func(r *rig) {
				flies("hang")(r)
				r.shifts(-time.Hour)
				r.refreshes()
			},
			answers,
		},
		{
			"a tool runs", all(seen{kind: "", state: "answering", says: "waiting for an answer to the entry e1 since .* \\(25m"}, hook, launcher),
			func(r *rig) {
				flies("tool")(r)
				r.until("the tool to run", func() bool { return there(r.dir, "runs") })
				r.shifts(-25 * time.Minute)
				r.refreshes()
			},
			answers,
		},
		fails("rate_limit: API Error: Request rejected (429), try again in 2 hours", map[wiring]seen{
			hook:     turnFailed("rate_limit.*429"),
			launcher: backsOff("rate_limit"), host: backsOff("rate_limit"), timer: backsOff("rate_limit"),
		}, "--on-orphan", "retry")("rate limit"),
		fails("server_error: API Error: 529 Overloaded", map[wiring]seen{
			hook:     turnFailed("server_error.*529"),
			launcher: backsOff("server_error"), host: backsOff("server_error"), timer: backsOff("server_error"),
		}, "--on-orphan", "retry")("API 5xx"),
		fails("unknown: API Error: Unable to connect to API (ConnectionRefused)", map[wiring]seen{
			hook:     turnFailed("ConnectionRefused"),
			launcher: backsOff("ConnectionRefused"), host: backsOff("ConnectionRefused"), timer: backsOff("ConnectionRefused"),
		}, "--on-orphan", "retry")("network gone"),
		fails("authentication_failed: API Error: 401 OAuth token has expired", map[wiring]seen{
			hook:     turnFailed("authentication_failed.*401"),
			launcher: {kind: "paused", state: "paused", says: "authentication_failed"}, host: {kind: "paused", state: "paused", says: "authentication_failed"},
			timer: {kind: "paused", state: "paused", says: "authentication_failed"},
		}, "--on-orphan", "retry")("login expired"),
		woken("rate limit, woken", "rate_limit: API Error: Request rejected (429), try again in 2 hours", backsOff("rate_limit.*429.*handed over")),
		woken("network gone, woken", "unknown: API Error: Unable to connect to API (ConnectionRefused)", backsOff("ConnectionRefused.*handed over")),
		woken("login expired, woken", "authentication_failed: API Error: 401 OAuth token has expired", seen{kind: "paused", state: "paused", says: "authentication_failed"}),
		{
			"day's limit reached", all(seen{kind: "day-over-limit", state: "paused", says: "day"}, hook, launcher, timer),
			func(r *rig) {
				r.says("spend 1000")
				r.adds("e1", "e2")
				r.start("--max-tokens-per-day", "100")
			},
			func(r *rig) {
				r.write("quit", "")
				answers(r)
				r.does("resume")
			},
		},
		{
			"session's limit reached", all(seen{kind: "session-over-limit", state: "session over limit", says: "its limit: start a fresh one"}, hook),
			func(r *rig) {
				r.says("spend 1000")
				r.adds("e1", "e2")
				r.start("--max-tokens-per-session", "100")
			},
			func(r *rig) { r.write("quit", "") },
		},
		{
			"poison entry", all(seen{kind: "dead-letters", state: "empty", says: "1 dead letter", wrong: "nothing is queued", letters: 1}, hook, launcher, host, timer),
			func(r *rig) {
				r.says("die")
				r.adds("e1")
				p := r.start("--on-orphan", "deadletter")
				r.ends(p)
				if r.wiring == hook {
					r.does("recover")
				}
			},
			func(r *rig) { r.does("dead-letter", "purge", "--all", "--yes") },
		},
	}
}

// ofPersons are those in which a person is asked, or has decided so.
func ofPersons() []state {
	asks := func(kind, text string) state {
		return state{
			kind, all(seen{kind: "question", state: "waiting for a person", says: "(asked|waits) for a person.*" + text}, hook, launcher),
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
			"paused", all(seen{kind: "paused", state: "paused", says: "paused .*deploy.*until"}, hook, launcher, host, timer),
			func(r *rig) {
				r.adds("e1")
				r.does("pause", "--reason", "deploy")
				r.start()
			},
			func(r *rig) { r.does("resume") },
		},
		{
			"paused until a time", all(seen{kind: "paused", state: "paused", says: "until .*deploy|deploy.*until"}, hook, launcher, host, timer),
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
			"client killed", map[wiring]seen{
				hook:     {kind: "orphaned", state: "orphaned", says: "was in flight when session .* died"},
				launcher: {kind: "dead-letters", state: "empty", says: "1 dead letter", wrong: "nothing is queued", letters: 1},
				host:     {kind: "dead-letters", state: "empty", says: "1 dead letter", wrong: "nothing is queued", letters: 1},
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
			"launcher killed", all(seen{kind: "orphaned", state: "orphaned", says: "was in flight when session .* died"}, launcher),
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
			"host killed", all(seen{kind: "orphaned", state: "orphaned", says: "was in flight when session .* died"}, host),
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
			"client not on PATH", all(seen{kind: "no-session", state: "no session", says: "gave up at .*claude", wrong: "no session has ever asked: start one"}, launcher, timer),
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
			"hooks off", map[wiring]seen{
				hook:     {kind: "no-session", state: "no session", says: "no session has ever asked: start one, and see heartbeat doctor"},
				launcher: {kind: "no-session", state: "no session", says: "gave up at .*disableAllHooks"},
				timer:    {kind: "no-session", state: "no session", says: "gave up at .*disableAllHooks"},
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
			"no session starts", all(seen{kind: "failing", state: "launching", says: "after [2-9] sessions without an answer: .*no session started within 1s", wrong: "after [2-9] sessions without an answer: .*the session ended before it started"}, launcher),
			func(r *rig) {
				r.adds("e1")
				r.write("env", "sleep 1000\n")
				r.start("--start-timeout", "1s")
			},
			func(r *rig) { r.write("env", "") },
		},
		{
			"each session dies", all(seen{kind: "failing", state: "no session", says: "3 sessions in a row ended without an answer", wrong: "waits to be delivered again .attempt 4.*gave up at .*restarts"}, launcher, timer),
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
			"client ends at once", all(seen{kind: "no-session", state: "no session", says: "gave up at .*status 9", wrong: "gave up at .*the reason cannot be told from its screen"}, launcher, timer),
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
			"waiter stopped", all(seen{kind: "waker-gone", state: "waker gone", says: `is stopped, by SIGSTOP or Ctrl-Z: kill -CONT \d+ has it go on`}, hook, launcher),
			waits(syscall.SIGSTOP), func(r *rig) { require.NoError(r.t, syscall.Kill(r.waiter(), syscall.SIGCONT)) },
		},
		{
			"waiter gone", all(seen{kind: "waker-gone", state: "waker gone", says: `\(process \d+\) is gone`}, hook),
			waits(syscall.SIGKILL), func(r *rig) { r.start() },
		},
		{
			"lock held by a stopped process", all(seen{kind: "locked", state: "locked", says: `process \d+ .*has held the lock of the inbox`}, hook, launcher),
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

// ofFiles are those in which a file or its file system is not as it should be.
func ofFiles() []state {
	return []state{
		{
			"last line torn", all(seen{kind: "torn-line", state: "torn", says: "the last line has no newline"}, hook, launcher, timer),
			func(r *rig) {
				if p := r.start(); r.wiring == hook {
					r.sits()
				} else {
					r.ends(p)
				}
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a li"), 0o600))
			},
			func(r *rig) { require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a line\n"), 0o600)) },
		},
		{
			"scheduled entry overdue", all(seen{kind: "overdue", state: "torn", says: "due since", wrong: "what is scheduled and due waits for that"}, hook),
			func(r *rig) {
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a li"), 0o600))
				r.does("send", "--not-before", "50ms", "--id", "e1", "do [e1]")
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a li"), 0o600))
			},
			func(r *rig) { require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a line\n"), 0o600)) },
		},
		{
			"inbox truncated", all(seen{kind: "replaced", state: "replaced", says: "the inbox was truncated or replaced"}, hook, timer),
			func(r *rig) {
				r.adds("e1", "e2")
				r.start()
				r.hasAnswered(2)
				if r.wiring == hook {
					r.sits()
				}
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("another [e3]\n"), 0o600))
			},
			func(r *rig) {
				r.write("quit", "")
				r.start()
			},
		},
		{
			"state damaged", all(seen{kind: "unreadable", state: "unreadable", says: "the state cannot be read: "}, hook, launcher, timer),
			func(r *rig) {
				r.adds("e1", "e2")
				p := r.start()
				r.hasAnswered(2)
				r.write("quit", "")
				r.ends(p) // who is at work repairs what it has read
				was, err := os.ReadFile(r.path("q/.inbox-journal"))
				require.NoError(r.t, err)
				require.NoError(r.t, os.WriteFile(r.path("q/.inbox-journal"), []byte(strings.ReplaceAll(string(was), `"seq"`, `"sEq"`)), 0o600))
				r.write("was", string(was))
			},
			func(r *rig) {
				was, err := os.ReadFile(r.path("was"))
				require.NoError(r.t, err)
				require.NoError(r.t, os.WriteFile(r.path("q/.inbox-journal"), was, 0o600))
			},
		},
		{
			"clock set back", all(seen{kind: "", state: "answering", says: "waiting for an answer to .*runs"}, hook, launcher, host),
			func(r *rig) {
				flies("hang")(r)
				r.shifts(2 * time.Hour)
			},
			answers,
		},
		{
			"directory read-only", all(seen{kind: "unwritable", state: "unwritable", says: "this user cannot change anything in"}, hook, launcher, timer),
			func(r *rig) {
				r.adds("e1")
				r.plain()
				require.NoError(r.t, os.Chmod(r.path("q"), 0o500))
				r.start()
			},
			func(r *rig) { require.NoError(r.t, os.Chmod(r.path("q"), 0o700)) },
		},
		{
			"disk full", all(seen{kind: "disk-full", state: "disk full", says: "is full .* left.: free some space"}, hook, launcher, timer),
			func(r *rig) {
				if os.Geteuid() != 0 {
					r.t.Skip("only root makes a file system")
				}
				if err := syscall.Mount("tmpfs", r.path("q"), "tmpfs", 0, "size=2m,mode=0700"); err != nil {
					r.t.Skipf("no file system may be mounted here: %v", err)
				}
				r.t.Cleanup(func() { assert.NoError(r.t, syscall.Unmount(r.path("q"), syscall.MNT_DETACH)) })
				r.adds("e1")
				ballast, err := os.Create(r.path("q/ballast"))
				require.NoError(r.t, err)
				for err == nil {
					_, err = ballast.Write(make([]byte, 4096))
				}
				require.ErrorIs(r.t, err, syscall.ENOSPC)
				require.NoError(r.t, ballast.Close())
				r.start()
			},
			func(r *rig) { require.NoError(r.t, os.Remove(r.path("q/ballast"))) },
		},
	}
}

// ofRuns are those of babysitter runs. The run is one that was recorded, and waits.
func ofRuns() []state {
	drives := func(command string) func(r *rig) {
		return func(r *rig) {
			require.NoError(r.t, os.CopyFS(r.path("cwd/runs/r9"), os.DirFS("../../../orchestrate/run/testdata/waiting")))
			require.NoError(r.t, os.WriteFile(r.path("bin/fails"), []byte("#!/bin/sh\nexit 3\n"), 0o700))
			r.start("--run", r.path("cwd/runs/r9"), "--babysitter", strings.ReplaceAll(command, "BIN", r.path("bin")))
		}
	}
	// The run is forgotten: what puts it right is babysitter's.
	forgets := func(r *rig) {
		r.write("quit", "")
		script.Sweep(r.t, dirVariable+"="+r.dir)
		all, err := filepath.Glob(r.path("q/.run-*.json"))
		require.NoError(r.t, err)
		for _, name := range all {
			require.NoError(r.t, os.Remove(name))
		}
	}
	stuck := func(says, wrong string) map[wiring]seen {
		const run = "the run [^ ]+ is stuck.*"
		return all(seen{kind: "run-stuck", state: "run stuck", says: run + says, wrong: run + wrong}, hook, launcher, timer)
	}
	return []state{
		{"babysitter fails", stuck("ended with status 3", "iterate the run .* \\.\\.\\.: mend that"), drives("BIN/fails"), forgets},
		{"babysitter gone", stuck("there is no command .*npm install", "there is no command .* \\.\\.\\.: mend that"), drives("BIN/nobody"), forgets},
		{"run damaged", stuck("run.json: it is not valid JSON", "run.json: it is not valid JSON"), func(r *rig) {
			drives("BIN/fails")(r)
			r.until("the run to be driven", func() bool { all, _ := filepath.Glob(r.path("q/.run-*.json")); return len(all) > 0 })
			require.NoError(r.t, os.WriteFile(r.path("cwd/runs/r9/run.json"), []byte("{"), 0o600))
		}, forgets},
		{"run's folder gone", stuck("there is no such run", "there is no such run"), func(r *rig) {
			drives("BIN/fails")(r)
			r.until("the run to be driven", func() bool { all, _ := filepath.Glob(r.path("q/.run-*.json")); return len(all) > 0 })
			require.NoError(r.t, os.RemoveAll(r.path("cwd/runs/r9")))
		}, forgets},
	}
}
