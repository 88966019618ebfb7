package see_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func ptr(minutes int) *time.Time {
	t := at(minutes)
	return &t
}

// facts are those of an inbox in which all is well and nothing waits, changed.
func facts(change func(f *see.Facts)) see.Facts {
	f := see.Facts{Now: noon, Inbox: "/w/inbox.jsonl", Dir: "/w"}
	f.Reach, f.Queue = see.Reach{Space: 1 << 40, Needed: 64 << 10}, see.Queue{Exists: true, WrittenAt: at(-1)}
	change(&f)
	return f
}

func waiting(n int64) inbox.Backlog { return inbox.Backlog{Entries: n, Bytes: 4 * n} }

// inFlight is an entry that session s1 was given five minutes ago.
func inFlight(change ...func(d *inbox.Delivery)) *inbox.Delivery {
	d := &inbox.Delivery{EntryID: "0123456789abcdef", DeliveredAt: at(-5), Attempt: 1, SessionID: "s1", EndOffset: 4}
	for _, c := range change {
		c(d)
	}
	return d
}

// session started ten minutes ago, and is alive.
func session(change ...func(s *see.Session)) []see.Session {
	s := see.Session{Session: inbox.Session{ID: "s1", Process: inbox.Process{PID: 42}, StartedAt: ptr(-10)}, Life: machine.Alive}
	for _, c := range change {
		c(&s)
	}
	return []see.Session{s}
}

func life(l machine.Life) func(*see.Session) { return func(s *see.Session) { s.Life = l } }

func ended(minutes int) func(*see.Session) {
	return func(s *see.Session) { s.EndedAt = ptr(minutes) }
}

func failed(minutes int) *inbox.Failure {
	return &inbox.Failure{Error: "overloaded", Message: "try\nlater", At: at(minutes)}
}

// explained is what is to be said of some facts.
type explained struct {
	facts    see.Facts
	state    see.State
	sentence string // <-5> stands for five minutes before now
}

func (c explained) check(t *testing.T) {
	for m := -10; m <= 10; m++ {
		c.sentence = strings.ReplaceAll(c.sentence, fmt.Sprintf("<%d>", m), words.Stamp(at(m)))
	}
	state, sentence := c.facts.Explain()
	assert.Equal(t, c.sentence, sentence)
	assert.Equal(t, c.state, state)
}

