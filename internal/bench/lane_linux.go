package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entrySize is an entry's line with its newline.
const entrySize = 1 << 10

// entry is the text of the i-th line of every inbox here.
func entry(i int) string { return padded(fmt.Sprintf("entry %09d ", i)) }

// padded returns the text of a line that begins with head.
func padded(head string) string {
	return head + strings.Repeat("the quick brown fox jumps over the lazy dog ", entrySize/40)[:entrySize-1-len(head)]
}

// writeLines makes a file of n lines and syncs it.
func writeLines(path string, n int, line func(i int) string) {
	f := must(os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600))
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		_, _ = w.WriteString(line(i) + "\n") // Flush returns the error
	}
	check(errors.Join(w.Flush(), f.Sync(), f.Close()))
}

// eachLine checks that a file has n whole lines, and that right accepts each.
func eachLine(path string, n int, right func(i int, line []byte) bool) {
	lines := bytes.Split(must(os.ReadFile(path)), []byte("\n"))
	if len(lines) != n+1 || len(lines[n]) > 0 {
		fail("%s: %d whole lines for %d entries", path, len(lines)-1, n)
	}
	for i, line := range lines[:n] {
		if !right(i, line) {
			fail("%s, line %d is torn, foreign or out of order: %.100q", path, i+1, line)
		}
	}
}

// appendLine adds a line with one write, as `echo >>` does, and returns when.
func appendLine(path, text string) time.Time {
	f := must(os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600))
	at := time.Now()
	_, err := f.WriteString(text + "\n")
	check(errors.Join(err, f.Close()))
	return at
}

const sessionID = "5c1d2f3a-0000-4000-8000-000000000001"

// lane is an inbox in a directory of its own, and a session that drains it.
type lane struct {
	*rig
	dir, inbox string
	env        []string
	input      map[string]any // what the client gives its hook at a Stop
	turns      int
	next       int // the entry that the next tick must deliver
}

// lane makes one with the first n entries in its inbox. With none there is no inbox yet.
func (r *rig) lane(name string, n int) *lane {
	dir := r.folder(name)
	l := &lane{rig: r, dir: dir, inbox: filepath.Join(dir, "inbox.jsonl"), input: map[string]any{
		"session_id": sessionID, "prompt_id": "5c1d2f3a-0000-4000-8000-000000000002", "transcript_path": filepath.Join(dir, "transcript.txt"),
		"cwd": dir, "permission_mode": "bypassPermissions", "hook_event_name": "Stop", "stop_hook_active": true,
	}}
	check(os.WriteFile(filepath.Join(dir, "transcript.txt"), []byte(`{"type":"user"}`+"\n"), 0o600))
	if n > 0 {
		writeLines(l.inbox, n, entry)
	}
	return l
}

// stop returns the input at the end of the next turn, with a new reply.
func (l *lane) stop() []byte {
	l.turns++
	l.input["last_assistant_message"] = fmt.Sprintf("Reply %d: done, and the tests pass.", l.turns)
	return must(json.Marshal(l.input))
}

// tick runs the hook once. It must deliver the next entry.
func (l *lane) tick() time.Duration { return l.tickBy() }

// tickBy has another program run the hook.
func (l *lane) tickBy(argv ...string) time.Duration {
	out, took := l.run(l.env, l.stop(), append(argv, "heartbeat-stop", "--inbox", l.inbox)...)
	l.delivered(out)
	return took
}

// delivered checks that a hook's stdout delivers the next entry.
func (l *lane) delivered(stdout string) {
	var d struct{ Decision, Reason string }
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || d.Decision != "block" || d.Reason != entry(l.next) {
		fail("tick %d: %.300q does not deliver %.40q", l.turns, stdout, entry(l.next))
	}
	l.next++
}

// approved is a stop at which nothing waits.
func (l *lane) approved(flags ...string) time.Duration {
	out, took := l.run(l.env, l.stop(), append([]string{"heartbeat-stop", "--inbox", l.inbox}, flags...)...)
	if out != "" {
		fail("the last tick delivered %.40q", out)
	}
	return took
}

// restart removes all state and sets the cursor before the i-th entry.
func (l *lane) restart(i int) {
	for _, f := range must(os.ReadDir(l.dir)) {
		if strings.HasPrefix(f.Name(), ".") {
			check(os.Remove(filepath.Join(l.dir, f.Name())))
		}
	}
	check(os.WriteFile(filepath.Join(l.dir, ".inbox-offset"), fmt.Append(nil, i*entrySize), 0o600))
	l.next = i
}
