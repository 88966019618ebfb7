// Package charging brings what the sessions' transcripts say into the account of their inbox, and tells
// people what entries have cost.
package charging

import (
	"cmp"
	"errors"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// Counted is what the turns of a session have cost that are not charged yet.
type Counted struct {
	*meter.Count
	turns []turn
}

// turn is what one of them has cost.
type turn struct {
	inbox.Turn
	meter.Part
	complete bool       // the next one has begun
	next     meter.Part // with which
	parts    []meter.Part
}

// Open is what they have cost, for those who hold it against limits.
func (c *Counted) Open(session string) (all []inbox.Uncharged) {
	for _, t := range c.turns {
		all = append(all, inbox.Uncharged{Turn: t.Turn, SessionID: session, Price: t.price(c.Model)})
	}
	return all
}

func (t *turn) price(last string) price.Price {
	p := price.Price{Amount: t.Spent, Model: last}
	if len(t.Models) > 0 {
		p.Model = t.Models[0].Model
	}
	return p
}

// Look counts the turns of a session. tool and agent are as [meter.Range] has them.
func Look(s *inbox.SessionTurns, tool, agent string) (*Counted, error) {
	first := s.Turns[0]
	c, err := meter.Scan(meter.Range{Transcript: s.Transcript, From: first.From, Since: first.Since, Stated: s.Stated, Tool: tool, Agent: agent})
	return &Counted{c, split(s, c)}, err
}

// split says which parts are of which turn. What lies behind the last that is known belongs to that.
func split(s *inbox.SessionTurns, c *meter.Count) (all []turn) {
	dollars := false // of a turn without a request they are 0, where they are known of others
	for _, p := range c.Parts {
		dollars = dollars || p.Spent.Dollars
	}
	at, stated := 0, s.Stated
	for i, of := range s.Turns {
		t, end := turn{Turn: of, Part: meter.Part{Stated: stated}}, len(c.Parts)
		if i+1 < len(s.Turns) {
			if end = beginning(c.Parts, at, s.Turns[i+1]); end < len(c.Parts) {
				t.complete, t.next = true, c.Parts[end]
			}
		}
		t.parts = c.Parts[at:end]
		for _, p := range t.parts {
			t.Part = t.Plus(p)
		}
		t.Spent.Dollars = t.Spent.Dollars || dollars && t.Spent.Requests == 0
		if all = append(all, t); !t.complete {
			break
		}
		at, stated = end, t.Stated
	}
	return all
}

// late bounds how long the client takes to write a line, in milliseconds. One that is
// older by more was not late: the clock was set back.
const late = 60_000

// beginning is the part with which a turn begins, from one on. Lines that were written late, and belong to what
// was before, are older than the turn.
func beginning(parts []meter.Part, from int, of inbox.Turn) int {
	for i := from; i < len(parts); i++ {
		p := parts[i]
		if p.User && p.From >= of.From && (p.At == 0 || p.At >= of.Since || p.At < of.Since-late) {
			return i
		}
	}
	return len(parts)
}

// long is how much of a transcript is read again at each turn at most, in bytes, before a turn that goes on
// is charged up to its last line of a user.
const long = 256 << 10

// charge counts a session, and books its turns whose end is known. over says that nothing more is to come:
// then all of them are.
func charge(tx *inbox.Tx, session string, over bool) error {
	s := tx.Turns(session)
	if s == nil {
		return nil
	}
	c, err := Look(s, "", "")
	over = over && err == nil // it may be read one day
	for len(c.turns) > 0 && (over || c.turns[0].complete) {
		t := &c.turns[0]
		if !t.complete {
			t.next = meter.Part{From: c.Read, Stated: t.Stated, At: t.Since}
		}
		book(tx, session, t, c.Model, false)
		c.turns = c.turns[1:]
	}
	if over {
		tx.ForgetTurns(session)
		return err
	}
	if t := &c.turns[0]; len(t.parts) > 1 && c.Read-t.parts[0].From > long {
		open := *t
		last := len(t.parts) - 1
		open.next, open.Part = t.parts[last], meter.Part{}
		for _, p := range t.parts[:last] {
			open.Part = open.Plus(p)
		}
		book(tx, session, &open, c.Model, true)
		t.Part, t.parts = t.parts[last], t.parts[last:]
	}
	tx.Count(session, c.Open(session))
	return err
}

// book charges a turn up to its next part; rest says that it goes on there.
func book(tx *inbox.Tx, session string, t *turn, model string, rest bool) {
	p := t.price(model)
	l := price.Line{
		At: tx.Now(), EntryID: t.EntryID, ID: t.ID, Start: t.Turn.Start, FirstSeq: t.FirstSeq, DeliveredSeq: t.DeliveredSeq, Attempt: t.Attempt,
		SessionID: session, Price: p, Guess: t.Guess, End: t.next.From,
	}
	if len(t.Models) > 1 {
		l.Models = t.Models
	}
	tx.Book(session, inbox.Booking{Amount: p.Amount, Line: l.JSON(), From: t.next.From, Since: t.next.At, Stated: t.Stated, Rest: rest})
}

// Turn charges what a session has spent, at a moment of which its own hook tells.
func Turn(tx *inbox.Tx, session string) error { return charge(tx, session, false) }

// Note charges what all sessions have spent, to their ends where the client is gone; ended is one that
// certainly is, "" for none.
func Note(tx *inbox.Tx, ended string) error {
	known, err := tx.Sessions()
	if err != nil {
		return err
	}
	var all error
	for _, s := range tx.Account().Sessions {
		place(tx, known, s.ID)
		all = errors.Join(all, charge(tx, s.ID, s.ID == ended || isGone(known, s.ID)))
	}
	return all
}

// Orphan charges what the session of the entry in flight has spent, whoever finds it: the
// entry is settled then, and its next attempt begins with what this one cost.
func Orphan(tx *inbox.Tx) error {
	d := tx.InFlight()
	if d == nil || d.SessionID == "" {
		return nil
	}
	known, err := tx.Sessions()
	if err != nil {
		return err
	}
	place(tx, known, d.SessionID)
	return charge(tx, d.SessionID, isGone(known, d.SessionID))
}

// place says where a session's transcript ends, for who is none of its hooks.
func place(tx *inbox.Tx, known []inbox.Session, session string) {
	if a := tx.Account(); a.Session(session) != nil {
		s := a.Session(session)
		path := cmp.Or(s.Transcript, transcriptOf(known, session))
		tx.Position(session, path, claude.TranscriptSize(path), false)
	}
}

func isGone(known []inbox.Session, id string) bool {
	for _, s := range known {
		if s.ID == id {
			life := s.Life()
			return s.EndedAt != nil || life == machine.Gone || life == machine.Rebooted
		}
	}
	return false
}

// transcriptOf is the transcript that a hook named at the session's start, "" if none did.
func transcriptOf(known []inbox.Session, id string) string {
	for _, s := range known {
		if s.ID == id {
			path, _ := agent.StartOf(s.StartNote)
			return path
		}
	}
	return ""
}
