package notify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/disk"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// What is the kind of an occasion.
type What string

// The kinds, most urgent first.
const (
	Question   What = "question"
	Fault      What = "fault"   // the inbox cannot be worked on
	Stalled    What = "stalled" // work waits, and nothing moves
	Failing    What = "failing" // session after session fails
	Limit      What = "limit"
	Paused     What = "paused"
	DeadLetter What = "dead-letter"
	Drained    What = "drained" // nothing waits any more
	Over       What = "over"    // what was told has ended
	More       What = "more"    // what was not told one by one
	Test       What = "test"
)

// byUrgency lists the kinds in the order in which they are told.
var byUrgency = []What{Question, Fault, Stalled, Failing, Limit, Paused, DeadLetter, Over, Drained, More, Test}

// Occasion is the JSON object on the command's stdin. Its texts are bounded lines of UTF-8 without control characters.
type Occasion struct {
	V        int            `json:"v"` // 1
	What     What           `json:"what"`
	Trouble  see.Kind       `json:"trouble,omitempty"` // as in "status"
	Inbox    string         `json:"inbox"`
	Host     string         `json:"host"`
	At       time.Time      `json:"at"`   // when it happened, or was found
	Text     string         `json:"text"` // a sentence, which quotes no entry
	Reason   string         `json:"reason,omitempty"`
	TypeThis string         `json:"type_this"` // a command line
	Entry    *Entry         `json:"entry,omitempty"`
	Session  string         `json:"session_id,omitempty"`
	Run      string         `json:"run,omitempty"`
	Effect   string         `json:"effect,omitempty"`
	Failure  *inbox.Failure `json:"failure,omitempty"`
	Until    *time.Time     `json:"until,omitempty"`
	Since    *time.Time     `json:"since,omitempty"` // when anything last happened, or "over" was told first
	Count    int64          `json:"count,omitempty"` // what "more" stands for, or was "drained"
	Kinds    map[What]int64 `json:"kinds,omitempty"` // the same by "what"

	remembered
}

// remembered decides when the occasion is told, and whether it is told again.
type remembered struct {
	key   string // identifies the occasion
	holds bool   // the state remembers it for as long as it holds
	of    What   // the kind that a summary stands for

	urgency see.Urgency
	text    string    // Text without the words for a repetition
	first   time.Time // when it was first told, zero if never
}

// occasion returns an occasion whose command line is that of the verb status.
func occasion(box *inbox.Inbox, what What, at time.Time, reason, key, text string) Occasion {
	return Occasion{
		What: what, Inbox: box.Path(), At: at, Reason: reason, Text: text, TypeThis: see.Command(box.Path(), "status"),
		remembered: remembered{key: key},
	}
}

// Entry is the entry that an occasion is about.
type Entry struct {
	ID       string `json:"id,omitempty"`
	EntryID  string `json:"entry_id"`
	Letter   string `json:"letter,omitempty"`
	Text     string `json:"text,omitempty"` // its beginning
	Attempts int    `json:"attempts,omitempty"`
}

// MarshalJSON bounds and cleans every text before it reaches the command.
func (o Occasion) MarshalJSON() ([]byte, error) {
	type plain Occasion
	p := plain(o)
	host, _ := os.Hostname()
	p.V, p.Inbox, p.Host = 1, string([]rune(o.Inbox)), line(cmp.Or(host, "unknown"))
	p.Text, p.Reason = line(o.Text), line(o.Reason)
	p.Session, p.Run, p.Effect = line(o.Session), line(o.Run), line(o.Effect)
	if e := o.Entry; e != nil {
		p.Entry = &Entry{line(e.ID), line(e.EntryID), line(e.Letter), words.Brief(e.Text), e.Attempts}
	}
	if f := o.Failure; f != nil {
		p.Failure = &inbox.Failure{Error: line(f.Error), Message: line(f.Message), At: f.At}
	}
	return json.Marshal(p)
}

