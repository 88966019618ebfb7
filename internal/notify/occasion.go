package notify

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// What is the kind of an occasion.
type What string

// The kinds, the most urgent first.
const (
	Question   What = "question"    // a session or a run waits for a person's answer
	Fault      What = "fault"       // the inbox cannot be worked on: its state, or the disk
	Stalled    What = "stalled"     // work is there, and nothing has happened for a while
	Failing    What = "failing"     // session after session fails, or a launcher has given up
	Limit      What = "limit"       // an entry or a day has reached its limit
	Paused     What = "paused"      // nothing is delivered
	DeadLetter What = "dead-letter" // an entry was set aside
	Drained    What = "drained"     // nothing waits any more
	Over       What = "over"        // a trouble that was told is over
	More       What = "more"        // stands for occasions that were not told one by one
	Test       What = "test"        // somebody tries the command
)

// byUrgency are the kinds in that order: where not everything is told one by one, the
// first ones are.
var byUrgency = []What{Question, Fault, Stalled, Failing, Limit, Paused, DeadLetter, Over, Drained, More, Test}

// Occasion is what the command gets on stdin, as one JSON object. Texts are valid UTF-8
// without control characters, on one line, and bounded.
type Occasion struct {
	V    int  `json:"v"` // 1
	What What `json:"what"`
	// Trouble is which one it is about, as status --json names it; empty for none.
	Trouble see.Kind  `json:"trouble,omitempty"`
	Inbox   string    `json:"inbox"` // its absolute path
	Host    string    `json:"host"`
	At      time.Time `json:"at"`
	// Text is a sentence for a person. It has nothing of an entry's text.
	Text string `json:"text"`
	// Reason is why, in a word or in the words of whoever caused it.
	Reason string `json:"reason,omitempty"`
	// TypeThis is a command line to look into it with.
	TypeThis string `json:"type_this"`
	Entry    *Entry `json:"entry,omitempty"`
	Session  string `json:"session_id,omitempty"`
	// Run and Effect are those of a babysitter run that asks.
	Run     string         `json:"run,omitempty"`
	Effect  string         `json:"effect,omitempty"`
	Failure *inbox.Failure `json:"failure,omitempty"`
	Until   *time.Time     `json:"until,omitempty"` // when a pause ends by itself
	Since   *time.Time     `json:"since,omitempty"` // nothing has happened since
	// Count is how many occasions a summary stands for, by kind in Kinds.
	Count int64          `json:"count,omitempty"`
	Kinds map[What]int64 `json:"kinds,omitempty"`

	key   string // the same for the same occasion
	holds bool   // it is known by its time in the state for as long as it holds
	of    What   // the kind that a summary stands for

	urgency see.Urgency
	text    string    // without the words for a repetition
	first   time.Time // when it was told first, zero if it was not
}

// holding is what the state has of an occasion that was told then.
func (o Occasion) holding(now time.Time, was holding) holding {
	h := holding{At: now, Last: now, Times: 1}
	if o.holds { // its end is told, too
		h.Kind, h.Text = o.Trouble, line(o.text)
	}
	if !o.first.IsZero() {
		h.At, h.Times = o.first, was.Times+1
	}
	return h
}

// Entry is the entry that an occasion is about.
type Entry struct {
	ID       string `json:"id,omitempty"`
	EntryID  string `json:"entry_id"`
	Letter   string `json:"letter,omitempty"` // the name of its dead letter
	Text     string `json:"text,omitempty"`   // its beginning
	Attempts int    `json:"attempts,omitempty"`
}

// MarshalJSON is the object as a consumer gets it.
func (o Occasion) MarshalJSON() ([]byte, error) {
	type plain Occasion
	p := plain(o)
	p.V, p.Inbox, p.Host = 1, valid(o.Inbox), valid(o.Host)
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

// maxText is how many characters of a foreign text are told.
const maxText = 500

// line is foreign text on one line, without control characters.
func line(s string) string {
	if len(s) > 8*maxText { // no need to look at all of it
		s = s[:words.WholeRunes([]byte(s[:8*maxText]))]
	}
	s = words.Line(s)
	n := 0
	for at := range s {
		if n++; n > maxText {
			return s[:at] + " ..."
		}
	}
	return s
}

// valid is a path: only what no JSON text can hold is replaced.
func valid(s string) string { return string([]rune(s)) }

// name is the inbox as a sentence names it: with its folder, since most inboxes are
// called the same.
func name(box *inbox.Inbox) string {
	return words.Line(filepath.Join(filepath.Base(box.Dir()), filepath.Base(box.Path())))
}

// pending are the occasions of a kind that were not told yet.
type pending struct {
	n    int64
	kept []Occasion // the first ones
	// lasting are those that hold, without their texts' limits.
	lasting []Occasion
}

// keptOfEach is how many occasions of a kind are kept to be told one by one.
const keptOfEach = maxTold + 1

func (p *pending) add(o Occasion) {
	if o.holds {
		p.lasting = append(p.lasting, o)
	}
	if p.n++; p.n <= keptOfEach {
		p.kept = append(p.kept, o)
	}
}

// next takes out the oldest one.
func (p *pending) next() Occasion {
	slices.SortStableFunc(p.kept, func(a, b Occasion) int { return a.At.Compare(b.At) })
	o := p.kept[0]
	p.kept = p.kept[1:]
	p.n--
	return o
}
