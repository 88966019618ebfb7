package command

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine"
	"heartbeat/internal/see"
)

const past = `"not_before":"2001-01-01T00:00:00Z"}` + "\n"

// TestStuckStates provokes each state that keeps an inbox from moving, and looks
// at what status says of it.
func TestStuckStates(t *testing.T) {
	for _, c := range []struct {
		name    string
		provoke func(w *world)
		state   see.State
		why     string
	}{
		// Nothing waits.
		{"missing before its first use", func(*world) {},
			see.NoInbox, "<path> is not there yet: the first entry creates it"},
		{"missing after use", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.answer()
			require.NoError(w, os.Remove(w.inbox))
		}, see.NoInbox, "<path> is gone, 4 B of it were settled: the next entry creates it again"},
		{"empty from the start", func(w *world) { w.write("inbox.jsonl", "\n \r\n") },
			see.Empty, "empty: nothing is queued"},
		{"all is answered", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.answer()
		}, see.Empty, "empty: nothing is queued, and the last entry was answered at <time>"},
		{"truncated to nothing", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.answer()
			w.write("inbox.jsonl", "")
		}, see.Empty, "empty: nothing is queued, and the last entry was answered at <time>; the inbox was truncated or replaced (the cursor 4 is beyond the end 0), and is read from its start"},
		{"one is scheduled", func(w *world) { w.verb("send", "--not-before", "1h", "one") },
			see.Scheduled, "nothing is queued: a scheduled entry comes at <time>"},
		{"some are scheduled", func(w *world) {
			w.verb("send", "--not-before", "2h", "one")
			w.verb("send", "--not-before", "1h", "two")
		}, see.Scheduled, "nothing is queued: the first of 2 scheduled entries comes at <time>"},
		{"a torn tail", func(w *world) { w.add("inbox.jsonl", "half a li") },
			see.Torn, "the last line has no newline, and was written <time> <ago>: it is an entry once the next Stop has seen it stand still, or its writer ends it"},
		{"overdue behind a torn tail", func(w *world) {
			w.add("inbox.jsonl", "half a li")
			w.write(".scheduled.jsonl", `{"id":"a","prompt":"one",`+past)
		}, see.Torn, "the last line has no newline, and was written <time> <ago>: it is an entry once the next Stop has seen it stand still, or its writer ends it; what is scheduled and due waits for that"},

		// Something waits for a session.
		{"no session ever", func(w *world) { w.queue("one") },
			see.NoSession, "1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		{"no session is known", func(w *world) {
			w.queue("one", "two", "three")
			w.stop("ready")
			w.answer()
			w.verb("recover", "--on-orphan", "drop")
			w.queue("four")
		}, see.NoSession, "2 entries wait, and no session is known: if one runs, its next Stop goes on, or else start one"},
		{"promoted, and no session ever", func(w *world) { w.write(".scheduled.jsonl", `{"id":"a","prompt":"one",`+past) },
			see.NoSession, "1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		{"the session is alive and busy", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
		}, see.SessionBusy, "1 entry waits for the next Stop of session s1 (process <n>), last heard of at <time>: it is at work on something else, or waits at its prompt"},
		{"the session may be alive", func(w *world) {
			w.event("SessionStart", "source", "startup")
			w.queue("one", "two")
		}, see.SessionBusy, "2 entries wait for the next Stop of session s1, last heard of at <time>: whether it still runs is not known"},
		{"the session has ended", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.event("SessionEnd", "reason", "other")
		}, see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, ended at <time>"},
		{"the session was killed", func(w *world) {
			kill := w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			kill()
		}, see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, is gone (process <n> has ended)"},
		{"the machine went down", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			machine.TestOnlyBootID = "another boot"
		}, see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, ended when the machine went down"},
		{"the session met an error", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.event("StopFailure", "error", "rate_limit", "last_assistant_message", "come\nback later")
		}, see.SessionDown, "1 entry waits, and session s1 met an error at <time> (rate_limit: come back later): it waits at its prompt, and asks after its next turn"},
		{"one of two sessions runs", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.event("SessionStart", "session_id", "s2")
			w.event("SessionEnd", "session_id", "s2")
			w.queue("one")
		}, see.SessionBusy, "1 entry waits for the next Stop of session s1 (process <n>), last heard of at <time>: it is at work on something else, or waits at its prompt"},
		{"an entry was given back", func(w *world) {
			w.queue(`{"prompt":"one","id":"a"}`, "two")
			w.stop("ready")
			w.verb("recover", "--on-orphan", "retry")
		}, see.NoSession, "the entry a waits to be delivered again (attempt 2, 1 more behind it), and no session is known: if one runs, its next Stop goes on, or else start one"},
		{"truncated and filled again", func(w *world) {
			w.queue("a long first line of it")
			w.stop("ready")
			w.answer()
			w.write("inbox.jsonl", "one\ntwo\n")
		}, see.Replaced, "the inbox was truncated or replaced (the cursor 24 is beyond the end 8), and is read from its start: 2 entries wait, and no session is known: if one runs, its next Stop goes on, or else start one"},

		// An entry is in flight.
		{"the session is at work on it", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.queue(`{"prompt":"one","id":"a"}`, "two")
			w.stop("ready")
		}, see.Answering, "waiting for an answer to the entry a since <time> <ago>, attempt 1: session s1 runs"},
		{"a session that told nothing of itself is at work on it", func(w *world) {
			w.queue("one")
			w.stop("ready")
		}, see.Answering, "waiting for an answer to the entry <entry> since <time> <ago>, attempt 1: whether session s1 runs is not known"},
		{"heartbeat-rs delivered it", func(w *world) {
			w.queue("one")
			w.write(".in-flight", `{"entry_id":"0123456789abcdef","start_offset":0,"end_offset":4,"raw_line":"one","delivered_at":"2001-01-01T00:00:00Z"}`)
		}, see.Stalled, "nothing has moved for <long>: waiting for an answer to the entry 0123456789ab since <time> (<long> ago), attempt 1: whether its session runs is not known"},
		{"its session ended", func(w *world) {
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.stop("ready")
			w.event("SessionEnd", "reason", "other")
		}, see.Orphaned, "the entry <entry> was in flight when session s1 ended at <time>: the next session's Stop, or heartbeat recover, decides about it"},
		{"its session was killed", func(w *world) {
			kill := w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.stop("ready")
			kill()
		}, see.Orphaned, "the entry <entry>, delivered at <time>, was in flight when session s1 died: the next session's Stop, or heartbeat recover, decides about it"},
		{"its session, that told nothing of itself, was killed", func(w *world) {
			kill := w.client()
			w.queue("one")
			w.stop("ready")
			kill()
		}, see.Orphaned, "the entry <entry>, delivered at <time>, was in flight when session s1 died: the next session's Stop, or heartbeat recover, decides about it"},
		{"its session was resumed", func(w *world) {
			kill := w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.stop("ready")
			kill()
			w.client()
			w.event("SessionStart", "source", "resume")
		}, see.Orphaned, "the entry <entry> was in flight when session s1 ended without a word; it was resumed at <time>, and its next Stop decides about the entry"},
		{"the machine went down amid it", func(w *world) {
			w.queue("one")
			w.stop("ready")
			machine.TestOnlyBootID = "another boot"
		}, see.Orphaned, "the entry <entry>, delivered at <time>, was in flight when the machine went down, with session s1: the next session's Stop, or heartbeat recover, decides about it"},
		{"its turn ended in an error", func(w *world) {
			w.client()
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.stop("ready")
			w.event("StopFailure", "error", "overloaded")
		}, see.Failed, "the entry <entry> is in flight, and its turn ended in an error at <time> (overloaded): session s1 waits at its prompt, and its next turn decides about the entry"},
		{"a second attempt", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.verb("recover", "--on-orphan", "retry")
			w.event("Stop", "session_id", "a-session-with-a-long-name", "prompt_id", "p2")
		}, see.Answering, "waiting for an answer to the entry <entry> since <time> <ago>, attempt 2: whether session a-session-wi runs is not known"},
		{"its inbox was truncated", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.write("inbox.jsonl", "")
		}, see.Answering, "waiting for an answer to the entry <entry> since <time> <ago>, attempt 1: whether session s1 runs is not known; the inbox was replaced since"},

		// A person holds it up.
		{"paused", func(w *world) {
			w.queue("one")
			w.verb("pause", "--reason", "the build\nserver is down")
		}, see.Paused, "delivery is paused since <time> (the build server is down): nothing is delivered until heartbeat resume"},
		{"paused with an end", func(w *world) { w.verb("pause", "--for", "1h") },
			see.Paused, "delivery is paused since <time> until <time>: nothing is delivered until then, or until heartbeat resume"},
		{"a pause that is over", func(w *world) {
			w.queue("one")
			w.verb("pause", "--for", "1ns")
		}, see.NoSession, "1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		{"paused, with one in flight", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.verb("pause", "--reason", "lunch")
		}, see.Answering, "waiting for an answer to the entry <entry> since <time> <ago>, attempt 1: whether session s1 runs is not known; delivery is paused since <time> (lunch)"},

		// Nothing can be changed, or be read.
		{"the lock is held", func(w *world) {
			w.queue("one")
			w.holdLock()
		}, see.Locked, "process <n> (hold-lock) has held the lock of the inbox for more than 2s: everything waits until it goes on or ends"},
		{"the disk is full", func(w *world) {
			w.mount("256k")
			w.queue("one")
			w.fillDisk()
		}, see.Full, "the file system of <dir> is full (no space or no inode left): free some space or inodes, and the next turn goes on"},
		{"the directory is read-only", func(w *world) {
			w.queue("one", "two")
			w.stop("ready")
			w.give()
			w.askAs(0o500)
		}, see.Unwritable, "this user cannot change anything in <dir> (permission denied): make it writable, or run the session as the user that owns it"},
		{"the state is another user's", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.askAs(0o755)
		}, see.Unreadable, "the state cannot be read by this user: open <dir>/.inbox-lock: permission denied: look at it as the user that owns it"},
		{"a corrupt cursor", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.write(".inbox-offset", "four")
		}, see.Unreadable, `the state cannot be read: read <dir>/.inbox-offset: "four" is no byte offset: nothing was changed: put the offset to read from into it, or remove it to read from the start`},
		{"a corrupt entry in flight", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.write(".in-flight", `{"entry_id":"ab","start_off`)
		}, see.Unreadable, "the state cannot be read: read <dir>/.in-flight: not valid: it is not valid JSON, or cut off: nothing was changed: mend it, or move it away to have the entry delivered again"},
		{"the state of another inbox", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.inbox = w.path("other.jsonl")
		}, see.Unreadable, "the state cannot be read: the state in <dir> belongs to the inbox inbox.jsonl: give other.jsonl a directory of its own (or, if it is inbox.jsonl renamed, recover under the old name first): state of another inbox"},
		{"a symbolic link", func(w *world) {
			w.queue("one")
			require.NoError(w, os.Symlink("elsewhere", w.path(".scheduled.jsonl")))
		}, see.Unreadable, "the state cannot be read: read scheduled entries: open <dir>/.scheduled.jsonl: it is a symbolic link, which is never followed for a state file: remove it: not a file of ours"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.provoke(w)
			state, sentence := w.says()
			require.Regexp(t, w.sentence(c.why), sentence)
			require.Equal(t, string(c.state), state)
		})
	}
}
