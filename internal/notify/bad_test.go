package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/notify"
	"heartbeat/internal/testing/script"
)

// A command that goes wrong in any way is ended in time, said, and tried again.
func TestBadCommands(t *testing.T) {
	for name, c := range map[string]struct{ command, want string }{
		"fails":        {"echo no such host; exit 3", "exit status 3: it printed no such host"},
		"missing":      {"/nowhere/tell-me", "exit status 127"},
		"hangs":        {"sleep 600", "took longer than 2s, and was killed"},
		"children too": {"sleep 600 & sleep 600", "took longer than 2s, and was killed"},
		"stopped":      {"kill -STOP $$", "took longer than 2s, and was killed"},
		"never ends":   {"yes", "took longer than 2s, and was killed: it printed y"},
		"escapes":      {`printf '\033[2J\377evil'; exit 1`, `exit status 1: it printed`},
		"killed":       {"kill -9 $$", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, lines(2)...)
			r.deadLetter(inbox.ReasonOrphaned)
			if strings.HasPrefix(c.want, "took longer") {
				r.o.TimeLimit = 2 * time.Second
			}
			good := r.o.Command
			r.o.Command = c.command
			report, err := notify.Tell(t.Context(), r.box, r.o)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\x1b")
			assert.True(t, utf8.ValidString(err.Error()))
			assert.EqualValues(t, 1, report.Waiting)
			assert.Equal(t, noon.Add(10*time.Second), report.Next)
			events := readFile(t, r.box.EventsPath())
			assert.Contains(t, events, `"event":"notify failed"`)

			r.o.Command, r.o.TimeLimit = good, time.Minute
			assert.EqualValues(t, 1, r.tell().Waiting, "not before its time")
			assert.Empty(t, r.told())
			r.clock = r.clock.Add(10 * time.Second)
			r.tell()
			assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
			assert.Equal(t, events, readFile(t, r.box.EventsPath()))
		})
	}
}

// What a launcher before could not tell is told by this one, and what nobody can tell waits for nobody.
func TestWhatALauncherBeforeSaid(t *testing.T) {
	r := newRig(t)
	r.tell()
	path := filepath.Join(r.box.Dir(), notify.StateName)
	var state map[string]any
	require.NoError(t, json.Unmarshal([]byte(readFile(t, path)), &state))
	state["said"] = []any{
		map[string]any{"v": 1, "what": "failing", "reason": "restarts", "text": "heartbeat-launch has given up", "at": noon},
		map[string]any{"what": ""}, map[string]any{"what": "of a later release"}, nil,
	}
	text, err := json.Marshal(state)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	assert.Zero(t, r.tell().Waiting)
	told := r.told()
	require.Equal(t, []string{"failing"}, whats(told))
	assert.Equal(t, "heartbeat-launch has given up", told[0]["text"])
	assert.Zero(t, r.tell().Waiting)
	assert.Empty(t, r.told())
}

// What a launcher says when its folder is gone, or has become another one, is told at once: no later call knows it.
func TestTheFolderIsTakenAway(t *testing.T) {
	says := notify.Occasion{What: notify.Failing, Reason: "trouble", Text: "heartbeat-launch has given up"}
	for name, after := range map[string]func(r *rig){
		"gone": func(*rig) {},
		"another": func(r *rig) { // in which nothing can be recorded
			require.NoError(r, os.MkdirAll(filepath.Join(r.box.Dir(), notify.StateName), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, lines(1)...)
			require.NoError(t, os.Rename(r.box.Dir(), filepath.Join(r.dir, "away")))
			after(r)
			for range 2 {
				_, err := notify.Tell(t.Context(), r.box, r.o, says)
				assert.Error(t, err)
			}
			assert.Contains(t, whats(r.told()), "failing")
		})
	}
}

// What a command prints, leaves behind or does not read is no reason to fail or to wait.
func TestOddCommands(t *testing.T) {
	for name, command := range map[string]string{
		"prints a gigabyte":      "head -c 1000000000 /dev/zero",
		"reads nothing":          "exec <&-; true",
		"leaves a daemon behind": "setsid sleep 600 & echo $! >PID",
		"closes its output":      "exec >&- 2>&-; true",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, lines(2)...)
			r.deadLetter(inbox.ReasonOrphaned)
			pid := filepath.Join(r.dir, "pid")
			r.o.Command = strings.ReplaceAll(command, "PID", pid)
			assert.Len(t, r.tell().Told, 1)
			if b, err := os.ReadFile(pid); err == nil {
				var n int
				_, err := fmt.Sscan(string(b), &n)
				require.NoError(t, err)
				require.NoError(t, unix.Kill(n, unix.SIGKILL), "it lived on")
			}
		})
	}
}

