package notify

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/disk"
	"heartbeat/internal/meter"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// still is what stood still at the last look, and since when.
type still struct {
	Look  string    `json:"look,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// StillSince says since when an entry has waited or been in flight and nothing has
// happened: neither in the journal, as far as it is about deliveries and sessions, nor in
// the session's transcript and its subagents', nor in what it has spent. What producers
// append does not count. It is zero where nothing waits, a tool runs, or delivery is
// paused, backs off, or waits for a time.
func StillSince(box *inbox.Inbox, f why.Facts) time.Time {
	_, since := standing(box, f)
	return since
}

// standing is a look at all that moves while entries are worked on, and when the last of
// it did.
func standing(box *inbox.Inbox, f why.Facts) (look string, since time.Time) {
	if f.Unreadable != nil || f.Paused != nil || f.Backoff != nil || !works(f) {
		return "", time.Time{}
	}
	if f.InFlight == nil && f.Redeliver == nil && f.Backlog.Torn && f.Backlog.Entries == 1 {
		return "", time.Time{}
	}
	m := movement{now: f.Now}
	m.note("cursor", f.Cursor)
	if d := f.InFlight; d != nil {
		m.note("in flight", d.DeliveredSeq)
		m.at(d.DeliveredAt)
		transcript := recovery.EvidenceOf(d).Transcript
		m.session(transcript)
		if info, err := disk.StatName(transcript); err == nil && f.Now.Sub(m.last) < toolTime && agent.Of(transcript).ToolRuns(transcript, info.Size) {
			return "", time.Time{}
		}
		if p := d.Progress; p != nil {
			if p.Until.After(f.Now) {
				return "", time.Time{} // its agent asked for that time
			}
			m.note("progress", p.At.UnixNano())
			m.at(p.Until)
		}
	} else {
		m.at(f.WrittenAt) // when the last entry came
	}
	if d := f.Redeliver; d != nil {
		m.note("redeliver", d.DeliveredSeq)
		m.at(d.DeliveredAt)
	}
	m.moment(f.Asked)
	for _, s := range f.Sessions {
		m.moment(s.StartedAt)
		m.moment(s.PromptedAt)
		m.moment(s.EndedAt)
		m.spent(box.Dir(), s.ID)
	}
	return hashed(m.parts...), m.last
}

// movement collects what moves: the latest time, and all that would change with it.
type movement struct {
	now, last time.Time
	parts     []string
}

func (m *movement) note(what string, n int64) { m.parts = append(m.parts, fmt.Sprint(what, n)) }

// at counts a time. One in the future says nothing about when that was.
func (m *movement) at(t time.Time) {
	if t.After(m.last) && !t.After(m.now) {
		m.last = t
	}
}

func (m *movement) moment(t *time.Time) {
	if t != nil {
		m.note("at", t.UnixNano())
		m.at(*t)
	}
}

// toolTime is how long a tool may run, after the session's last line, before it counts as
// one that hangs.
const toolTime = 2 * time.Hour

// spent counts what the session's meter says, and not when it was written: the client's
// status line refreshes it while the model hangs.
func (m *movement) spent(dir, session string) {
	if s, err := meter.Load(dir, session); err == nil && s != nil {
		m.parts = append(m.parts, fmt.Sprintf("%d %#v", s.Read, s.Spent))
	}
}

func (m *movement) file(path string) {
	info, err := disk.StatName(path)
	if err != nil || !info.IsRegular {
		return
	}
	m.note(path, info.Size)
	m.at(time.Unix(0, info.Mtime))
}

// maxSubagents bounds how many transcripts of subagents are looked at.
const maxSubagents = 512

// session counts what the session writes: its transcript, and those of its subagents in
// the folder of the same name.
func (m *movement) session(transcript string) {
	if transcript == "" {
		return
	}
	m.file(transcript)
	dir := filepath.Join(strings.TrimSuffix(transcript, filepath.Ext(transcript)), "subagents")
	names, _, err := disk.Names(dir, maxSubagents)
	if err != nil {
		return // most sessions have none
	}
	for _, n := range names {
		m.file(filepath.Join(dir, n))
	}
}

// stalled finds that nothing moves. Where something has changed since the last look,
// nobody knows when, so the time runs from now.
func (s *scan) stalled(after time.Duration) {
	look, since := standing(s.box, s.facts)
	was := s.st.Still
	switch {
	case look == "":
		s.next.Still = still{Look: nothingWaits}
		return
	case was.Look == look && !was.Since.IsZero():
		since = was.Since // entries that came meanwhile are no movement
	case was.Look != "" || since.IsZero():
		since = s.now
	}
	s.next.Still = still{look, since}
	if s.now.Sub(since) < after {
		return
	}
	state, sentence := s.explain()
	s.holds(Occasion{
		What: Stalled, At: s.now, Since: &since, Reason: string(state),
		Text:     fmt.Sprintf("nothing has moved in %s for %s: %s", name(s.box), words.Took(s.now.Sub(since).Truncate(time.Second)), line(sentence)),
		TypeThis: command(s.box, "status"), key: "stalled " + look,
		Entry: entryOf(s.facts),
	}, time.Time{})
}

// overdue finds a scheduled entry whose time came so long ago and that is not in the queue.
// Whoever looks moves it, so something keeps it from that, whatever else moves.
func (s *scan) overdue(after time.Duration) {
	if s.facts.Unreadable != nil || s.facts.Paused != nil {
		return
	}
	scheduled, err := s.box.Schedule()
	o := Occasion{What: Stalled, At: s.now, Reason: string(why.Scheduled), TypeThis: command(s.box, "status")}
	due := scheduled.Next
	switch {
	case err != nil:
		o.Text, o.key = name(s.box)+": "+line(err.Error()), "overdue"
	case due.IsZero() || s.now.Sub(due) < after:
		return
	default:
		o.Since, o.key = &due, "overdue "+due.String()
		o.Text = fmt.Sprintf("%s: a scheduled entry is due since %s, and could not be moved to the inbox: each Stop and heartbeat status try again", name(s.box), words.Stamp(due))
	}
	s.holds(o, time.Time{})
}

// nothingWaits stands for a look where nothing could stand still.
const nothingWaits = "nothing"

func entryOf(f why.Facts) *Entry {
	d := f.InFlight
	if d == nil {
		d = f.Redeliver
	}
	if d == nil {
		return nil
	}
	return &Entry{ID: d.ID(), EntryID: d.EntryID, Text: d.Text(), Attempts: d.Attempt}
}
