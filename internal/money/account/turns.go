package account

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
)

// Turn is a part of a session's transcript: one delivery of an entry, or the time between two.
type Turn struct {
	price.Charged
	// From is a length that the transcript had. The turn begins with the first line of a user at or behind
	// From; the first turn of a session begins exactly there.
	From int64
	// Since is the time of From in milliseconds since 1970; older lines belong to the previous turn. 0 if unknown.
	Since int64
	// Prompt is the client's id of the entry's prompt, "" if unknown, or if there were several. It distinguishes the
	// entry's lines from those of a second client of the session.
	Prompt string
}

// SessionTurns holds the uncharged turns of a session, in the order of its transcript.
type SessionTurns struct {
	ID, Transcript string
	// Stated is the client's own total before these turns, in billionths of a dollar.
	Stated int64
	// Ledger is the charger's record of what was charged since Stated, or [BrokenLedger] if another process
	// took over the session meanwhile.
	Ledger string
	Turns  []Turn
}

// BrokenLedger is a [SessionTurns.Ledger] after which nobody knows what the client's next total covers.
const BrokenLedger = "-"

const (
	// maxAccounts bounds the number of sessions that have turns at once. How far another session was charged can be
	// read from .costs.jsonl.
	maxAccounts = 8
	// maxTurns bounds the turns of a session whose transcript cannot be read.
	maxTurns = 24
	// maxSessionName is the longest session name for which turns are kept.
	maxSessionName = 128
	// nowhere is the From of a turn that began at an unknown length. The next known length replaces it.
	nowhere = 1 << 62
)

// position is the end of a session's transcript in this transaction, and its time.
type position struct {
	transcript    string
	length, since int64
}

// Position sets how long a session's transcript is. Call it before the transaction settles, delivers or binds an entry:
// spending from the user's next line on belongs to the turn that then begins. over means that no turn is in progress at
// that length; because the client writes lines late, later lines that are older than this transaction still belong to
// the previous turn. Position reports whether the transcript was cut: it is shorter than before, and the last turn
// continues at its end.
func (m *Money) Position(session, transcript string, length int64, over bool) (cut bool) {
	if session == "" || len(session) > maxSessionName {
		return false
	}
	if m.positions == nil {
		m.positions = map[string]position{}
	}
	p := position{transcript: transcript, length: max(0, length)}
	if over {
		p.since = m.books.Now().UnixMilli()
	} else if was, given := m.positions[session]; given {
		p.since = was.since
	}
	m.positions[session] = p
	s := m.Account().Session(session)
	if s == nil {
		return false
	}
	moved := transcript != "" && s.Transcript != transcript
	for i := range s.Turns {
		if of := &s.Turns[i]; p.length > 0 && of.From > p.length {
			cut, moved = cut || of.From != nowhere, true
			of.From = p.length
		}
	}
	if cut { // the lines that told the turns apart are gone
		last := s.Turns[len(s.Turns)-1]
		last.Since, last.Prompt = m.books.Now().UnixMilli(), "" // nobody can tell whose the prompts behind the cut are
		s.Turns, s.Ledger = []Turn{last}, BrokenLedger
	}
	if moved {
		s.Transcript = cmp.Or(transcript, s.Transcript)
		m.changeAccount()
	}
	return cut
}

// Turns returns the turns of a session, nil if it is not counted. A session that is new here begins with this call.
func (m *Money) Turns(session string) *SessionTurns {
	s := m.Account().Session(session)
	if p, given := m.positions[session]; s == nil && given && p.length > 0 {
		s = m.openSession(session, false)
	}
	return s
}

// openSession begins the turns of a session at the place up to which it was charged last. If that is unknown
// and the session has just begun, its earlier spending is charged to nobody.
func (m *Money) openSession(session string, began bool) *SessionTurns {
	p, first := m.positions[session], Turn{}
	if began {
		first = Turn{From: p.length, Since: m.books.Now().UnixMilli()}
	}
	if p.length > 0 {
		end, at, found := m.lastCharged(session)
		switch {
		case found && end > 0 && end <= p.length:
			first.From, first.Since = end, at
		case found:
			first.From, first.Since = p.length, m.books.Now().UnixMilli()
		}
	}
	return m.front(SessionTurns{ID: session, Transcript: p.transcript, Turns: []Turn{first}})
}

// TranscriptEnd is the member of a line of .costs.jsonl that says how far the session's transcript was charged.
const TranscriptEnd = "transcript_end"