// An occasion that the command cannot tell does not keep the others for ever.
func TestGivesUp(t *testing.T) {
	r := newRig(t, lines(3)...)
	r.deadLetter(inbox.ReasonOrphaned)
	r.deadLetter(inbox.ReasonOrphaned)
	r.o.Command = "grep -v job-0 >>" + r.dir + "/told"
	tries := 0
	for range 20 {
		report, err := notify.Tell(t.Context(), r.box, r.o)
		if err == nil {
			break
		}
		tries++
		r.clock = report.Next
	}
	assert.Equal(t, 6, tries)
	assert.Less(t, r.clock.Sub(noon), 3*time.Hour)
	told := r.told()
	require.Len(t, told, 1)
	assert.Equal(t, "job-1", told[0]["entry"].(map[string]any)["id"])
	assert.Contains(t, readFile(t, r.box.EventsPath()), "dead-letter is not told after 6 tries")
}

// Ten thousand dead letters are eleven messages, and nothing else waits behind them: a
// question is told at once, and again if it is asked again.
func TestFlood(t *testing.T) {
	const n = 10_000
	r := newRig(t, lines(1)...)
	r.tell()
	var b strings.Builder
	for i := range n {
		letter := inbox.DeadLetter{EntryID: fmt.Sprintf("%064x", i), ID: fmt.Sprint("job-", i), Reason: "orphaned", DeadLetteredAt: r.clock}
		letter.RawLine.Text = "do it"
		l, err := json.Marshal(letter)
		require.NoError(t, err)
		b.Write(append(l, '\n'))
	}
	require.NoError(t, os.WriteFile(r.box.DeadLetterPath(), []byte(b.String()), 0o600))
	r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("why", nil); return err })
	r.tell()
	told := r.told()
	require.Len(t, told, 12)
	assert.Equal(t, "paused", told[0]["what"])
	assert.Equal(t, "job-0", told[1]["entry"].(map[string]any)["id"])
	last := told[11]
	assert.Equal(t, "more", last["what"])
	assert.EqualValues(t, n-10, last["count"])
	assert.Contains(t, last["text"], "and 9990 more, dead-letter")

	// What comes within the span waits for its end, and is told then.
	r.deliver()
	r.in(func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
	r.in(func(tx *inbox.Tx) error { return tx.In("s").Start(os.Getpid(), nil) })
	for range 3 {
		r.clock = r.clock.Add(time.Minute)
		r.in(func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "Claude needs you") })
		report := r.tell()
		assert.Equal(t, []string{"question"}, whats(r.told()))
		assert.EqualValues(t, 1, report.Waiting)
		assert.Equal(t, noon.Add(10*time.Minute), report.Next)
		r.tell()
		assert.Empty(t, r.told(), "it is told once")
		r.in(func(tx *inbox.Tx) error { tx.In("s").StopAsking(); return nil })
		r.tell()
		r.told()
		r.clock = r.clock.Add(time.Minute)
	}
	r.clock = noon.Add(10 * time.Minute)
	r.tell()
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
}

// A question that comes while dead letters are told by a slow command goes before those that are
// left.
func TestOvertaken(t *testing.T) {
	r := newRig(t, lines(4)...)
	for range 4 {
		r.deadLetter(inbox.ReasonOrphaned)
	}
	told, first, goOn := r.o.Command, filepath.Join(r.dir, "first"), filepath.Join(r.dir, "go-on")
	r.o.Command = told + "; touch '" + first + "'; until test -e '" + goOn + "'; do sleep 0.01; done"
	done := make(chan error, 1)
	go func() { _, err := notify.Tell(context.Background(), r.box, r.o); done <- err }()
	require.Eventually(t, func() bool { _, err := os.Stat(first); return err == nil }, script.Patience, time.Millisecond)
	r.in(func(tx *inbox.Tx) error { return tx.In("s").Start(os.Getpid(), nil) })
	r.in(func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "Claude needs you") })
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	require.NoError(t, <-done)
	assert.Equal(t, []string{"dead-letter", "question", "dead-letter", "dead-letter", "dead-letter"}, whats(r.told()))
}

