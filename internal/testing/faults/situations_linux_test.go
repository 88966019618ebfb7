package faults

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// situation is a command, and the state of an inbox in which a call of it fails.
type situation struct {
	name   string
	queue  string       // what stands in the inbox at first
	before func(*world) // what has happened since
	flags  []string     // of all hooks
	// The command is a verb, or the hook at an event; neither is the Stop of the session.
	verb    []string
	event   string
	members map[string]any
	// launches says that it is the launcher, whose own calls fail, and not those of what it
	// starts.
	launches bool
	most     int          // faults that are drawn at most, 0 for all
	wakes    bool         // the Stop of a session that the hook is to wake
	after    func(*world) // what somebody does then, before the next sessions
	holds    func(*world) // what else is to be so at the end
	dies     bool         // a session has died with an entry in flight
	// ends are the places that each entry may come to, by its id.
	ends map[string]string
}

var (
	retry      = []string{"--on-orphan", "retry"}
	deadletter = []string{"--on-orphan", "deadletter"}
)

const (
	a  = `{"id":"a","prompt":"do [a]","sent_at":"2026-11-22T10:00:00Z"}` + "\n"
	ab = a + `{"id":"b","prompt":"do [b]","sent_at":"2026-11-22T10:00:00Z"}` + "\n"

	answered = "answered"
)

var (
	endA   = map[string]string{"a": answered}
	endAB  = map[string]string{"a": answered, "b": answered}
	endABC = map[string]string{"a": answered, "b": answered, "c": answered}
)