// lastCharged returns how far a session's transcript was charged, and when. Unreadable lines are ignored.
func (m *Money) lastCharged(session string) (end, at int64, found bool) {
	err := m.books.Last(func(l []byte) {
		m := flat.Value(l)
		if m.Get("session_id").Text() != session {
			return
		}
		found = true
		end, _ = strconv.ParseInt(string(m.Get(TranscriptEnd)), 10, 64) // lines of earlier releases lack it
		if when, err := time.Parse(time.RFC3339, m.Get("at").Text()); err == nil {
			at = when.UnixMilli()
		}
	})
	if err != nil {
		m.books.Warn("what session %s has cost cannot be read: %v", session[:min(len(session), 12)], err)
	}
	return end, at, found
}

// chargedTo reports whether a price is charged to any delivery of that entry, and chargedFor to that very delivery.
func chargedTo(c price.Charged, d *inbox.Delivery) bool {
	return c.EntryID == d.EntryID && c.FirstSeq == d.First()
}

func chargedFor(c price.Charged, d *inbox.Delivery) bool {
	return chargedTo(c, d) && c.DeliveredSeq == d.DeliveredSeq
}

// Enter begins the turn of a delivered entry. None of its lines is older than the delivery.
func (m *Money) Enter(d *inbox.Delivery) {
	id, prompt := d.ID(), d.PromptID
	if len(prompt) != promptSize || strings.ContainsAny(prompt, " h") {
		prompt = ""
	}
	m.begin(d.SessionID, Turn{Since: d.DeliveredAt.UnixMilli(), Prompt: prompt, Charged: price.Charged{
		EntryID: d.EntryID, ID: strings.ToValidUTF8(id[:min(len(id), maxName)], ""), Start: d.StartOffset,
		FirstSeq: d.First(), DeliveredSeq: d.DeliveredSeq, Attempt: d.Attempt,
	}})
	if d.FirstSeq > 0 {
		m.catchUp(d)
	}
}

// catchUp gives an entry what was charged to it while it was put off: only the lines tell.
func (m *Money) catchUp(d *inbox.Delivery) {
	var sum price.Amount
	_ = m.books.Last(func(line []byte) { // where they cannot be read, what is known counts
		if flat.Value(line).Get("entry_id").Text() != d.EntryID {
			return // the file may have many lines
		}
		if l, err := price.ParseLine(line); err == nil && chargedTo(l.Charged, d) {
			sum = sum.Plus(l.Amount)
		}
	})
	if sum.ClientNanos = 0; sum.Requests > Amount(d.Spent).Requests {
		m.books.SetSpent(d, sum.Short())
	}
}

// promptSize is the length of a prompt's id, a UUID. In the account, words of earlier releases may be in its place: they
// are shorter, or have an h, which no UUID has.
const promptSize = 36

// maxName bounds an entry's own id in the account, which every record carries several times.
const maxName = 200

// lastOf returns the last turn of a delivery's session, if that is the delivery's own turn.
func (m *Money) lastOf(d *inbox.Delivery) (s *SessionTurns, last *Turn) {
	if s = m.Account().Session(d.SessionID); s != nil {
		if last = &s.Turns[len(s.Turns)-1]; chargedFor(last.Charged, d) {
			return s, last
		}
	}
	return nil, nil
}

// Leave ends the turn of the entry in flight, which is settled, or whose session began another turn. The entry is not
// charged for anything behind the position that [Money.Position] set.
func (m *Money) Leave(d *inbox.Delivery) {
	if _, last := m.lastOf(d); last != nil {
		m.begin(d.SessionID, Turn{})
	}
}

// NeverArrived makes a delivery cost nothing, since the spending in its turn was for something else.
func (m *Money) NeverArrived(d *inbox.Delivery) {
	if s, last := m.lastOf(d); last != nil {
		*last = Turn{From: last.From, Since: last.Since}
		m.changeAccount()
		s.merge()
	}
}

// Rebind moves the beginning of a delivery to its actual turn. Earlier spending was for something else,
// unless the delivery goes on after a failed check.
func (m *Money) Rebind(d *inbox.Delivery) {
	if _, known := m.positions[d.SessionID]; !known {
		return
	}
	if d.Check == nil || d.Check.Status != inbox.CheckFailed {
		m.NeverArrived(d)
	} else if _, last := m.lastOf(d); last != nil {
		m.changeAccount()
		last.Prompt = "" // the turn goes on with another one
		return
	}
	m.Enter(d)
}

// Arrive notes that a session begins, or continues in another process. No turn of an entry continues there by itself.
func (m *Money) Arrive(session string) {
	p, known := m.positions[session]
	if !known {
		return
	}
	s := m.Account().Session(session)
	if s == nil {
		m.openSession(session, true)
		return
	}
	if s.Ledger != "" || s.Turns[0].From < p.length {
		m.changeAccount()
		s.Ledger = BrokenLedger
	}
	m.begin(session, Turn{})
}

