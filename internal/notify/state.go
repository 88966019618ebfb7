package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
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
	// nextName is held by the one who waits for the lock: what it will find includes
	// whatever happened before, so nobody else has to wait.
	nextName = ".notify-next"
)

// state is what was told so far.
type state struct {
	V int `json:"v"`
	// Lock is the identity of the lock's file. A state that came with a copy of the
	// directory, or that was forged without looking, has another one, and is not
	// believed.
	Lock    string        `json:"lock"`
	Letters journal.Place `json:"letters"`
	// Holding are the conditions that were told and still hold, and since when.
	Holding map[string]holding `json:"holding,omitempty"`
	// Seen is since when troubles are known that are told only once they have lasted.
	Seen map[string]time.Time `json:"seen,omitempty"`
	// Done are the occasions of the round in progress that were told.
	Done []string `json:"done,omitempty"`
	// ToldAt are when the last messages of each kind went out.
	ToldAt map[What][]time.Time `json:"told_at,omitempty"`
	// Settled is how many entries were settled when the inbox was last seen drained.
	Settled *int64    `json:"settled,omitempty"`
	Still   see.Still `json:"still"`
	Said    []said    `json:"said,omitempty"`
	Trouble trouble   `json:"trouble"`

	written []byte // as it is in the file
}

// holding is a condition that was told and still holds.
type holding struct {
	At   time.Time `json:"at"`             // when it was told first
	Last time.Time `json:"last,omitzero"`  // when it was told last
	Kind see.Kind  `json:"kind,omitempty"` // empty for what nobody is told the end of
	Text string    `json:"text,omitempty"`
	// Times is how often it was told.
	Times int `json:"times,omitempty"`
}

// said is what a launcher had to tell and nobody was told yet.
type said struct {
	Key      string   `json:"key"`
	Occasion Occasion `json:"occasion"`
}

// trouble is about a command that fails.
type trouble struct {
	Key       string    `json:"key,omitempty"` // of the occasion that could not be told
	Tries     int       `json:"tries,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"`
	Noted     time.Time `json:"noted,omitzero"` // when the log got a line
}

const (
	maxState   = 1 << 20
	maxHolding = 256
	maxSaid    = 16
)

// load reads what was told. A state that cannot be believed or read counts as none:
// then what happened of late is told once more.
func load(box *inbox.Inbox, lock string, now time.Time) *state {
	fresh := &state{V: 1, Lock: lock, Holding: map[string]holding{}, ToldAt: map[What][]time.Time{}}
	b, err := disk.ReadState(filepath.Join(box.Dir(), StateName), maxState)
	var st state
	if err != nil || json.Unmarshal(b, &st) != nil || st.V != 1 || st.Lock != lock || lock == "" {
		return fresh
	}
	if st.Holding == nil {
		st.Holding = fresh.Holding
	}
	if st.ToldAt == nil {
		st.ToldAt = fresh.ToldAt
	}
	st.clamp(now)
	st.written = bytes.TrimSuffix(b, []byte("\n"))
	return &st
}

// clamp takes back what lies in the future: after the clock was set back it would
// silence what is to be told. And what no release writes.
func (st *state) clamp(now time.Time) {
	back := func(at *time.Time) {
		if at.After(now) {
			*at = now
		}
	}
	for key, told := range st.Holding {
		back(&told.At)
		back(&told.Last)
		if !see.Known(told.Kind) { // it is told on, so it must be none that somebody made up
			told.Kind = ""
		}
		st.Holding[key] = told
	}
	for key, at := range st.Seen {
		back(&at)
		st.Seen[key] = at
	}
	for _, times := range st.ToldAt {
		for i := range times {
			back(&times[i])
		}
	}
	back(&st.Letters.At)
	st.Letters.Off = max(0, st.Letters.Off)
	back(&st.Still.Since)
	back(&st.Trouble.Noted)
	if st.Trouble.NotBefore.After(now.Add(lastPause)) {
		st.Trouble.NotBefore = now
	}
	st.Said = st.Said[:min(len(st.Said), maxSaid)]
}

// save writes the state. After a power loss it may be gone, which has some occasions
// told twice.
//
// The same state is not written again: each write changes the directory, which wakes
// everybody who follows it.
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