var situations = []situation{
	{name: "idle", flags: retry},
	{name: "first delivery", queue: ab, flags: retry, ends: endAB},
	{name: "acknowledge and deliver", queue: ab, before: asks, flags: retry, ends: endAB},
	{name: "acknowledge the last", queue: a, before: asks, flags: retry, ends: endA},
	{name: "orphan to retry", queue: ab, before: dies, flags: retry, dies: true, ends: endAB},
	{name: "orphan to dead letter", queue: ab, before: dies, flags: deadletter, ends: map[string]string{"a": "letter: orphaned", "b": "answered|letter: orphaned"}},
	{name: "session start", queue: ab, before: dies, flags: retry, event: "SessionStart", dies: true, ends: endAB},
	{name: "session end", queue: ab, before: asks, flags: retry, event: "SessionEnd", dies: true, ends: endAB},
	{name: "turn failed", queue: ab, before: asks, flags: retry, event: "StopFailure", members: map[string]any{"error": "overloaded"}, after: resumes, dies: true, ends: endAB},
	{name: "said done", queue: ab, before: said(inbox.Verdict{Kind: inbox.VerdictDone, Text: "42"}), flags: retry, ends: endAB},
	{name: "said rejected", queue: ab, before: said(inbox.Verdict{Kind: inbox.VerdictRejected, Text: "no"}), flags: retry, ends: map[string]string{"a": "letter: rejected", "b": answered}},
	{name: "said failed", queue: ab, before: said(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "no"}), flags: retry, dies: true, ends: endAB},
	{name: "put off", queue: ab, before: said(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "no", Until: &tomorrow}), flags: retry, ends: map[string]string{"a": "scheduled", "b": answered}},
	{name: "due", before: scheduled("a"), flags: retry, ends: endA},
	{name: "due beside others", queue: ab, before: scheduled("c"), flags: retry, ends: endABC},
	{name: "due at an acknowledgement", queue: a, before: then(asks, scheduled("b")), flags: retry, ends: endAB},
	{name: "two due, one later", before: then(scheduled("a"), scheduled("b"), later("c")), flags: retry, ends: map[string]string{"a": answered, "b": answered, "c": "scheduled"}},
	{name: "put off and due", queue: ab, before: putOff, flags: retry, dies: true, ends: endAB},
	{name: "due at a session's start", before: scheduled("a"), flags: retry, event: "SessionStart", ends: endA},
	{name: "refilled", queue: ab, before: then(asks, answers, refills), flags: retry, ends: map[string]string{"a": answered, "b": answered, "d": answered, "e": answered}},
	{name: "inbox restored", queue: a, before: inboxRestored, flags: retry, ends: endAB},
	{name: "state restored", queue: ab, before: stateRestored, flags: retry, ends: endAB},
	{name: "in flight removed", queue: ab, before: then(asks, inFlightRemoved), flags: retry, ends: endAB},
	{name: "torn", queue: strings.TrimSuffix(ab, "\n"), flags: retry, ends: endAB},
	{name: "killed before it followed", queue: ab, before: then(asks, killedAtWrite), flags: retry, dies: true, ends: endAB},
	{name: "journal trimmed", queue: ab, before: fillsJournal, flags: retry, ends: endAB},
	{name: "expired", queue: `{"id":"b","prompt":"do [b]","expires_at":"2001-01-01T00:00:00Z"}` + "\n" + a, flags: retry, ends: map[string]string{"a": answered, "b": "letter: expired"}},
	{name: "nothing in it", queue: `{"id":"b","prompt":" "}` + "\n" + a, flags: retry, ends: map[string]string{"a": answered, "b": "letter: .*"}},
	{name: "long", queue: `{"id":"b","prompt":"do [b]` + strings.Repeat("x", 3<<20) + `"}` + "\n" + a, flags: retry, ends: endAB},
	{name: "canceled and passed", queue: ab, before: then(canceled("a")), flags: retry, ends: map[string]string{"a": "letter: canceled", "b": answered}},
	{name: "answered late", queue: ab, before: then(asks, setAside), flags: retry, ends: map[string]string{"a": "letter: orphaned", "b": answered}},
	{name: "requeued", queue: ab, before: then(asks, setAside, newSession, requeues), flags: retry, dies: true, ends: endAB},

	{name: "wakes", queue: ab, wakes: true, flags: retry, dies: true, ends: endAB},
	{name: "wakes for what is due", before: scheduled("a"), wakes: true, flags: retry, dies: true, ends: endA},

	{name: "launch", queue: ab, before: client, launches: true, most: 200, flags: retry, dies: true, ends: endAB},
	{name: "launch after a death", queue: ab, before: then(client, dies), launches: true, most: 200, flags: retry, dies: true, ends: endAB},

	{name: "send", queue: ab, verb: []string{"send", "--id", "c", "do [c]"}, flags: retry, ends: endABC},
	{name: "send at first", verb: []string{"send", "--id", "a", "do [a]"}, flags: retry, ends: endA},
	{name: "send behind a torn line", queue: strings.TrimSuffix(ab, "\n"), verb: []string{"send", "--settle", "0", "--id", "c", "do [c]"}, flags: retry, ends: endABC},
	{name: "send for later", queue: ab, verb: []string{"send", "--id", "c", "--not-before", "2999-01-01", "do [c]"}, flags: retry, ends: map[string]string{"a": answered, "b": answered, "c": "scheduled"}},
	{name: "send beside what is due", before: scheduled("a"), verb: []string{"send", "--id", "b", "do [b]"}, flags: retry, ends: endAB},
	{name: "send a batch", queue: a, before: batch, verb: []string{"send", "--batch", "DIR/batch"}, flags: retry, ends: endABC},
	{name: "cancel", queue: ab, verb: []string{"cancel", "a"}, flags: retry, ends: map[string]string{"a": "letter: canceled", "b": answered}},
	{name: "cancel all", queue: ab, before: later("c"), verb: []string{"cancel", "--all"}, flags: retry, ends: map[string]string{"a": "letter: canceled", "b": "letter: canceled", "c": "letter: canceled"}},
	{name: "cancel what is scheduled", queue: ab, before: later("c"), verb: []string{"cancel", "c"}, flags: retry, ends: map[string]string{"a": answered, "b": answered, "c": "letter: canceled"}},
	{name: "pause", queue: ab, verb: []string{"pause"}, after: resumes, flags: retry, ends: endAB},
	{name: "resume", queue: ab, before: paused, verb: []string{"resume"}, flags: retry, ends: endAB},
	{name: "resume beside what is due", queue: a, before: then(scheduled("b"), paused), verb: []string{"resume"}, flags: retry, ends: endAB},
	{name: "recover to retry", queue: ab, before: dies, verb: []string{"recover", "--on-orphan", "retry"}, flags: retry, dies: true, ends: endAB},
	{name: "recover to dead letter", queue: ab, before: dies, verb: []string{"recover"}, flags: retry, ends: map[string]string{"a": "letter: orphaned", "b": answered}},
	{name: "requeue", queue: ab, before: then(asks, setAside, newSession), verb: []string{"dead-letter", "requeue", "--all"}, flags: retry, dies: true, ends: endAB},
	{name: "accept", queue: ab, before: then(asks, setAside, late), verb: []string{"dead-letter", "accept", "a"}, flags: retry, dies: true, ends: endAB},
	{name: "purge", queue: ab, before: then(asks, setAside, newSession), verb: []string{"dead-letter", "purge", "--all", "--yes"}, flags: retry, ends: map[string]string{"b": answered}},
	{name: "compact", queue: longLines, before: then(asks, answers, answers), verb: []string{"compact"}, flags: retry, dies: true, ends: endABC},
	{name: "compact and trim", queue: longLines, before: then(asks, answers, answers), verb: []string{"compact", "--keep", "0"}, flags: retry, dies: true, ends: map[string]string{"c": answered}},
	{name: "tell", queue: ab, before: then(dies, setAside), verb: tells, flags: retry, after: tellsAgain, holds: isTold, ends: map[string]string{"a": "letter: orphaned", "b": answered}},

	{name: "status", queue: ab, before: beside, verb: []string{"status"}, flags: retry, dies: true, ends: endBeside},
	{name: "status beside what is due", queue: a, before: scheduled("b"), verb: []string{"status", "--json"}, flags: retry, ends: endAB},
	{name: "peek", queue: ab, before: beside, verb: []string{"peek"}, flags: retry, dies: true, ends: endBeside},
	{name: "log", queue: ab, before: beside, verb: []string{"log"}, flags: retry, dies: true, ends: endBeside},
	{name: "results", queue: ab, before: beside, verb: []string{"results"}, flags: retry, dies: true, ends: endBeside},
	{name: "metrics", queue: ab, before: beside, verb: []string{"metrics"}, flags: retry, dies: true, ends: endBeside},
	{name: "costs", queue: ab, before: beside, verb: []string{"costs"}, flags: retry, dies: true, ends: endBeside},
	{name: "letters", queue: ab, before: beside, verb: []string{"dead-letter", "list"}, flags: retry, dies: true, ends: endBeside},
	{name: "fsck", queue: ab, before: beside, verb: []string{"fsck"}, flags: retry, dies: true, ends: endBeside},
	{name: "fsck repairs", queue: ab, before: then(scheduled("c"), asks, killedAtWrite), verb: []string{"fsck", "--repair"}, flags: retry, dies: true, ends: endABC},
	{name: "doctor", queue: ab, before: beside, verb: []string{"doctor"}, flags: retry, dies: true, ends: endBeside},
}

