package inbox

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Turn is a part of a session's transcript: one delivery of an entry, or what lies between two.
type Turn struct {
	// EntryID is empty outside of entries. The entry is the one whose first delivery had
	// the commit FirstSeq, and this delivery has DeliveredSeq.
	EntryID, ID            string
	Start                  int64
	FirstSeq, DeliveredSeq int64
	Attempt                int
	// From is a length that the transcript had: the turn begins with the first line of a
	// user at or behind it, and the first turn of a session right there.
	From int64
	// Since is when that was, in milliseconds since 1970, where that line is not older; 0 if that
	// is not so.
	Since int64
}

// Outside reports whether the turn belongs to no entry.
func (s Turn) Outside() bool { return s.EntryID == "" }

// SessionTurns are the turns of a session that are not charged yet, in their order in its transcript.
type SessionTurns struct {
	ID, Transcript string
	// Stated is the client's own total before them, in billionths of a dollar.
	Stated int64
	Turns  []Turn
}

const (
	// maxAccounts is how many sessions have turns at once. How far another was charged is
	// found again in .costs.jsonl.
	maxAccounts = 8
	// maxTurns bounds a session whose transcript cannot be read.
	maxTurns = 24
	// maxSessionName is how long the name of a session may be whose turns are kept.
	maxSessionName = 128
	// nowhere is a place that nobody knew: the transcript's end, for who knows that next.
	nowhere = 1 << 62
)

// position is where a session's transcript ended in this transaction, and since when.
type position struct {
	transcript    string
	length, since int64
}

// Position says how long a session's transcript is as this transaction settles, delivers or binds:
// what is spent from the next line of a user on belongs to what follows. over says that no turn goes on
// there: the client writes lines late, and those that are older than this transaction belong to what was
// before. Call it before. It reports whether the transcript was cut: it
// is shorter than it was, and the last turn goes on at its end.
func (t *Tx) Position(session, transcript string, length int64, over bool) (cut bool) {
	if session == "" || len(session) > maxSessionName {
		return false
	}
	if t.positions == nil {
		t.positions = map[string]position{}
	}
	p := position{transcript: transcript, length: max(0, length)}
	if over {
		p.since = t.box.opts.Now().UnixMilli()
	} else if was, given := t.positions[session]; given {
		p.since = was.since
	}
	t.positions[session] = p
	s := t.readAccount().Session(session)
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
	if cut { // the lines are gone that told them apart
		last := s.Turns[len(s.Turns)-1]
		last.Since = t.box.opts.Now().UnixMilli()
		s.Turns = []Turn{last}
	}
	if moved {
		s.Transcript = cmp.Or(transcript, s.Transcript)
		t.changeAccount()
	}
	return cut
}

// Turns are those of a session, nil if nobody counts it. One that is new here begins with this.
func (t *Tx) Turns(session string) *SessionTurns {
	s := t.readAccount().Session(session)
	if p, given := t.positions[session]; s == nil && given && p.length > 0 {
		s = t.openSession(session, false)
	}
	return s
}

// openSession begins the turns of a session, where it was charged to last. If it has just begun, and has a
// transcript of which nothing is known here, what it spent before is nobody's.
func (t *Tx) openSession(session string, began bool) *SessionTurns {
	p := t.positions[session]
	first := Turn{}
	if p.length > 0 {
		end, at, found := t.chargedTo(session)
		switch {
		case found && end > 0 && end <= p.length:
			first.From, first.Since = end, at
		case found || began:
			first.From, first.Since = p.length, t.box.opts.Now().UnixMilli()
		}
	}
	return t.changeAccount().front(SessionTurns{ID: session, Transcript: p.transcript, Turns: []Turn{first}})
}

// costSpan is how much of .costs.jsonl is searched.
const costSpan = 16 << 20

// TranscriptEnd is the member of a line of .costs.jsonl that says how far the session's transcript was
// charged.
const TranscriptEnd = "transcript_end"

// chargedTo is how far a session's transcript was charged, and when: what cannot be read is not there.
func (t *Tx) chargedTo(session string) (end, at int64, found bool) {
	err := t.eachLine(journal.Costs, -costSpan, func(l []byte) {
		m := flat.Value(l)
		if m.Get("session_id").Text() != session {
			return
		}
		found = true
		end, _ = strconv.ParseInt(string(m.Get(TranscriptEnd)), 10, 64) // lines of earlier releases have none
		if when, err := time.Parse(time.RFC3339, m.Get("at").Text()); err == nil {
			at = when.UnixMilli()
		}
	})
	if err != nil {
		t.warn("what session %s has cost cannot be read: %v", session[:min(len(session), 12)], err)
	}
	return end, at, found
}

// first is the commit of the entry's first delivery.
func (d *Delivery) first() int64 {
	if d.FirstSeq != 0 {
		return d.FirstSeq
	}
	return d.DeliveredSeq
}

// of reports whether the turn is a delivery of that entry, this or an earlier one, and is
// whether it is that very delivery.
func (s Turn) of(d *Delivery) bool { return s.EntryID == d.EntryID && s.FirstSeq == d.first() }
func (s Turn) is(d *Delivery) bool { return s.of(d) && s.DeliveredSeq == d.DeliveredSeq }

// enter begins the turn of an entry that was delivered: no line of it is older than that.
func (t *Tx) enter(d *Delivery) {
	t.begin(d.SessionID, Turn{
		Since:   d.DeliveredAt.UnixMilli(),
		EntryID: d.EntryID, ID: clipped(d.ID()), Start: d.StartOffset,
		FirstSeq: d.first(), DeliveredSeq: d.DeliveredSeq, Attempt: d.Attempt,
	})
}