// Notifiers that run at once tell each occasion once.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t, lines(9)...)
	for range 5 {
		r.deadLetter(inbox.ReasonOrphaned)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := notify.Tell(context.Background(), r.box, r.o)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Len(t, r.told(), 5)
}

// A state that is gone, was made by others or came with a copy is not believed: what
// happened of late is told again, and nothing is silenced.
func TestOddStates(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"gone":  func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"empty": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"torn":  func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 40)) },
		"fifo": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, unix.Mkfifo(path, 0o600))
		},
		"link": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".x"))
			require.NoError(t, os.Symlink(path+".x", path))
		},
		"huge": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 1<<40)) },
		"forged, and names no lock": func(t *testing.T, path string) {
			text := regexp.MustCompile(`"lock":"[^"]*",`).ReplaceAllString(readFile(t, path), "")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		},
		"another lock": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), ".notify-lock")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, lines(3)...)
			r.deadLetter(inbox.ReasonOrphaned)
			r.tell()
			r.told()
			spoil(t, filepath.Join(r.box.Dir(), notify.StateName))
			r.tell()
			assert.Equal(t, []string{"dead-letter"}, whats(r.told()), "again")
			r.tell()
			assert.Empty(t, r.told())
			r.deadLetter(inbox.ReasonOrphaned)
			r.tell()
			assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
		})
	}
}

// A state whose numbers are odd silences nothing for long.
func TestForgedNumbers(t *testing.T) {
	r := newRig(t, lines(4)...)
	r.deadLetter(inbox.ReasonOrphaned)
	r.tell()
	r.told()
	path := filepath.Join(r.box.Dir(), notify.StateName)
	for name, change := range map[string]func(st map[string]any){
		"far behind the end": func(st map[string]any) { st["letters"].(map[string]any)["off"] = 1 << 50 },
		"negative":           func(st map[string]any) { st["letters"].(map[string]any)["off"] = -7 },
		"in the future": func(st map[string]any) {
			st["letters"] = map[string]any{"file": "x", "at": "9999-01-01T00:00:00Z"}
		},
		"told in the future": func(st map[string]any) {
			all := []string{"9999-01-01T00:00:00Z"}
			st["told_at"] = map[string]any{"question": all, "paused": all}
		},
		"not before": func(st map[string]any) {
			st["trouble"] = map[string]any{"not_before": "9999-01-01T00:00:00Z"}
		},
	} {
		var st map[string]any
		require.NoError(t, json.Unmarshal([]byte(readFile(t, path)), &st))
		change(st)
		b, err := json.Marshal(st)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		r.clock = r.clock.Add(time.Hour)
		r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause(name, nil); return err })
		r.in(func(tx *inbox.Tx) error { return tx.In("s"+name).Ask("permission_prompt", "?") })
		r.tell()
		assert.Contains(t, whats(r.told()), "paused", name)
	}
}

// A dead letter is told once, though the file was rotated, trimmed or rewritten.
func TestRotation(t *testing.T) {
	r := newRig(t, lines(9)...)
	step := func(what string, want int) {
		t.Helper()
		r.tell()
		assert.Len(t, r.told(), want, what)
		r.clock = r.clock.Add(time.Minute)
	}
	path := r.box.DeadLetterPath()
	r.deadLetter(inbox.ReasonOrphaned)
	step("first", 1)
	require.NoError(t, os.Rename(path, path+".1"))
	step("rotated away", 0)
	r.deadLetter(inbox.ReasonOrphaned)
	step("a new file", 1)
	all := readFile(t, path+".1") + readFile(t, path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte(all), 0o600))
	step("both in one", 0)
	r.deadLetter(inbox.ReasonOrphaned)
	step("one more", 1)
	letters, _, err := script.Letters(r.box)
	require.NoError(t, err)
	_, _, err = outcomes.Purge(t.Context(), r.box, letters[:1])
	require.NoError(t, err)
	step("purged", 0)
	require.NoError(t, os.WriteFile(path, []byte("noise\n\n{}\n{\"entry_id\":\"aa\"}\n"), 0o600))
	step("noise", 0)
	r.deadLetter(inbox.ReasonOrphaned)
	step("behind noise", 1)
}

// Where there was no state, what is older than a day is not told.
func TestOldLetters(t *testing.T) {
	r := newRig(t, lines(3)...)
	r.deadLetter(inbox.ReasonOrphaned)
	r.clock = r.clock.Add(25 * time.Hour)
	r.deadLetter(inbox.ReasonExpired)
	r.tell()
	told := r.told()
	require.Len(t, told, 1)
	assert.Equal(t, "expired", told[0]["reason"])
}

