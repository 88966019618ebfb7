package recover

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
)

// moment is an entry that was delivered to session s in its turn p, and what is there when a Stop is judged.
type moment struct {
	Evidence
	unnamed bool // the delivering client named no prompts
	handed  bool // there is a note that the text went out
	restart restart
	// lines is the transcript, and "none" no file.
	lines string

	stop      Stop
	start     string // of the Stop's client
	pid       int    // of the Stop's client
	impatient bool
}

// flight returns the entry of the moment as the Stop's hook finds it.
func (m moment) flight(t *testing.T) *Flight {
	transcript := filepath.Join(t.TempDir(), "t.jsonl")
	if m.lines != "none" {
		require.NoError(t, os.WriteFile(transcript, []byte(m.lines), 0o600))
	}
	for _, path := range []*string{&m.Transcript, &m.stop.TranscriptPath} {
		if *path != "" {
			*path = transcript
		}
	}
	const delivery = 2
	d := &inbox.Delivery{EntryID: entryID, RawLine: inbox.RawLine{Text: "do it"}, DeliveredSeq: delivery, SessionID: "s", PromptID: "p"}
	if m.unnamed {
		d.PromptID = ""
	}
	s := inbox.Session{ID: "s"}
	if m.restart != notRestarted {
		s.StartedAt, s.StartedSeq = new(time.Time), delivery+1
	}
	if m.restart == restartUnknown {
		d.DeliveredSeq = 0
	}
	return &Flight{
		Evidence: m.Evidence, Entry: d, by: Asker{Start: m.start, Client: inbox.Process{PID: m.pid}, Stop: &m.stop},
		noted: noted{session: func() inbox.Session { return s }, handed: m.handed},
	}
}

var entryID = fmt.Sprintf("%x", sha256.Sum256([]byte("do it")))

func line(format string, args ...any) string {
	return `{"uuid":"u","sessionId":"s",` + fmt.Sprintf(format, args...) + "}\n"
}

func answer(text string) string {
	return line(`"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":%q}]}`, text)
}

func fed(text string) string {
	return line(`"type":"user","isMeta":true,"message":{"role":"user","content":%q}`, "Stop hook feedback:\n"+text)
}

func asked(prompt, text string) string {
	return line(`"type":"user","promptId":%q,"message":{"role":"user","content":%q}`, prompt, text)
}