func TestExplain(t *testing.T) {
	const decides = "the next session's Stop, or heartbeat recover, decides about it"
	for name, c := range map[string]explained{
		"unreadable": {facts(func(f *see.Facts) { f.Unreadable, f.Unwritable = errors.New("no\ngood"), fs.ErrPermission }),
			see.Unreadable, "the state cannot be read: no good"},
		"another user's": {facts(func(f *see.Facts) { f.Unreadable = fmt.Errorf("open x: %w", fs.ErrPermission) }),
			see.Unreadable, "the state cannot be read by this user: open x: permission denied: look at it as the user that owns it"},
		"unwritable": {facts(func(f *see.Facts) {
			f.Unwritable, f.Space, f.Backlog = errors.New("read-only file system"), 0, waiting(1)
		}),
			see.Unwritable, "this user cannot change anything in /w (read-only file system): make it writable, or run the session as the user that owns it"},
		"full": {facts(func(f *see.Facts) { f.Space, f.LockedBy, f.Backlog = 4096, 7, waiting(1) }),
			see.Full, "the file system of /w is full (4.1 kB left): free some space or inodes, and the next turn goes on"},
		"full for the first journal": {facts(func(f *see.Facts) { f.Space, f.Needed, f.Backlog = 200<<10, 320<<10, waiting(1) }),
			see.Full, "the file system of /w is full (204.8 kB left): free some space or inodes, and the next turn goes on"},
		"full to the last byte": {facts(func(f *see.Facts) { f.Space, f.InFlight = 1, inFlight() }),
			see.Full, "the file system of /w is full (1 B left): free some space or inodes, and the next turn goes on"},
		"no inode": {facts(func(f *see.Facts) { f.Space, f.InFlight = 0, inFlight() }),
			see.Full, "the file system of /w is full (no space or no inode left): free some space or inodes, and the next turn goes on"},
		"full, and nothing to do": {facts(func(f *see.Facts) { f.Space = 0 }),
			see.Empty, "empty: nothing is queued"},
		"full as far as is known": {facts(func(f *see.Facts) { f.Space, f.Backlog = -1, waiting(1) }),
			see.NoSession, "1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		"locked": {facts(func(f *see.Facts) { f.LockedBy, f.LockedName, f.LockedFor = 7, "cat", 2*time.Second }),
			see.Locked, "process 7 (cat) has held the lock of the inbox for more than 2s: everything waits until it goes on or ends"},
		"locked by a process without a name": {facts(func(f *see.Facts) { f.LockedBy, f.LockedFor = 7, 2*time.Second }),
			see.Locked, "process 7 has held the lock of the inbox for more than 2s: everything waits until it goes on or ends"},
		"locked by nobody knows whom": {facts(func(f *see.Facts) { f.LockedBy, f.LockedFor = -1, 2*time.Second }),
			see.Locked, "a process that cannot be named has held the lock of the inbox for more than 2s: everything waits until it goes on or ends"},

		"in flight, and interrupted": {facts(func(f *see.Facts) { f.InFlight, f.Sessions, f.Interrupted = inFlight(), session(), true }),
			see.Answering, "the entry 0123456789ab is in flight, and a person interrupted its turn: the end of the next turn of session s1, or of the session, decides about the entry"},
		"in flight": {facts(func(f *see.Facts) { f.InFlight, f.Sessions, f.Backlog = inFlight(), session(), waiting(3) }),
			see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs"},
		"in flight, and its launcher sees an error": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Launcher = inFlight(), session(), &see.Launcher{PID: 7, Doing: "its session is s1" + see.Retries + "the model's API says 529 Overloaded, try 2 of 10"}
		}), see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs, and retries: the model's API says 529 Overloaded, try 2 of 10"},
		"in flight, life unknown": {facts(func(f *see.Facts) { f.InFlight, f.Sessions = inFlight(), session(life(machine.Unknown)) }),
			see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: whether session s1 runs is not known"},
		"in flight, session unknown": {facts(func(f *see.Facts) { f.InFlight = inFlight(func(d *inbox.Delivery) { d.SessionID = "" }) }),
			see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: whether its session runs is not known"},
		"in flight, from a clock ahead": {facts(func(f *see.Facts) {
			f.InFlight = inFlight(func(d *inbox.Delivery) { d.DeliveredAt, d.Attempt = at(5), 3 })
		}), see.Answering, "waiting for an answer to the entry 0123456789ab since <5> (in the future: the clock was set back), attempt 3: whether session s1 runs is not known"},
		"in flight, named": {facts(func(f *see.Facts) {
			f.InFlight = inFlight(func(d *inbox.Delivery) { d.RawLine.Text = `{"prompt":"one","id":"a b"}` })
		}), see.Answering, "waiting for an answer to the entry a b since <-5> (5m ago), attempt 1: whether session s1 runs is not known"},
		"in flight, paused": {facts(func(f *see.Facts) { f.InFlight, f.Sessions, f.Paused = inFlight(), session(), &inbox.Pause{At: at(-2)} }),
			see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs; delivery is paused since <-2>"},
		"in flight, detached and paused": {facts(func(f *see.Facts) {
			f.InFlight = inFlight(func(d *inbox.Delivery) { d.Detached = true })
			f.Sessions, f.Paused = session(), &inbox.Pause{At: at(-2), Until: ptr(3), Reason: "lunch"}
		}), see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs; the inbox was replaced since; delivery is paused since <-2> until <3> (lunch)"},
		"orphan of an end": {facts(func(f *see.Facts) { f.InFlight, f.Sessions = inFlight(), session(ended(-3)) }),
			see.Orphaned, "the entry 0123456789ab was in flight when session s1 ended at <-3>: " + decides},
		"resumed after an end": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions = inFlight(), session(ended(-7))
		}), see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs"},
		"orphan of a death": {facts(func(f *see.Facts) { f.InFlight, f.Sessions = inFlight(), session(life(machine.Gone)) }),
			see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when session s1 died: " + decides},
		"orphan of a client's death": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Client = inFlight(), session(life(machine.Unknown)), machine.Gone
		}),
			see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when session s1 died: " + decides},
		"a client's number, taken by another": {facts(func(f *see.Facts) { f.InFlight, f.Sessions, f.Client = inFlight(), session(), machine.Gone }),
			see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs"},
		"orphan of a boot": {facts(func(f *see.Facts) { f.InFlight, f.Client = inFlight(), machine.Rebooted }),
			see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when the machine went down, with session s1: " + decides},
		"orphan of a resumption": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions = inFlight(), session(func(s *see.Session) { s.StartedAt = ptr(-1) })
		}), see.Orphaned, "the entry 0123456789ab was in flight when session s1 ended without a word; it was resumed at <-1>, and its next Stop decides about the entry"},
		"resumed in another process, which ended": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Client = inFlight(), session(ended(-1), life(machine.Gone)), machine.Alive
		}), see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs"},
		"orphan of a session without a name": {facts(func(f *see.Facts) {
			f.InFlight, f.Client = inFlight(func(d *inbox.Delivery) { d.SessionID, d.Detached = "", true }), machine.Gone
		}), see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when its session died: " + decides + "; the inbox was replaced since"},
		"failed": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions = inFlight(func(d *inbox.Delivery) { d.Failure = failed(-1) }), session()
		}), see.Failed, "the entry 0123456789ab is in flight, and its turn ended in an error at <-1> (overloaded: try later): session s1 waits at its prompt, and its next turn decides about the entry"},
		"failed, then ended": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions = inFlight(func(d *inbox.Delivery) { d.Failure = failed(-2) }), session(ended(-1))
		}), see.Orphaned, "the entry 0123456789ab was in flight when session s1 ended at <-1>: " + decides},

		"paused": {facts(func(f *see.Facts) { f.Paused, f.Backlog = &inbox.Pause{At: at(-2)}, waiting(2) }),
			see.Paused, "delivery is paused since <-2>: nothing is delivered until heartbeat resume"},
		"paused with an end": {facts(func(f *see.Facts) { f.Paused = &inbox.Pause{At: at(-2), Until: ptr(2), Reason: "a\tb"} }),
			see.Paused, "delivery is paused since <-2> until <2> (a b): nothing is delivered until then, or until heartbeat resume"},

		"paused by the limit of a day": {facts(func(f *see.Facts) {
			f.Paused = &inbox.Pause{At: at(-2), Until: ptr(2), Reason: "today cost 5.10 of 5.00 USD " + inbox.LimitOfDay}
		}),
			see.Paused, "delivery is paused since <-2> until <2> (today cost 5.10 of 5.00 USD (the limit of a day)): nothing is delivered until then, or until the hook has a higher limit, and then heartbeat resume"},

		"paused for want of a person": {facts(func(f *see.Facts) {
			f.Paused = &inbox.Pause{At: at(-2), Reason: "authentication_failed: Invalid API key · Please run /login"}
			f.Redeliver, f.Backlog, f.Waiter, f.Sessions = inFlight(), waiting(1), waiter(machine.Alive), session(asks)
		}),
			see.Paused, "delivery is paused since <-2> (authentication_failed: Invalid API key · Please run /login): nothing is delivered until heartbeat resume"},

		"empty": {facts(func(*see.Facts) {}), see.Empty, "empty: nothing is queued"},
		"a run sleeps": {facts(func(f *see.Facts) { f.Runs = []see.Run{runThat(orchestrate.Asleep)} }),
			see.RunAsleep, "nothing is queued: the run r1 has been asleep since <-10>, and goes on at <9>"},
		"a run is at work, and another one sleeps": {facts(func(f *see.Facts) { f.Runs = []see.Run{runThat(orchestrate.AtWork), runThat(orchestrate.Asleep)} }),
			see.RunAtWork, "nothing is queued: the run r1 has been at work since <-10>: it waits; 1 more: see heartbeat run status"},
		"empty, answered": {facts(func(f *see.Facts) { f.Asked = ptr(-8) }),
			see.Empty, "empty: nothing is queued, and the last entry was answered at <-8>"},
		"empty, replaced": {facts(func(f *see.Facts) { f.Replaced = "it is another file" }),
			see.Empty, "empty: nothing is queued; the inbox was truncated or replaced (it is another file), and is read from its start"},
		"not there yet": {facts(func(f *see.Facts) { f.Exists = false }),
			see.NoInbox, "/w/inbox.jsonl is not there yet: the first entry creates it"},
		"gone": {facts(func(f *see.Facts) { f.Exists, f.Cursor = false, 12 }),
			see.NoInbox, "/w/inbox.jsonl is gone, 12 B of it were settled: the next entry creates it again"},
		"gone, and it was short": {facts(func(f *see.Facts) { f.Exists, f.Cursor = false, 1 }),
			see.NoInbox, "/w/inbox.jsonl is gone, 1 B of it were settled: the next entry creates it again"},
		"torn": {facts(func(f *see.Facts) { f.Backlog = inbox.Backlog{Entries: 1, Bytes: 3, Torn: true} }),
			see.Torn, "the last line has no newline, and was written <-1> (1m ago): it is an entry once the next Stop has seen it stand still, or its writer ends it"},
		"torn behind others": {facts(func(f *see.Facts) { f.Backlog = inbox.Backlog{Entries: 2, Bytes: 9, Torn: true} }),
			see.NoSession, "2 entries wait, and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		"torn, something overdue": {facts(func(f *see.Facts) {
			f.Backlog, f.Scheduled = inbox.Backlog{Entries: 1, Torn: true}, inbox.Schedule{Count: 1, Next: at(-1)}
		}), see.Torn, "the last line has no newline, and was written <-1> (1m ago): it is an entry once the next Stop has seen it stand still, or its writer ends it; what is scheduled and due waits for that"},
		"scheduled": {facts(func(f *see.Facts) { f.Exists, f.Scheduled = false, inbox.Schedule{Count: 1, Next: at(9)} }),
			see.Scheduled, "nothing is queued: a scheduled entry comes at <9>"},
		"some scheduled": {facts(func(f *see.Facts) {
			f.Scheduled = inbox.Schedule{Count: 3, Next: at(4)}
		}),
			see.Scheduled, "nothing is queued: the first of 3 scheduled entries comes at <4>"},
		"due now": {facts(func(f *see.Facts) { f.Scheduled = inbox.Schedule{Count: 2, Next: at(0)} }),
			see.Scheduled, "a scheduled entry has been due since <0>, and is not in the inbox yet: each Stop and `heartbeat status` move it, or say what prevents that"},

		"nobody ever": {facts(func(f *see.Facts) { f.Backlog = waiting(1) }),
			see.NoSession, "1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		"nobody ever, and a launcher gave up": {facts(func(f *see.Facts) { f.Backlog, f.GaveUp = waiting(1), gaveUp(-2) }),
			see.NoSession, "1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask; the last launcher gave up at <-2>: restarts: no session started in 7 tries"},
		"ended, and a launcher gave up before": {facts(func(f *see.Facts) { f.Backlog, f.Sessions, f.GaveUp = waiting(1), session(ended(-3)), gaveUp(-20) }),
			see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, ended at <-3>"},
		"nobody known": {facts(func(f *see.Facts) { f.Backlog, f.EverAsked = waiting(2), true }),
			see.NoSession, "2 entries wait, and no session is known: if one runs, its next Stop goes on, or else start one"},
		"alive, and its launcher sees an error": {facts(func(f *see.Facts) {
			f.Backlog, f.Sessions, f.Launcher = waiting(1), session(), &see.Launcher{PID: 7, Doing: "its session is s1" + see.Retries + "the model's API says 529 Overloaded, try 2 of 10"}
		}), see.SessionBusy, "1 entry waits for the next Stop of session s1 (process 42), last heard of at <-10>: the model's API says 529 Overloaded, try 2 of 10"},
		"alive": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(1), session() }),
			see.SessionBusy, "1 entry waits for the next Stop of session s1 (process 42), last heard of at <-10>: it is at work on something else, or waits at its prompt"},
		"alive, and answered": {facts(func(f *see.Facts) { f.Backlog, f.Sessions, f.Asked = waiting(2), session(), ptr(-6) }),
			see.SessionBusy, "2 entries wait for the next Stop of session s1 (process 42), last heard of at <-6>: it is at work on something else, or waits at its prompt"},
		"perhaps alive": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(1), session(life(machine.Unknown)) }),
			see.SessionBusy, "1 entry waits for the next Stop of session s1, last heard of at <-10>: whether it still runs is not known"},
		"ended": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(1), session(ended(-3)) }),
			see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, ended at <-3>"},
		"died": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(2), session(life(machine.Gone)) }),
			see.NoSession, "2 entries wait, and no session runs: start one; the last one, s1, is gone (process 42 has ended)"},
		"rebooted": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(1), session(life(machine.Rebooted)) }),
			see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, ended when the machine went down"},
		"the living one of several": {facts(func(f *see.Facts) {
			f.Backlog = waiting(1)
			f.Sessions = append(session(ended(-1)), append(session(life(machine.Unknown)), session(func(s *see.Session) { s.PID = 43 })...)...)
		}), see.SessionBusy, "1 entry waits for the next Stop of session s1 (process 43), last heard of at <-10>: it is at work on something else, or waits at its prompt"},
		"the one that may live, of several": {facts(func(f *see.Facts) {
			f.Backlog, f.Sessions = waiting(1), append(session(ended(-1)), session(life(machine.Unknown))...)
		}), see.SessionBusy, "1 entry waits for the next Stop of session s1, last heard of at <-10>: whether it still runs is not known"},
		"met an error": {facts(func(f *see.Facts) {
			f.Backlog, f.Sessions = waiting(1), session(func(s *see.Session) { s.Failure = failed(-4) })
		}), see.SessionDown, "1 entry waits, and session s1 met an error at <-4> (overloaded: try later): it waits at its prompt, and asks after its next turn"},
		"met an error, and went on": {facts(func(f *see.Facts) {
			f.Backlog, f.Asked, f.Sessions = waiting(1), ptr(-3), session(func(s *see.Session) { s.Failure = failed(-4) })
		}), see.SessionBusy, "1 entry waits for the next Stop of session s1 (process 42), last heard of at <-3>: it is at work on something else, or waits at its prompt"},
		"met an error, and was prompted": {facts(func(f *see.Facts) {
			f.Backlog, f.Sessions = waiting(1), session(func(s *see.Session) { s.Failure, s.PromptedAt = failed(-4), ptr(-2) })
		}), see.SessionBusy, "1 entry waits for the next Stop of session s1 (process 42), last heard of at <-2>: it is at work on something else, or waits at its prompt"},
		"given back": {facts(func(f *see.Facts) { f.Redeliver, f.Backlog, f.Sessions = inFlight(), waiting(1), session(ended(-3)) }),
			see.NoSession, "the entry 0123456789ab waits to be delivered again (attempt 2), and no session runs: start one; the last one, s1, ended at <-3>"},
		"given back, others behind": {facts(func(f *see.Facts) { f.Redeliver, f.Backlog, f.Sessions = inFlight(), waiting(3), session() }),
			see.SessionBusy, "the entry 0123456789ab waits to be delivered again (attempt 2, 2 more behind it) for the next Stop of session s1 (process 42), last heard of at <-10>: it is at work on something else, or waits at its prompt"},
		"replaced": {facts(func(f *see.Facts) { f.Replaced, f.Backlog, f.Sessions = "it is another file", waiting(2), session() }),
			see.Replaced, "the inbox was truncated or replaced (it is another file), and is read from its start: 2 entries wait for the next Stop of session s1 (process 42), last heard of at <-10>: it is at work on something else, or waits at its prompt"},
	} {
		t.Run(name, c.check)
	}
}

