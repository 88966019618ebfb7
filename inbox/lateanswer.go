package inbox

import (
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

const (
	// maxLeft is how many turns are remembered that go on without their entry, latest last. maxLeftEvidence
	// bounds the evidence of each. Every record carries them.
	maxLeft         = 8
	maxLeftEvidence = 4 << 10
)

// leftTurn is a turn whose entry was settled before the turn ended: at a limit, or by another process. why is
// the sentence that tells the client to stop; if the process is killed before it says so, the turn's next
// hook does. letter names the dead letter that an answer belongs to. The other fields tell the end of this
// turn from any other.
type leftTurn struct {
	session, prompt, entryID, id string
	letter, why                  string
	handed                       bool // the entry's text went out
	evidence                     json.RawMessage
}

func (l *leftTurn) members(c flat.Codec) {
	c.String("session_id", &l.session)
	c.Text("prompt_id", &l.prompt)
	c.Text("entry_id", &l.entryID)
	c.Text("id", &l.id)
	c.Text("letter", &l.letter)
	c.Text("why", &l.why)
	c.Flag("handed", &l.handed)
	c.Raw("evidence", &l.evidence)
}

// leftTurns returns the turns in the record, none at nearly every stop.
func (t *state) leftTurns() (all []leftTurn) {
	for _, item := range flat.Value(t.st.Stopped).Items() {
		m, err := flat.Parse([]byte(item))
		if err != nil {
			return nil // the record's sum is right, so another release wrote it
		}
		var l leftTurn
		if l.members(flat.From(m)); m.Err() != nil {
			return nil
		}
		all = append(all, l)
	}
	return all
}

func (t *Tx) setLeftTurns(all []leftTurn) {
	if t.st.Stopped, t.dirty = nil, true; len(all) == 0 {
		return
	}
	t.st.Stopped = listOf(all[max(0, len(all)-maxLeft):], func(b []byte, l *leftTurn) []byte {
		var o flat.Object
		l.members(flat.To(&o))
		return append(b, o.End()...)
	})
}

// changeLeft changes the turns that which selects, and drops those left without letter and why.
func (t *Tx) changeLeft(which func(leftTurn) bool, change func(*leftTurn)) {
	var rest []leftTurn
	changed := false
	for _, l := range t.leftTurns() {
		if which(l) {
			change(&l)
			changed = true
		}
		if l.letter != "" || l.why != "" {
			rest = append(rest, l)
		}
	}
	if changed {
		t.setLeftTurns(rest)
	}
}

func noLetter(l *leftTurn)  { l.letter, l.evidence = "", nil }
func forgotten(l *leftTurn) { *l = leftTurn{} }

func ofSession(session string) func(leftTurn) bool {
	return func(l leftTurn) bool { return l.session == session }
}

// ForgetStopped notes that the session goes on with something else: its turn that was stopped, or whose entry
// was set aside, is over.
func (in InSession) ForgetStopped() {
	in.tx.over = in.id
	in.tx.changeLeft(ofSession(in.id), forgotten)
}

// endLate notes that the session's turn ended without an answer, or has something else to answer.
func (in InSession) endLate() {
	in.tx.over = in.id
	in.tx.changeLeft(ofSession(in.id), noLetter)
}

// forgetLate notes that a letter is gone, or was requeued.
func (t *Tx) forgetLate(letter string) {
	t.changeLeft(func(l leftTurn) bool { return l.letter == letter }, noLetter)
}

// StopTurn notes, in the commit that settles its entry, that the turn of a delivery is stopped.
func (in InSession) StopTurn(d *Delivery, why string) {
	l := leftTurn{session: in.id, prompt: d.PromptID, entryID: d.EntryID}
	in.tx.changeLeft(ofSession(in.id), func(known *leftTurn) {
		if known.prompt == l.prompt {
			l = *known
		}
		forgotten(known)
	})
	l.why = why
	in.tx.setLeftTurns(append(in.tx.leftTurns(), l))
}

// Stopped returns which turn of the session was stopped and why, "" for none.
func (in InSession) Stopped() (prompt, why string) {
	for _, l := range in.tx.leftTurns() {
		if l.session == in.id {
			return l.prompt, l.why
		}
	}
	return "", ""
}

// expectLate remembers the turn of an entry that was set aside, if the turn may still end with an answer and
// can be told from any other turn.
func (t *Tx) expectLate(d *Delivery, dead DeadLetter) {
	if d.SessionID == "" || d.PromptID == "" || d.SessionID == t.over || len(d.Evidence) > maxLeftEvidence {
		return
	}
	if s, err := t.In(d.SessionID).Known(); err == nil && (s.EndedAt != nil || s.Life().Ended()) {
		return // the session certainly has no process any more
	}
	t.changeLeft(ofSession(d.SessionID), forgotten)
	t.setLeftTurns(append(t.leftTurns(), leftTurn{
		session: d.SessionID, prompt: d.PromptID, entryID: dead.EntryID, id: clipped(dead.ID),
		letter: LetterName(dead), handed: t.st.Handed, evidence: d.Evidence,
	}))
}

// LateAnswer notes that a turn of the session ended with a reply. If the turn's entry was set aside before, the
// reply is committed at once and kept with the dead letter; it settles nothing. proves decides whether this
// is the end of the delivery's turn. It is given the delivery's session, prompt and evidence, and in handed
// whether its text went out.
func (in InSession) LateAnswer(prompt, reply string, proves func(d *Delivery, handed bool) bool) error {
	in.tx.over = in.id
	late := leftTurn{}
	in.tx.changeLeft(func(l leftTurn) bool {
		of := l.session == in.id
		if of && l.letter != "" && l.prompt == prompt {
			d := &Delivery{EntryID: l.entryID, SessionID: l.session, PromptID: l.prompt, Evidence: l.evidence}
			if of = proves(d, l.handed); of {
				late = l
			}
		}
		return of
	}, forgotten)
	if late.letter == "" {
		return nil
	}
	now := in.tx.box.utcNow()
	in.tx.mark(letterMark{Letter: late.letter, LetterMark: LetterMark{LateReply: reply, RepliedAt: &now}})
	in.tx.addEvent(Event{Event: EventLate, EntryID: late.entryID, ID: late.id, Session: in.id, Reason: "dead letter " + late.letter})
	return in.tx.Commit()
}

// Accept makes a letter's late reply the result of its entry, with the next commit. The letter must have been read
// in this transaction.
func (t *Tx) Accept(l Letter) (Letter, error) {
	switch {
	case l.AcceptedAt != nil:
		return l, fmt.Errorf("accept %s: it was accepted at %s", l.Letter, l.AcceptedAt.Format(time.RFC3339))
	case l.RequeuedAt != nil:
		return l, fmt.Errorf("accept %s: it was requeued at %s: the answer to that counts", l.Letter, l.RequeuedAt.Format(time.RFC3339))
	case l.RepliedAt == nil || l.DeliveredAt == nil || l.Reason == "":
		return l, fmt.Errorf("accept %s: no reply came to it after it was set aside", l.Letter)
	case len(l.LateReply) > MaxLine || len(l.RawLine.Text)+len(l.RawLine.Base64) > 2*MaxLine:
		return l, fmt.Errorf("accept %s: its line or its late reply is longer than any that is written here: purge it", l.Letter)
	}
	now := t.box.utcNow()
	r := resultOf(&Delivery{
		EntryID: l.EntryID, RawLine: l.RawLine, StartOffset: l.StartOffset, EndOffset: l.EndOffset,
		DeliveredAt: *l.DeliveredAt, Attempt: l.Attempts, SessionID: l.SessionID, PromptID: l.PromptID, FirstSeq: l.FirstSeq,
	}, l.LateReply, now)
	r.Accepted, r.Fields, l.AcceptedAt = l.Reason, l.Fields, &now
	if r.ID != "" {
		known, err := t.find(map[string]bool{r.ID: true})
		if err != nil {
			return l, fmt.Errorf("accept %s: %w", l.Letter, err)
		}
		if p, is := known[r.ID]; is {
			return l, fmt.Errorf("accept %s: an entry of the same id, %q, is %s, and one entry has one answer", l.Letter, r.ID, p.where)
		}
	}
	line, err := r.encode()
	if err != nil {
		return l, err
	}
	t.addJSON(journal.Results, line)
	t.count(func(n *Totals) { n.answered(r) })
	t.mark(letterMark{Letter: l.Letter, Of: l.Reason, LetterMark: LetterMark{AcceptedAt: &now}})
	t.addEvent(Event{Event: EventAccepted, EntryID: l.EntryID, ID: r.ID, Attempt: l.Attempts, Reason: "dead letter " + l.Letter})
	return l, t.failed
}

// Doubt is an entry of a session that was settled as answered, although something may yet show that its turn
// was not over.
type Doubt struct {
	EntryID string `json:"entry_id"`
	ID      string `json:"id,omitempty"`
	Start   int64  `json:"start_offset"`
	Attempt int    `json:"attempt"`
	// Note is what the consumer needs to find out.
	Note json.RawMessage `json:"note,omitempty"`
}

var doubtMember = []byte(`"doubt":`)

// LeaveInDoubt records such an entry until [InSession.Contest].
func (in InSession) LeaveInDoubt(d *Delivery, note json.RawMessage) error {
	return in.change(func(s *Session) { s.Doubt = &Doubt{d.EntryID, d.ID(), d.StartOffset, d.Attempt, note} })
}

// Doubt returns what [InSession.LeaveInDoubt] recorded, nil for nothing.
func (in InSession) Doubt() *Doubt {
	if s := in.with(doubtMember); s != nil {
		return s.Doubt
	}
	return nil
}

// Contest ends the doubt. An objection becomes an event of the entry, whose result stays.
func (in InSession) Contest(objection string) error {
	if d := in.Doubt(); d != nil && objection != "" {
		in.tx.addEvent(Event{Event: EventContested, EntryID: d.EntryID, ID: d.ID, Start: d.Start, Attempt: d.Attempt, Session: in.id, Reason: oneLine(objection)})
	}
	return in.change(func(s *Session) { s.Doubt = nil })
}