// maxName bounds an entry's own id in the account, of which every record has several.
const maxName = 200

func clipped(id string) string {
	if len(id) <= maxName {
		return id
	}
	return strings.ToValidUTF8(id[:maxName], "")
}

// LeaveTurn says that the turn of the entry in flight is over, since its session has begun
// another: what is spent from there on is the entry's no more. [Tx.Position] says where.
func (t *Tx) LeaveTurn() {
	if t.inFlight != nil {
		t.leave(t.inFlight)
	}
}

// lastOf is the last turn of a delivery's session, if it is the delivery's.
func (t *Tx) lastOf(d *Delivery) (s *SessionTurns, last *Turn) {
	if s = t.readAccount().Session(d.SessionID); s != nil {
		if last = &s.Turns[len(s.Turns)-1]; last.is(d) {
			return s, last
		}
	}
	return nil, nil
}

// leave ends the turn of the entry in flight, which is settled.
func (t *Tx) leave(d *Delivery) {
	if _, last := t.lastOf(d); last != nil {
		t.begin(d.SessionID, Turn{})
	}
}

// neverArrived makes a delivery cost nothing: what was spent since was for something
// else.
func (t *Tx) neverArrived(d *Delivery) {
	if s, last := t.lastOf(d); last != nil {
		*last = Turn{From: last.From, Since: last.Since}
		t.changeAccount()
		s.merge()
	}
}

// rebind moves the beginning of a delivery to the turn that it turned out to be.
// What was spent before was for something else, unless the delivery goes on after a check.
func (t *Tx) rebind(d *Delivery) {
	if _, known := t.positions[d.SessionID]; !known {
		return
	}
	if d.Check == nil || d.Check.Status != CheckFailed {
		t.neverArrived(d)
	} else if _, last := t.lastOf(d); last != nil {
		return
	}
	t.enter(d)
}

// arrive notes that a session begins, or goes on in another process: no turn of an entry
// goes on in it by itself.
func (t *Tx) arrive(session string) {
	if _, known := t.positions[session]; !known {
		return
	}
	if t.readAccount().Session(session) == nil {
		t.openSession(session, true)
		return
	}
	t.begin(session, Turn{})
}

// begin begins a turn at the position that was given for the session. A session of which
// nothing was ever said is not counted.
func (t *Tx) begin(session string, turn Turn) {
	p, given := t.positions[session]
	s := t.readAccount().Session(session)
	switch {
	case s != nil:
		s = t.changeAccount().front(*s)
	case given:
		s = t.openSession(session, false)
	default:
		return
	}
	if turn.From = nowhere; given {
		turn.From, turn.Since = p.length, cmp.Or(turn.Since, p.since)
	}
	last := &s.Turns[len(s.Turns)-1]
	switch {
	case last.Outside() && turn.Outside():
		return // goes on
	case last.Outside() && given && last.From == p.length && last.Since == p.since && p.since != 0:
		*last = turn // they begin in this transaction, and nothing lies between
	default:
		s.Turns = append(s.Turns, turn)
	}
	s.merge()
}

// merge makes one of neighbours that belong to nothing, and of the oldest where there are
// too many.
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
	list := []byte{'['}
	for i := range s.Turns {
		if i > 0 {
			list = append(list, ',')
		}
		list = flat.AppendText(list, s.Turns[i].text())
	}
	o.Raw("spans", append(list, ']'))
	return o.End()
}

// sessionTurnsFrom reads what encode wrote, also of earlier releases, of which a session that had ended
// was charged, and a part of which nobody is to blame came before the others.
func sessionTurnsFrom(v flat.Value) (s SessionTurns, err error) {
	m, err := flat.Parse([]byte(v))
	if err != nil {
		return s, err
	}
	s = SessionTurns{ID: m.String("session_id"), Transcript: m.String("transcript"), Stated: m.Int("stated")}
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

// text is a turn in one short string, since every record has them: where it begins, since
// when, two words of earlier releases; of an entry its place, its commits, its attempt and its names.
func (s *Turn) text() string {
	b := make([]byte, 0, 160)
	b = strconv.AppendInt(b, s.From, 10)
	b = strconv.AppendInt(append(b, ' '), s.Since, 10)
	b = append(b, " 0 -"...)
	if s.Outside() {
		return string(b)
	}
	for _, n := range [...]int64{s.Start, s.FirstSeq, s.DeliveredSeq, int64(s.Attempt)} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	b = append(append(b, ' '), s.EntryID...)
	if s.ID != "" {
		b = append(append(b, ' '), s.ID...)
	}
	return string(b)
}

// turnFrom reads what text wrote; before says that it is what a session had spent before an
// earlier release knew of it. Where that has found the very line, it is the third word.
func turnFrom(text string) (s Turn, before bool, err error) {
	parts := strings.SplitN(text, " ", 10)
	var line, attempt int64
	into := [...]*int64{&s.From, &s.Since, &line, nil, &s.Start, &s.FirstSeq, &s.DeliveredSeq, &attempt}
	if n := len(parts); n != 4 && n < 9 {
		return s, false, fmt.Errorf("%q is no turn", brief(text))
	}
	for i, p := range parts[:min(len(parts), len(into))] {
		if into[i] == nil {
			before = strings.Contains(p, "h")
		} else if *into[i], err = strconv.ParseInt(p, 10, 64); err != nil {
			return s, false, fmt.Errorf("%q is no turn", brief(text))
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

func brief(text string) string { return text[:min(len(text), 40)] }