func TestLifeHasAWord(t *testing.T) {
	for life, word := range map[machine.Life]string{machine.Unknown: "unknown", machine.Alive: "running", machine.Gone: "gone", machine.Rebooted: "gone"} {
		assert.Equal(t, word, life.String())
	}
}

func gaveUp(minutes int) *see.GaveUp {
	return &see.GaveUp{At: at(minutes), Text: "restarts: no session started in 7 tries"}
}

// runThat returns a run that stands so, since ten minutes ago.
func runThat(stands orchestrate.WaitState) see.Run {
	r := see.Run{Run: "r1", Dir: "/w/r1", Wait: orchestrate.Wait{State: stands, Text: "it waits", Since: at(-10)}}
	switch stands {
	case orchestrate.Asleep:
		r.Until = ptr(9)
	case orchestrate.Asking:
		r.Effect = "e1"
	}
	return r
}

// What helps a run that rests can be typed in any folder.
func TestARestingRunNamesItsInbox(t *testing.T) {
	assert.Contains(t, runThat(orchestrate.Resting).Stands("/w/q x/inbox.jsonl"), "`heartbeat run accept-code r1 --inbox '/w/q x/inbox.jsonl'`")
	assert.Contains(t, runThat(orchestrate.Stuck).Stands("/w/inbox.jsonl"), "`heartbeat run resume /w/r1 --inbox /w/inbox.jsonl`")
	assert.Contains(t, runThat(orchestrate.Asking).Stands("/w/inbox.jsonl"), "`heartbeat breakpoint approve e1 --inbox /w/inbox.jsonl` (or reject)")
}