// beside is an inbox of which there is something in each place, looked at beside a session
// that has died.
var (
	beside    = then(canceled("a"), dies, later("c"))
	endBeside = map[string]string{"a": "letter: canceled", "b": answered, "c": "scheduled"}
)

var tells = []string{"notify", "--notify", "cat >> DIR/told"}

func tellsAgain(w *world) { w.verb(nil, tells...) }

// isTold finds that a dead letter was told, at most once too often, or is to be told as soon
// as the command may be tried again.
func isTold(w *world) {
	n := strings.Count(w.read("told"), `"dead-letter"`)
	if n == 0 {
		assert.Contains(w.t, w.verb(nil, "notify").stdout, "dead letter a", "it is not told, and nobody will")
	}
	assert.LessOrEqual(w.t, n, 2, "how often it was told")
}

var tomorrow = time.Now().Add(24 * time.Hour).UTC()

var longLines = strings.ReplaceAll(ab, "]", "]"+strings.Repeat("x", 5000)) + `{"id":"c","prompt":"do [c]"}` + "\n"

func then(all ...func(*world)) func(*world) {
	return func(w *world) {
		for _, f := range all {
			f(w)
		}
	}
}

// asks has the agent asked for an entry.
func asks(w *world) {
	r, goes := w.stop(nil)
	require.True(w.t, goes, r.stderr)
}

