package meter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
)

// Counted is the cost of a session's turns that are not charged yet.
type Counted struct {
	*Count
	turns  []turn
	ledger ledger // up to the first of them
}

type turn struct {
	account.Turn
	Part
	complete bool // the next one has begun
	next     Part // the part with which it begins
	parts    []Part
	other    Part // spent meanwhile on prompts of no entry
}

// Open returns what the turns have cost, and then what summaries proved to cost, to compare with limits.
func (c *Counted) Open(session string) (all []account.Uncharged) {
	ledger, owed := c.ledger, []account.Uncharged(nil)
	ledger.guesses = slices.Clone(ledger.guesses)
	for _, t := range c.turns {
		l := t.line(c.Model)
		l.Charged, l.SessionID, l.Models = t.Charged, session, t.Models
		all = append(all, account.Uncharged{Line: l, Before: t.Before, GoesOn: !t.complete})
		owed = append(owed, ledger.addTurn(&t)...)
	}
	for _, of := range owed {
		if of.SessionID = session; of.Models == nil {
			of.Models = []price.ByModel{{Model: of.Model, Amount: of.Amount}}
		}
		all = append(all, of)
	}
	return all
}

// line returns the line of a part. last is the model of a part without a request.
func (p Part) line(last string) price.Line {
	l := price.Line{Price: price.Price{Amount: p.Spent, Model: last}, Guess: p.Guess.Requests > 0, Own: p.Own}
	if len(p.Models) > 0 {
		l.Model = p.Models[0].Model
	}
	if len(p.Models) > 1 {
		l.Models = p.Models
	}
	return l
}

// CountTurns counts what the turns of a session cost. today, tool and agent are as in [Range].
func CountTurns(s *account.SessionTurns, today time.Time, tool, agent string) (*Counted, error) {
	first, prompts := s.Turns[0], map[string]int64{}
	for _, t := range slices.Backward(s.Turns) { // entries that follow each other in one turn have the same prompt
		if !t.Outside() {
			prompts[t.Prompt] = t.From
		}
	}
	if _, unknown := prompts[""]; unknown {
		clear(prompts)
	}
	later := s.Turns[max(0, slices.IndexFunc(s.Turns, func(t account.Turn) bool { return t.From > 0 }))].From
	c, err := Scan(Range{Transcript: s.Transcript, From: first.From, Since: first.Since, Stated: s.Stated, Later: later, Prompts: prompts, Today: today.UnixMilli(), Tool: tool, Agent: agent})
	if c.missing && slices.ContainsFunc(s.Turns, func(t account.Turn) bool { return t.From > 0 && t.From < maxRead }) { // the client wrote it before
		err = fmt.Errorf("read %s: %w", s.Transcript, errGone)
	}
	return &Counted{c, split(s, c), ledgerOf(s.Ledger, c.Whole)}, err
}

// errGone is the error if nobody can see what a session spends. A transcript that is there again is counted from its new
// end.
var errGone = errors.New("the transcript was moved or removed while its session ran")

// split assigns the parts to the turns. All parts from the beginning of the last known turn on belong to that turn.
func split(s *account.SessionTurns, c *Count) (all []turn) {
	// If dollars are known for some part, a turn without a request cost 0.
	dollars := slices.ContainsFunc(c.Parts, func(p Part) bool { return p.Spent.Dollars })
	at, stated := 0, s.Stated
	for i, of := range s.Turns {
		t, end := turn{Turn: of, Part: Part{Stated: stated}}, len(c.Parts)
		if i+1 < len(s.Turns) {
			if end = beginning(c.Parts, at, s.Turns[i+1]); end < len(c.Parts) {
				t.complete, t.next = true, c.Parts[end]
			}
		}
		t.sum(c.Parts[at:end])
		t.Spent.Dollars = t.Spent.Dollars || dollars && t.Spent.Requests == 0
		if all = append(all, t); !t.complete {
			break
		}
		at, stated = end, t.Stated
	}
	return all
}

// sum makes these the parts of the turn. Outside of entries it does not separate the prompts of no entry.
func (t *turn) sum(parts []Part) {
	t.parts, t.other = parts, Part{}
	for _, p := range parts {
		switch {
		case p.Other == nil:
		case t.Outside():
			t.Part = t.Plus(*p.Other)
		default:
			t.other = t.other.Plus(*p.Other)
		}
		t.Part = t.Plus(p)
	}
}