// Hostile text reaches the command as text: one valid JSON object on one line, and
// variables without line breaks or control characters.
func TestHostileText(t *testing.T) {
	for _, text := range []string{
		"$(touch PWNED)", "`touch PWNED`", "'; touch PWNED; '", "\"; touch PWNED; \"", "a\nBcc: all@example.org\n\nspam",
		"\x1b[2J\x1b]0;evil\x07", "\u202eevil\u2066", strings.Repeat("x", 1<<20), "\\u0000", "{\"what\":\"test\"}", "a\r\nX: y",
	} {
		r := newRig(t)
		entry, err := json.Marshal(map[string]string{"id": text[:min(len(text), 1000)], "prompt": "do " + text})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(r.box.Path(), append(entry, '\n'), 0o600))
		r.deliver()
		r.in(func(tx *inbox.Tx) error {
			require.NoError(t, tx.In("s").Fail(text, text))
			return tx.DeadLetter(inbox.Reason(text))
		})
		r.in(func(tx *inbox.Tx) error { return tx.In(text).Ask(text, text) })
		r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause(text, nil); return err })
		r.o.Command = "cd " + r.dir + `; tee -a told >last; printf '%s\0' "$HEARTBEAT_WHAT" "$HEARTBEAT_TEXT" "$HEARTBEAT_TYPE_THIS" "$HEARTBEAT_INBOX" "$HEARTBEAT_ENTRY" >>variables`
		r.tell()
		told := r.told()
		require.Len(t, told, 3)
		for _, o := range told {
			b, err := json.Marshal(o)
			require.NoError(t, err)
			assert.Less(t, len(b), 16<<10)
			var walk func(v any)
			walk = func(v any) {
				switch v := v.(type) {
				case string:
					assert.False(t, strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x1b || r == '\u202e' }), "%q", v)
				case map[string]any:
					for _, of := range v {
						walk(of)
					}
				}
			}
			walk(o)
		}
		for v := range strings.SplitSeq(readFile(t, filepath.Join(r.dir, "variables")), "\x00") {
			assert.False(t, strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }), "%q", v)
		}
		assert.NoFileExists(t, filepath.Join(r.dir, "PWNED"))
	}
}

// The command gets nothing of the session around it.
func TestEnvironment(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.deadLetter(inbox.ReasonOrphaned)
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "key-of-the-agent", "OPENAI_API_KEY": "key-of-the-agent", "CODEX_ACCESS_TOKEN": "key-of-the-agent", "CLAUDE_CODE_MESSAGING_TOKEN": "key-of-the-agent", "CLAUDECODE": "1", "NTFY_TOKEN": "mine", "HEARTBEAT_WHAT": "forged", "PWD": "/tmp",
	} {
		t.Setenv(name, value)
	}
	r.o.Command = "env >" + r.dir + "/env; pwd >>" + r.dir + "/env"
	r.tell()
	env := readFile(t, filepath.Join(r.dir, "env"))
	assert.NotContains(t, env, "key-of-the-agent")
	assert.NotContains(t, env, "CLAUDE")
	assert.NotContains(t, env, "forged")
	assert.Contains(t, env, "NTFY_TOKEN=mine\n")
	assert.Contains(t, env, "HEARTBEAT_WHAT=dead-letter\n")
	assert.True(t, strings.HasSuffix(env, "\n/\n"), env)
}

// Where what was told cannot be noted, the most urgent is told all the same, and rarely.
func TestUnnoted(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("why", nil); return err })
	require.NoError(t, os.Mkdir(filepath.Join(r.box.Dir(), notify.StateName), 0o700))
	r.o.Now = time.Now
	tell := func() int {
		_, err := notify.Tell(t.Context(), r.box, r.o)
		require.ErrorContains(t, err, "note what was told: ")
		return len(r.told())
	}
	at := func(lock string, ago time.Duration) {
		then := time.Now().Add(-ago)
		require.NoError(t, os.Chtimes(filepath.Join(r.box.Dir(), lock), then, then))
	}
	assert.Equal(t, 1, tell(), "in the first hour, too")
	at(".notify-next", time.Minute)
	assert.Zero(t, tell(), "not again")
	at(".notify-lock", 2*time.Hour)
	assert.Equal(t, 1, tell())
	assert.Zero(t, tell(), "not again")
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