// line puts foreign text on one line, of at most 500 characters and without control characters.
func line(s string) string {
	s = words.Line(s[:min(len(s), 8*500)]) // enough for 500 characters
	if cut := fmt.Sprintf("%.500s", s); cut != s {
		return cut + " ..."
	}
	return s
}

// name includes the project, because most inboxes are called work/inbox.jsonl.
func name(box *inbox.Inbox) string {
	return words.Line(filepath.Join(filepath.Base(filepath.Dir(box.Dir())), filepath.Base(box.Dir()), filepath.Base(box.Path())))
}

// The files beside the inbox.
const (
	StateName = ".notified.json"
	lockName  = ".notify-lock"
	// nextName is held by the one process that waits for the lock, which will see all that happened before it gets it.
	nextName = ".notify-next"
)

type state struct {
	V int `json:"v"`
	// Lock is the identity of the lock file. It differs in a state that came with a copy of the directory or was
	// forged, and such a state is not believed.
	Lock    string             `json:"lock"`
	Letters outcomes.Place     `json:"letters"`
	Holding map[string]holding `json:"holding,omitempty"`
	// Seen is when a condition that must last before it is told was first seen.
	Seen    map[string]time.Time `json:"seen,omitempty"`
	Done    []string             `json:"done,omitempty"`    // what the round in progress has told
	ToldAt  map[What][]time.Time `json:"told_at,omitempty"` // when the latest messages of a kind went out
	Settled *int64               `json:"settled,omitempty"` // entries, when the inbox was last seen drained
	Said    []Occasion           `json:"said,omitempty"`    // what launchers had to tell and nobody was told yet
	Trouble trouble              `json:"trouble"`

	written []byte // the file's present content
}

// holding is a condition that was told and still holds.
type holding struct {
	At   time.Time `json:"at"`             // when it was first told
	Last time.Time `json:"last,omitzero"`  // when it was last told
	Kind see.Kind  `json:"kind,omitempty"` // empty if its end is not told
	Text string    `json:"text,omitempty"`

	Times int `json:"times,omitempty"` // how often it was told
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

// load reads what was told. A state that cannot be read or believed counts as none: recent occasions are told again.
func load(box *inbox.Inbox, lock string, now time.Time) *state {
	b, err := disk.ReadState(filepath.Join(box.Dir(), StateName), maxState)
	st := &state{Holding: map[string]holding{}, ToldAt: map[What][]time.Time{}}
	if err != nil || json.Unmarshal(b, st) != nil || st.V != 1 || st.Lock != lock || lock == "" || st.Holding == nil || st.ToldAt == nil {
		return &state{V: 1, Lock: lock, Holding: map[string]holding{}, ToldAt: map[What][]time.Time{}}
	}
	st.clamp(now)
	st.written = bytes.TrimSuffix(b, []byte("\n"))
	return st
}

// clamp moves times in the future to now, because after the clock was set back they would silence messages. It also
// removes values that no release writes, and occasions of unknown kinds, which would wait for ever.
func (st *state) clamp(now time.Time) {
	past := func(all ...*time.Time) {
		for _, at := range all {
			if at.After(now) {
				*at = now
			}
		}
	}
	for key, told := range st.Holding {
		past(&told.At, &told.Last)
		if !see.Known(told.Kind) { // it is passed on, so it must be a kind we know
			told.Kind = ""
		}
		st.Holding[key] = told
	}
	for key, at := range st.Seen {
		past(&at)
		st.Seen[key] = at
	}
	for _, times := range st.ToldAt {
		for i := range times {
			past(&times[i])
		}
	}
	past(&st.Letters.At, &st.Trouble.Noted)
	st.Letters.Off = max(0, st.Letters.Off)
	if st.Trouble.NotBefore.After(now.Add(lastPause)) {
		st.Trouble.NotBefore = now
	}
	st.Said = slices.DeleteFunc(st.Said, func(o Occasion) bool { return !slices.Contains(byUrgency, o.What) })
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
