package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/see"
)

// The files beside the inbox.
const (
	StateName = ".notified.json"
	lockName  = ".notify-lock"
	// nextName is held by the one process that waits for the lock. It will see everything that happened before it
	// gets the lock, so nobody else has to wait.
	nextName = ".notify-next"
)

// state records what was told so far.
type state struct {
	V int `json:"v"`
	// Lock is the identity of the lock file. It differs in a state that came with a copy of the directory or was
	// forged, and such a state is not believed.
	Lock    string        `json:"lock"`
	Letters journal.Place `json:"letters"`
	// Holding are the conditions that were told and still hold.
	Holding map[string]holding `json:"holding,omitempty"`
	// Seen is when a condition that must last before it is told was first seen.
	Seen map[string]time.Time `json:"seen,omitempty"`
	// Done are the occasions that the round in progress has told.
	Done []string `json:"done,omitempty"`
	// ToldAt are the times of the latest messages, by kind.
	ToldAt map[What][]time.Time `json:"told_at,omitempty"`
	// Settled is how many entries were settled when the inbox was last seen drained.
	Settled *int64 `json:"settled,omitempty"`
	// Said is what launchers had to tell and nobody was told yet.
	Said    []Occasion `json:"said,omitempty"`
	Trouble trouble    `json:"trouble"`

	written []byte // the file's present content
}

// holding is a condition that was told and still holds.
type holding struct {
	At   time.Time `json:"at"`             // when it was first told
	Last time.Time `json:"last,omitzero"`  // when it was last told
	Kind see.Kind  `json:"kind,omitempty"` // empty if its end is not told
	Text string    `json:"text,omitempty"`
	// Times is how often it was told.
	Times int `json:"times,omitempty"`
}

// trouble records that the command fails.
type trouble struct {
	Key       string    `json:"key,omitempty"` // the occasion that could not be told
	Tries     int       `json:"tries,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"`
	Noted     time.Time `json:"noted,omitzero"` // when the log got a line
}

const (
	maxState   = 1 << 20
	maxHolding = 256
	maxSaid    = 16
)

// load reads what was told. A state that cannot be read or believed counts as none, so recent occasions are told
// once more.
func load(box *inbox.Inbox, lock string, now time.Time) *state {
	b, err := disk.ReadState(filepath.Join(box.Dir(), StateName), maxState)
	st := &state{Holding: map[string]holding{}, ToldAt: map[What][]time.Time{}}
	if err != nil || json.Unmarshal(b, st) != nil || st.V != 1 || st.Lock != lock || lock == "" || st.Holding == nil || st.ToldAt == nil {
		return &state{V: 1, Lock: lock, Holding: map[string]holding{}, ToldAt: map[What][]time.Time{}}
	}
	st.sayings(b)
	st.clamp(now)
	st.written = bytes.TrimSuffix(b, []byte("\n"))
	return st
}

// sayings takes what launchers said as older releases spelled it, each in an object with a key, and removes what cannot
// be told: it would wait for ever.
func (st *state) sayings(text []byte) {
	var former struct{ Said []struct{ Occasion Occasion } }
	_ = json.Unmarshal(text, &former) // it is JSON
	for i, was := range former.Said[:min(len(former.Said), len(st.Said))] {
		if st.Said[i].What == "" {
			st.Said[i] = was.Occasion
		}
	}
	st.Said = slices.DeleteFunc(st.Said, func(o Occasion) bool { return !slices.Contains(byUrgency, o.What) })
}

// clamp moves times in the future to now, because after the clock was set back they would silence messages. It also
// removes values that no release writes.
func (st *state) clamp(now time.Time) {
	past := func(at time.Time) time.Time {
		if at.After(now) {
			return now
		}
		return at
	}
	for key, told := range st.Holding {
		told.At, told.Last = past(told.At), past(told.Last)
		if !see.Known(told.Kind) { // it is passed on, so it must be a kind we know
			told.Kind = ""
		}
		st.Holding[key] = told
	}
	for key, at := range st.Seen {
		st.Seen[key] = past(at)
	}
	for _, times := range st.ToldAt {
		for i := range times {
			times[i] = past(times[i])
		}
	}
	st.Letters.At, st.Letters.Off = past(st.Letters.At), max(0, st.Letters.Off)
	st.Trouble.Noted = past(st.Trouble.Noted)
	if st.Trouble.NotBefore.After(now.Add(lastPause)) {
		st.Trouble.NotBefore = now
	}
	st.Said = st.Said[:min(len(st.Said), maxSaid)]
}

// save writes the state without syncing it. If a power loss undoes the write, some occasions are told twice.
//
// An unchanged state is not written, because each write changes the directory and wakes everybody who watches it.
func (st *state) save(box *inbox.Inbox) error {
	b, err := json.Marshal(st)
	if err == nil && bytes.Equal(b, st.written) {
		return nil
	}
	if err == nil {
		err = disk.Publish(filepath.Join(box.Dir(), StateName), append(b, '\n'), false)
	}
	if err != nil {
		return fmt.Errorf("note what was told: %w", err)
	}
	st.written = b
	return nil
}