// begin begins a turn at the session's position. A session without any position is not counted.
func (m *Money) begin(session string, turn Turn) {
	p, given := m.positions[session]
	s := m.Account().Session(session)
	switch {
	case s != nil:
		s = m.front(*s)
	case given:
		s = m.openSession(session, false)
	default:
		return
	}
	if turn.From = nowhere; given {
		turn.From, turn.Since = p.length, cmp.Or(turn.Since, p.since)
	}
	last := &s.Turns[len(s.Turns)-1]
	switch {
	case last.Outside() && turn.Outside():
		return // the turn goes on
	case last.Outside() && given && last.From == p.length && last.Since == p.since && p.since != 0:
		*last = turn // both begin in this transaction, with nothing in between
	default:
		s.Turns = append(s.Turns, turn)
	}
	s.merge()
}

// merge joins neighbouring turns that belong to no entry, and beyond maxTurns the oldest turns.
func (s *SessionTurns) merge() {
	for i := len(s.Turns) - 1; i > 0; i-- {
		if s.Turns[i-1].Outside() && s.Turns[i].Outside() {
			s.Turns = slices.Delete(s.Turns, i, i+1)
		}
	}
	for len(s.Turns) > maxTurns {
		s.Turns[0] = Turn{From: s.Turns[0].From, Since: s.Turns[0].Since}
		s.Turns = slices.Delete(s.Turns, 1, 2)
	}
}

func (s *SessionTurns) encode() []byte {
	var o flat.Object
	o.String("session_id", s.ID)
	o.Text("transcript", s.Transcript)
	if s.Stated != 0 {
		o.Int("stated", s.Stated)
	}
	o.Text("ledger", s.Ledger)
	o.Raw("spans", flat.List(s.Turns, func(b []byte, t *Turn) []byte { return flat.AppendText(b, t.text()) }))
	return o.End()
}

// sessionTurnsFrom reads what encode wrote. Records of earlier releases may also hold a closed session, which
// was charged, and a first part that no entry is charged for.
func sessionTurnsFrom(v flat.Value) (s SessionTurns, err error) {
	m, err := flat.Parse([]byte(v))
	if err != nil {
		return s, err
	}
	s = SessionTurns{ID: m.String("session_id"), Transcript: m.String("transcript"), Stated: m.Int("stated"), Ledger: m.String("ledger")}
	closed := m.Bool("closed")
	for _, v := range m.Value("spans").Items() {
		turn, before, err := turnFrom(v.Text())
		if err != nil {
			return s, err
		}
		if !before && !closed {
			s.Turns = append(s.Turns, turn)
		}
	}
	return s, m.Err()
}

// text encodes a turn as one short string, since every record carries it: From, Since, a word for earlier releases and
// the prompt, followed for an entry by its offset, commits, attempt and ids.
func (s *Turn) text() string {
	text := fmt.Sprintf("%d %d 0 %s", s.From, s.Since, cmp.Or(s.Prompt, "-"))
	if s.Outside() {
		return text
	}
	text += fmt.Sprintf(" %d %d %d %d %s", s.Start, s.FirstSeq, s.DeliveredSeq, s.Attempt, s.EntryID)
	if s.ID != "" {
		text += " " + s.ID
	}
	return text
}

// turnFrom reads what text wrote. before means that an earlier release marked the turn as spent before it knew the
// session. If that release had found the exact line, the third word is the line's offset.
func turnFrom(text string) (s Turn, before bool, err error) {
	parts := strings.SplitN(text, " ", 10)
	var line, attempt int64
	into := [...]*int64{&s.From, &s.Since, &line, nil, &s.Start, &s.FirstSeq, &s.DeliveredSeq, &attempt}
	if n := len(parts); n != 4 && n < 9 {
		return s, false, notTurn(text)
	}
	for i, p := range parts[:min(len(parts), len(into))] {
		if into[i] == nil && len(p) == promptSize {
			s.Prompt = p
		} else if into[i] == nil {
			before = strings.Contains(p, "h")
		} else if *into[i], err = strconv.ParseInt(p, 10, 64); err != nil {
			return s, false, notTurn(text)
		}
	}
	s.Attempt = int(attempt)
	switch {
	case line > 0:
		s.From, s.Since = line, 0
	case s.From < 0:
		s.From = nowhere
	}
	if len(parts) > 8 {
		s.EntryID = parts[8]
	}
	if len(parts) > 9 {
		s.ID = parts[9]
	}
	return s, before, nil
}

func notTurn(text string) error { return fmt.Errorf("%q is not a turn", text[:min(len(text), 40)]) }