// TestStopMeans has one line for each thing that a Stop can mean for the entry in flight.
func TestStopMeans(t *testing.T) {
	in := func(i claude.Input) Stop {
		if i.SessionID == "" {
			i.SessionID = "s"
		}
		if i.PromptID == "" {
			i.PromptID = "p"
		}
		return Stop{Input: &i, Began: 50, TaskLimit: time.Hour}
	}
	with := func(m moment, change func(*moment)) moment {
		i := *m.stop.Input
		m.stop.Input = &i
		change(&m)
		return m
	}
	later := func(m *moment) { m.Boot, m.SinceBoot = machine.BootID(), 100 } // than the judging hook's start
	// next is a later Stop of the same turn, with another input.
	next := moment{stop: in(claude.Input{StopHookActive: true}), Evidence: Evidence{Notes: true}}
	// same has the input of the delivering Stop.
	same := with(next, func(m *moment) {
		m.Active, m.Reply, m.stop.LastMessage, m.stop.TranscriptPath = true, claude.ReplySum("before"), "before", "t"
	})
	another := moment{stop: in(claude.Input{PromptID: "q"})}
	woken := moment{stop: in(claude.Input{PromptID: "q"}), Evidence: Evidence{Wake: Wake{Woken: true, Before: "before", Token: "token"}}}
	prompted := moment{stop: in(claude.Input{PromptID: "q", TranscriptPath: "t"}), start: "start", Evidence: Evidence{Prompt: Prompt{Prompted: true, Start: "start"}}, impatient: true}
	held := with(another, func(m *moment) {
		m.Held, m.HeldBoot, m.HeldSince, m.stop.Tasks = true, machine.BootID(), machine.Awake(), []claude.Task{{ID: "b1"}}
	})
	announced := func(m *moment) {
		mark := DeliveryMark(entryID, "token")
		m.Transcript, m.lines = "t", asked("q", "<task-notification>\n<summary>Stop hook</summary>\n</task-notification>\n<system-reminder>\nStop hook blocking error from command \"Stop\": "+mark+"\n</system-reminder>")
	}

	for name, c := range map[string]struct {
		moment
		want StopMeaning
	}{
		"the answer":             {with(next, func(m *moment) { m.handed = true }), TurnEnded},
		"of a hook without note": {with(next, func(m *moment) { m.Notes = false }), TurnEnded},
		"no note, text shown":    {with(next, func(m *moment) { m.Transcript, m.lines = "t", fed("do it")+answer("did it") }), TurnEnded},
		"no note, another's turn": {with(next, func(m *moment) {
			m.Reply, m.Fresh, m.Transcript = claude.ReplySum("before"), true, "t"
			m.lines = answer("before") + fed("lint") + answer("mended")
		}), LeftBehind},

		"no note, nothing shown yet":     {with(next, func(m *moment) { m.Transcript = "t" }), Unsure},
		"no note, nothing shown in time": {with(next, func(m *moment) { m.Transcript, m.impatient = "t", true }), LeftBehind},
		"no note, no transcript":         {next, LeftBehind},
		"nothing kept to compare with":   {with(next, func(m *moment) { m.TranscriptSize, m.Notes = -1, false }), TurnEnded},

		"started before the delivery":   {with(next, func(m *moment) { m.handed = true; later(m) }), SameStop},
		"the same input, in background": {with(same, func(m *moment) { m.stop.Background = true }), SameStop},
		"the same input, no transcript": {with(same, func(m *moment) { m.stop.TranscriptPath = "" }), SameStop},
		"the same input, answer shown":  {with(same, func(m *moment) { m.handed, m.lines = true, fed("do it")+answer("before") }), TurnEnded},
		"the same input, not yet shown": {same, Unsure},
		"the same input, never shown":   {with(same, func(m *moment) { m.impatient = true }), Unproven},
		"the same input, no file yet":   {with(same, func(m *moment) { m.lines = "none" }), Unsure},

		"another prompt":                       {another, WentOn},
		"another prompt, not known since when": {with(another, func(m *moment) { m.restart = restartUnknown }), WentOn},
		"resumed":                              {with(another, func(m *moment) { m.restart = restarted }), LeftBehind},
		"another session":                      {with(another, func(m *moment) { m.stop.SessionID = "z" }), LeftBehind},
		"an old client's new prompt":           {with(another, func(m *moment) { m.unnamed, m.Active, m.stop.PromptID = true, true, "" }), WentOn},
		"an old client's answer":               {with(next, func(m *moment) { m.unnamed, m.Notes, m.stop.PromptID = true, false, "" }), TurnEnded},

		"waits for tasks":            {held, Pending},
		"its tasks are over":         {with(held, func(m *moment) { m.stop.Tasks = nil }), TurnEnded},
		"its tasks take too long":    {with(held, func(m *moment) { m.stop.TaskLimit = 0 }), TurnEnded},
		"its tasks, another process": {with(held, func(m *moment) { m.pid = 1 }), WentOn},
		"its tasks, resumed":         {with(held, func(m *moment) { m.restart = restarted }), LeftBehind},

		"woken, its turn":            {with(woken, func(m *moment) { m.Bound, m.stop.PromptID = true, "p" }), TurnEnded},
		"woken, the turn before":     {with(woken, func(m *moment) { m.Bound, m.stop.PromptID = true, "before" }), Pending},
		"woken, announcement missed": {with(woken, announced), TurnEnded},
		"woken, not taken up":        {woken, Pending},
		"woken, its turn unseen": {with(woken, func(m *moment) {
			announced(m)
			m.lines += answer("did it")
			m.stop.PromptID = "later"
		}), Pending},
		"woken, its end unseen": {with(woken, func(m *moment) {
			announced(m)
			m.lines += answer("did it") + line(`"type":"system","subtype":"stop_hook_summary","hookCount":2,"hookInfos":[],"hookErrors":[],"preventedContinuation":false`)
			m.stop.PromptID = "later"
		}), WentOn},
		"woken, another client":      {with(woken, func(m *moment) { m.stop.SessionID = "z" }), LeftBehind},
		"woken, then another prompt": {with(woken, func(m *moment) { m.Bound = true }), WentOn},

		"prompt, its turn":       {with(prompted, func(m *moment) { m.BoundSeq, m.stop.PromptID = 1, "p" }), TurnEnded},
		"prompt, binding missed": {with(prompted, func(m *moment) { m.lines = asked("q", "do it") }), TurnEnded},
		"prompt, not shown yet":  {with(prompted, func(m *moment) { m.impatient, m.lines = false, answer("hello") }), Unsure},
		"prompt, never shown":    {with(prompted, func(m *moment) { m.lines, m.restart = answer("hello"), restartUnknown }), Pending},
		"prompt, no transcript":  {with(prompted, func(m *moment) { m.impatient, m.lines, m.restart = false, "none", restartUnknown }), Pending},
		"prompt, client before":  {with(prompted, func(m *moment) { m.BoundSeq, m.stop.PromptID = 1, "p"; later(m) }), Pending},
		"prompt, another start":  {with(prompted, func(m *moment) { m.start = "another" }), Pending},
		"prompt, another client": {with(prompted, func(m *moment) { m.start, m.stop.SessionID = "", "z"; later(m) }), LeftBehind},

		"prompt, its client was killed": {with(prompted, func(m *moment) { m.start, m.BoundSeq, m.restart = "", 1, restarted }), LeftBehind},
		"prompt, then another prompt":   {with(prompted, func(m *moment) { m.BoundSeq = 1 }), WentOn},
		"prompt, waits for tasks":       {with(prompted, func(m *moment) { m.BoundSeq, m.TaskWait, m.stop.Tasks = 1, held.TaskWait, held.stop.Tasks }), Pending},
		"prompt, its tasks are over":    {with(prompted, func(m *moment) { m.BoundSeq, m.TaskWait = 1, held.TaskWait }), TurnEnded},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.flight(t)
			means, waitFor := f.StopMeans(!c.impatient)
			assert.Equal(t, c.want, means)
			if means == Unsure {
				assert.Equal(t, "t.jsonl", filepath.Base(waitFor))
			} else {
				assert.Empty(t, waitFor)
			}
		})
	}
}