// late is how late the client may write a line, in milliseconds. A later line means that the clock was set back.
const late = 60_000

// beginning returns the index of the first part of a turn, or len(parts). Parts before from belong to other turns. A line
// that is older than the turn was written late, and belongs to the turn before.
func beginning(parts []Part, from int, of account.Turn) int {
	i := slices.IndexFunc(parts[from:], func(p Part) bool {
		return p.User && p.From >= of.From && (p.At == 0 || p.At >= of.Since || p.At < of.Since-late)
	})
	if i < 0 {
		return len(parts)
	}
	return from + i
}

// long is how many bytes of a transcript are read again each turn at most. A longer open turn is charged up to its last
// line of a user.
const long = 256 << 10

// charge counts a session and books the turns that have ended, and all of them if over says that the session is gone.
func charge(tx *inbox.Tx, session string, over bool) error {
	s := account.Of(tx).Turns(session)
	if s == nil {
		return nil
	}
	c, err := CountTurns(s, account.Of(tx).DayBegan(), "", "")
	over = over && (err == nil || errors.Is(err, errGone)) // otherwise it may become readable
	for len(c.turns) > 0 && (over || c.turns[0].complete) {
		t := &c.turns[0]
		if !t.complete {
			t.next = Part{From: c.Read, Stated: t.Stated, At: t.Since}
		}
		c.book(tx, session, t, false)
		c.turns = c.turns[1:]
	}
	if over {
		account.Of(tx).ForgetTurns(session)
		return err
	}
	if t := &c.turns[0]; len(t.parts) > 1 && c.Read-t.parts[0].From > long {
		open := *t
		last := len(t.parts) - 1
		open.next, open.Part, t.Part = t.parts[last], Part{}, Part{}
		open.sum(t.parts[:last])
		c.book(tx, session, &open, true)
		t.sum(t.parts[last:])
	}
	account.Of(tx).Count(session, c.Open(session))
	return err
}

// book charges a turn up to its next part, and what summaries cost by then. rest says that the turn continues there.
func (c *Counted) book(tx *inbox.Tx, session string, t *turn, rest bool) {
	owed := c.ledger.addTurn(t)
	l := t.line(c.Model)
	l.Charged, l.SessionID, l.End = t.Charged, session, t.next.From
	account.Of(tx).Book(account.Booking{
		Uncharged: account.Uncharged{Line: l, Before: t.Before}, Since: t.next.At, Stated: t.Stated, Ledger: c.ledger.text(), Rest: rest,
	})
	for _, of := range owed {
		of.SessionID, of.End = session, l.End
		account.Of(tx).Charge(of)
	}
}

// ChargeTurn charges what a session has spent, when its own hook runs.
func ChargeTurn(tx *inbox.Tx, session string) error { return charge(tx, session, false) }

// NoteCharge charges what all sessions have spent, to the end of those that are gone. ended is a session that is
// certainly gone, or "". owned says that the client lives that has the entry in flight. If its session has ended, that was
// in another client.
func NoteCharge(tx *inbox.Tx, ended string, owned bool) error {
	var all error
	for _, s := range slices.Clone(account.Of(tx).Account().Sessions) { // charging moves and removes them
		all = errors.Join(all, chargeSession(tx, s.ID, s.ID == ended, owned && tx.InFlight().SessionID == s.ID))
	}
	return all
}

// ChargeOrphan charges what the session of the entry in flight has spent, for callers other than its hooks. The entry can
// then be settled, and its next attempt begins with what this one cost.
func ChargeOrphan(tx *inbox.Tx) error {
	d := tx.InFlight()
	if d == nil || d.SessionID == "" {
		return nil
	}
	return chargeSession(tx, d.SessionID, false, false)
}

// chargeSession charges what a session has spent, for callers other than its hooks. ended says that it is certainly gone,
// and owned that it certainly is not.
func chargeSession(tx *inbox.Tx, session string, ended, owned bool) error {
	known := tx.In(session).Known()
	if s := account.Of(tx).Account().Session(session); s != nil {
		path := cmp.Or(s.Transcript, TranscriptOf(&known))
		account.Of(tx).Position(session, path, claude.TranscriptSize(path), false)
	}
	return charge(tx, session, !owned && (ended || known.EndedAt != nil || known.Life().Ended()))
}

// TranscriptOf returns the transcript that a hook named at the session's start, or "".
func TranscriptOf(s *inbox.Session) string {
	path, _, _ := agent.StartOf(s.StartNote)
	return path
}