// answers has it answer one, and asked for the next.
func answers(w *world) { asks(w) }

// dies has the session die with an entry in flight.
func dies(w *world) {
	asks(w)
	w.begin()
}

func newSession(w *world) { w.begin() }

func (w *world) must(args ...string) {
	w.t.Helper()
	r := w.verb(nil, args...)
	require.Zero(w.t, r.status, "%q: %s", args, r.stderr)
}

func resumes(w *world)  { w.must("resume") }
func paused(w *world)   { w.must("pause") }
func setAside(w *world) { w.must("recover") }
func requeues(w *world) { w.must("dead-letter", "requeue", "--all") }

func canceled(id string) func(*world) { return func(w *world) { w.must("cancel", id) } }

func batch(w *world) {
	w.write("batch", `{"id":"b","prompt":"do [b]"}`+"\n"+`{"id":"c","prompt":"do [c]"}`+"\n")
}

// late has the turn of an entry end that was set aside meanwhile.
func late(w *world) {
	w.stop(nil)
	w.session.tag = ""
}

// said has the agent say something of the entry in flight.
func said(v inbox.Verdict) func(*world) {
	return func(w *world) {
		asks(w)
		w.change(0, func(tx *inbox.Tx) { require.NoError(w.t, tx.Say(v)) })
	}
}

// scheduled has an entry sent an hour ago that is due since half an hour.
func scheduled(id string) func(*world) {
	return func(w *world) { w.schedule(id, time.Now().Add(-30*time.Minute)) }
}

func later(id string) func(*world) {
	return func(w *world) { w.schedule(id, tomorrow) }
}

func (w *world) schedule(id string, at time.Time) {
	_, err := w.box(time.Hour).Append(context.Background(), inbox.Message{ID: id, Text: "do [" + id + "]", NotBefore: at}, 0)
	require.NoError(w.t, err)
}

// putOff has an entry put off an hour ago that is due again.
func putOff(w *world) {
	asks(w)
	w.change(time.Hour, func(tx *inbox.Tx) { require.NoError(w.t, tx.PutOff("no", time.Now().Add(-30*time.Minute))) })
	w.begin()
}

// refills truncates the inbox, and fills it again.
func refills(w *world) {
	w.write("q/inbox.jsonl", `{"id":"d","prompt":"do [d]"}`+"\n"+`{"id":"e","prompt":"do [e]"}`+"\n")
}

func inboxRestored(w *world) {
	old := w.read("q/inbox.jsonl")
	asks(w)
	w.must("send", "--id", "b", "do [b]")
	asks(w)
	w.drain()
	w.write("q/inbox.jsonl", old)
	w.begin()
}

func stateRestored(w *world) {
	asks(w)
	old := map[string]string{}
	for _, name := range []string{".inbox-journal", ".inbox-offset", ".in-flight", ".responded"} {
		old[name] = w.read("q/" + name)
	}
	answers(w)
	w.drain()
	for name, text := range old {
		w.write("q/"+name, text)
	}
	w.begin()
}

func inFlightRemoved(w *world) { require.NoError(w.t, os.Remove(w.path("q/.in-flight"))) }

// killedAtWrite has the hook killed behind its commit.
func killedAtWrite(w *world) {
	r, _ := w.stop(&fault{"pwrite64", kill, 2})
	require.True(w.t, r.killed, "status %d", r.status)
	w.begin()
}

// fillsJournal leaves a journal that the next commit makes long enough to trim.
func fillsJournal(w *world) {
	box := w.box(0)
	for len(strings.TrimRight(w.read("q/.inbox-journal"), "\x00")) < 235<<10 {
		tx, err := box.Begin(context.Background())
		require.NoError(w.t, err)
		_, err = tx.Holds().Pause("x", nil)
		require.NoError(w.t, err)
		require.NoError(w.t, tx.Commit())
		require.NoError(w.t, tx.Holds().Resume())
		require.NoError(w.t, tx.Commit())
		require.NoError(w.t, tx.Close())
	}
}