// Without a client the flag file alone counts, as the inbox has found it.
func TestStopMeansWithoutAClient(t *testing.T) {
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(box.Path(), []byte("do it\n"), 0o600))
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(e, inbox.Recipient{})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	means, _ := Asker{}.Flight(tx).StopMeans(true)
	assert.Equal(t, LeftBehind, means)
	require.NoError(t, tx.Close())

	require.NoError(t, os.WriteFile(filepath.Join(box.Dir(), ".responded"), nil, 0o600))
	tx, err = box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	means, _ = Asker{}.Flight(tx).StopMeans(true)
	assert.Equal(t, TurnEnded, means)
}

// In a container every client has process number 1. Another process with that number, or one known only by number, is
// not the client that got the entry.
func TestIsClient(t *testing.T) {
	pid := os.Getpid()
	own := Flight{Evidence: Evidence{Process: inbox.ProcessOf(pid)}, by: Asker{Client: inbox.Process{PID: pid}}}
	assert.True(t, own.isClient())
	for name, change := range map[string]func(f *Flight){
		"another boot":    func(f *Flight) { f.Boot = "another" },
		"another process": func(f *Flight) { f.ProcessStart-- },
		"another number":  func(f *Flight) { f.PID++ },
		"another room":    func(f *Flight) { f.Namespace = "another" },
		"only its number": func(f *Flight) { f.ProcessStart = 0 },
		"nothing of it":   func(f *Flight) { f.PID, f.ProcessStart = 0, 0 },
	} {
		f := own
		change(&f)
		assert.False(t, f.isClient(), name)
	}
}
