package see

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/agent"
	"heartbeat/internal/disk"
	recovery "heartbeat/recover"
)

// Still is since when nothing moves although something should. It is zero if nothing waits, a tool runs, or delivery is
// paused, backs off, or waits for a time.
type Still struct {
	Fingerprint string    `json:"look,omitempty"` // stays the same for as long as nothing moves
	Since       time.Time `json:"since,omitzero"` // when anything last moved, zero if nobody knows
}

// StandsStill returns since when an entry waits or is in flight and nothing has moved: no delivery, no session, and no
// line in the transcripts of the session and its subagents. Entries that producers append do not count.
func StandsStill(f Facts) Still {
	if f.Unreadable != nil || f.Paused != nil || f.Backoff != nil || f.InFlight == nil && !f.hasEntry() {
		return Still{}
	}
	m := movement{now: f.Now}
	m.note("cursor", f.Cursor)
	if d := f.InFlight; d != nil {
		m.note("in flight", d.DeliveredSeq)
		m.at(d.DeliveredAt)
		transcript := recovery.EvidenceOf(d).Transcript
		m.session(transcript)
		if info, err := disk.StatName(transcript); err == nil && f.Now.Sub(m.last) < toolTime && agent.ForTranscript(transcript).IsToolRunning(transcript, info.Size) {
			return Still{}
		}
		if d.Check.Running() {
			return Still{} // the check ends by itself
		}
		if p := d.Progress; p != nil {
			if p.Until.After(f.Now) {
				return Still{} // the agent asked for this time
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
	}
	return Still{Key(m.parts...), m.last}
}

// movement collects the latest time at which anything moved, and all values that change with a movement.
type movement struct {
	now, last time.Time
	parts     []string
}

func (m *movement) note(what string, n int64) { m.parts = append(m.parts, fmt.Sprint(what, n)) }

// at counts a time. A time in the future, by a file server's clock or from before ours was set back, may be now.
func (m *movement) at(t time.Time) {
	if t.After(m.last) {
		m.last = t.Add(min(0, m.now.Sub(t)))
	}
}

func (m *movement) moment(t *time.Time) {
	if t != nil {
		m.note("at", t.UnixNano())
		m.at(*t)
	}
}

// toolTime is how long a tool may run after the session's last line before it counts as hanging.
const toolTime = 2 * time.Hour

func (m *movement) file(path string) {
	if info, err := disk.StatName(path); err == nil && info.IsRegular {
		m.note(path, info.Size)
		m.at(time.Unix(0, info.Mtime))
	}
}

// session counts what the session writes: its transcript, and its subagents' in the folder of the same name.
func (m *movement) session(transcript string) {
	if transcript == "" {
		return
	}
	m.file(transcript)
	dir := filepath.Join(strings.TrimSuffix(transcript, filepath.Ext(transcript)), "subagents")
	names, _, err := disk.Names(dir, 512) // of so many subagents the transcripts count
	if err != nil {
		return // most sessions have none
	}
	for _, n := range names {
		m.file(filepath.Join(dir, n))
	}
}
