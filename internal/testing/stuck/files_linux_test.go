package stuck

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
)

// ofFiles are those in which a file or its file system is not as it should be.
func ofFiles() []state {
	return []state{
		{
			"last line torn", all(Seen{Kind: "torn-line", State: "torn", Says: "the last line has no newline"}, hook, launcher, timer),
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
			"scheduled entry overdue", all(Seen{Kind: "overdue", State: "torn", Says: "due since", Wrong: "what is scheduled and due waits for that"}, hook),
			func(r *rig) {
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a li"), 0o600))
				r.does("send", "--not-before", "50ms", "--id", "e1", "do [e1]")
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a li"), 0o600))
			},
			func(r *rig) { require.NoError(r.t, os.WriteFile(r.inbox(), []byte("half a line\n"), 0o600)) },
		},
		{
			"inbox truncated", all(Seen{State: "replaced", Says: "the inbox was truncated or replaced"}, hook, timer),
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
			"inbox truncated, and read since", all(Seen{Kind: "replaced", State: "empty", Says: "the inbox was truncated or replaced at .*, and has been read from its start since"}, timer),
			func(r *rig) {
				r.adds("e1", "e2")
				r.start()
				require.NoError(r.t, os.WriteFile(r.inbox(), []byte("another [e3]\n"), 0o600))
				r.start()
				r.hasAnswered(3)
			},
			func(r *rig) { r.shifts(-time.Hour) },
		},
		{
			"state damaged", all(Seen{Kind: "unreadable", State: "unreadable", Says: "the state cannot be read: "}, hook, launcher, timer),
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
			"clock set back", all(Seen{Kind: "", State: "answering", Says: "waiting for an answer to .*runs"}, hook, launcher, host),
			func(r *rig) {
				flies("hang")(r)
				r.shifts(2 * time.Hour)
			},
			answers,
		},
		{
			"directory read-only", all(Seen{Kind: "unwritable", Untold: true, State: "unwritable", Says: "this user cannot change anything in"}, hook, launcher, timer),
			func(r *rig) {
				r.adds("e1")
				r.plain()
				require.NoError(r.t, os.Chmod(r.path("q"), 0o500))
				r.start()
			},
			func(r *rig) { require.NoError(r.t, os.Chmod(r.path("q"), 0o700)) },
		},
		{
			"disk full", all(Seen{Kind: "disk-full", State: "disk full", Says: "is full .* left.: free some space"}, hook, launcher, timer),
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
	stuck := func(says, wrong string) map[wiring]Seen {
		const run = "the run [^ ]+ is stuck.*"
		return all(Seen{Kind: "run-stuck", State: "run stuck", Says: run + says, Wrong: run + wrong}, hook, launcher, timer)
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
