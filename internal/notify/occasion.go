package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// What is the kind of an occasion.
type What string

// The kinds, most urgent first.
const (
	Question   What = "question"    // a session or a run waits for a person's answer
	Fault      What = "fault"       // the inbox cannot be worked on, because of its state or the disk
	Stalled    What = "stalled"     // work waits, and nothing has moved for a while
	Failing    What = "failing"     // session after session fails, or a launcher has given up
	Limit      What = "limit"       // an entry or a day has reached its limit
	Paused     What = "paused"      // nothing is delivered
	DeadLetter What = "dead-letter" // an entry was set aside
	Drained    What = "drained"     // nothing waits any more
	Over       What = "over"        // a trouble that was told has ended
	More       What = "more"        // a summary of occasions that were not told one by one
	Test       What = "test"        // somebody tries the command
)

// byUrgency lists the kinds in the order in which they are told.
var byUrgency = []What{Question, Fault, Stalled, Failing, Limit, Paused, DeadLetter, Over, Drained, More, Test}

// Occasion is the JSON object that the command gets on stdin. Its texts are bounded, valid UTF-8, on one line, and
// free of control characters.
type Occasion struct {
	V    int  `json:"v"` // 1
	What What `json:"what"`
	// Trouble is the kind of trouble, as status --json names it, or empty.
	Trouble see.Kind  `json:"trouble,omitempty"`
	Inbox   string    `json:"inbox"` // absolute path
	Host    string    `json:"host"`  // of the process that tells
	At      time.Time `json:"at"`
	// Text is a sentence for a person. It quotes nothing of an entry's text.
	Text string `json:"text"`
	// Reason is why, in a word or in the words of whoever caused it.
	Reason string `json:"reason,omitempty"`
	// TypeThis is a command line that shows more.
	TypeThis string `json:"type_this"`
	Entry    *Entry `json:"entry,omitempty"`
	Session  string `json:"session_id,omitempty"`
	// Run and Effect name the babysitter run that asks, and its question.
	Run     string         `json:"run,omitempty"`
	Effect  string         `json:"effect,omitempty"`
	Failure *inbox.Failure `json:"failure,omitempty"`
	Until   *time.Time     `json:"until,omitempty"` // when a pause ends by itself
	Since   *time.Time     `json:"since,omitempty"` // when anything last happened
	// Count is how many occasions a summary stands for; Kinds splits it by kind.
	Count int64          `json:"count,omitempty"`
	Kinds map[What]int64 `json:"kinds,omitempty"`

	remembered
}

// remembered is what decides when the occasion is told, and whether again.
type remembered struct {
	key   string // identifies the occasion
	holds bool   // the state remembers it for as long as it holds
	of    What   // the kind that a summary stands for

	urgency see.Urgency
	text    string    // Text without the words for a repetition
	first   time.Time // when it was first told, zero if never
}

// Entry is the entry that an occasion is about.
type Entry struct {
	ID       string `json:"id,omitempty"`
	EntryID  string `json:"entry_id"`
	Letter   string `json:"letter,omitempty"` // the name of its dead letter
	Text     string `json:"text,omitempty"`   // how the prompt begins
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
	s = words.Line(s[:min(len(s), 8*500)]) // which is enough to look at
	if cut := fmt.Sprintf("%.500s", s); cut != s {
		return cut + " ..."
	}
	return s
}

// name includes the folder, because most inboxes have the same file name.
func name(box *inbox.Inbox) string {
	return words.Line(filepath.Join(filepath.Base(box.Dir()), filepath.Base(box.Path())))
}
