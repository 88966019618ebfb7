package inbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/journal"
)

const (
	// maxLeft bounds how many turns without their entry are remembered, latest last. maxLeftEvidence bounds the
	// evidence of each. Every record carries them.
	maxLeft         = 8
	maxLeftEvidence = 4 << 10
)

// leftTurn is a turn whose entry was settled before the turn ended: at a limit, or by another process. Why is the
// sentence that tells the client to stop; if the process is killed before it prints that, the turn's next hook does.
// Letter names the dead letter that an answer belongs to. The other fields identify the end of this turn.
type leftTurn struct {
	Session  string          `json:"session_id"`
	Prompt   string          `json:"prompt_id,omitempty"`
	EntryID  string          `json:"entry_id,omitempty"`
	ID       string          `json:"id,omitempty"`
	Letter   string          `json:"letter,omitempty"`
	Why      string          `json:"why,omitempty"`
	Handed   bool            `json:"handed,omitempty"` // the entry's text went out
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// leftTurns returns the turns in the record, none at nearly every stop.
func (t *state) leftTurns() []leftTurn { return kept[[]leftTurn](t.st.Stopped) }

func (t *Tx) setLeftTurns(all []leftTurn) { t.st.Stopped = encodedLast(t, all, maxLeft) }

// changeLeft changes the turns that which selects, and drops turns with neither a letter nor a why.
func (t *Tx) changeLeft(which func(leftTurn) bool, change func(*leftTurn)) {
	var rest []leftTurn
	changed := false
	for _, l := range t.leftTurns() {
		if which(l) {
			change(&l)
			changed = true
		}
		if l.Letter != "" || l.Why != "" {
			rest = append(rest, l)
		}
	}
	if changed {
		t.setLeftTurns(rest)
	}
}

func noLetter(l *leftTurn)  { l.Letter, l.Evidence = "", nil }
func forgotten(l *leftTurn) { *l = leftTurn{} }

func ofSession(session string) func(leftTurn) bool {
	return func(l leftTurn) bool { return l.Session == session }
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
	t.changeLeft(func(l leftTurn) bool { return l.Letter == letter }, noLetter)
}

// StopTurn notes, in the commit that settles its entry, that the turn of a delivery is stopped.
func (in InSession) StopTurn(d *Delivery, why string) {
	l := leftTurn{Session: in.id, Prompt: d.PromptID, EntryID: d.EntryID}
	in.tx.changeLeft(ofSession(in.id), func(known *leftTurn) {
		if known.Prompt == l.Prompt {
			l = *known
		}
		forgotten(known)
	})
	l.Why = why
	in.tx.setLeftTurns(append(in.tx.leftTurns(), l))
}

// Stopped returns which turn of the session was stopped and why, "" for none.
func (in InSession) Stopped() (prompt, why string) {
	all := in.tx.leftTurns()
	if i := slices.IndexFunc(all, ofSession(in.id)); i >= 0 {
		return all[i].Prompt, all[i].Why
	}
	return "", ""
}

// maxName bounds an entry's own id in a list that every record carries.
const maxName = 200

// expectLate remembers the turn of an entry that was set aside, if the turn may still end with an answer and
// can be told from any other turn.
func (t *Tx) expectLate(d *Delivery, dead Letter) {
	if d.SessionID == "" || d.PromptID == "" || d.SessionID == t.over || len(d.Evidence) > maxLeftEvidence {
		return
	}
	if s := t.In(d.SessionID).Known(); s.EndedAt != nil || s.Life().Ended() {
		return // the session certainly has no process any more
	}
	t.changeLeft(ofSession(d.SessionID), forgotten)
	t.setLeftTurns(append(t.leftTurns(), leftTurn{
		Session: d.SessionID, Prompt: d.PromptID, EntryID: dead.EntryID, ID: strings.ToValidUTF8(dead.ID[:min(len(dead.ID), maxName)], ""),
		Letter: dead.Letter, Handed: t.st.Handed, Evidence: d.Evidence,
	}))
}

func (in InSession) late(prompt string) func(leftTurn) bool {
	return func(l leftTurn) bool { return l.Session == in.id && l.Letter != "" && l.Prompt == prompt }
}

// Late returns what is known of the delivery whose turn goes on in the session under that prompt, although its entry
// was set aside: its session, prompt and evidence. It is nil if there is none. handed says that its text went out.
func (in InSession) Late(prompt string) (d *Delivery, handed bool) {
	all := in.tx.leftTurns()
	i := slices.IndexFunc(all, in.late(prompt))
	if i < 0 {
		return nil, false
	}
	l := all[i]
	return &Delivery{EntryID: l.EntryID, SessionID: l.Session, PromptID: l.Prompt, Evidence: l.Evidence}, l.Handed
}

// LateAnswer notes that a turn of the session ended with a reply. If that is proven to be the turn of
// [InSession.Late], the reply is committed at once and kept with the dead letter; it settles nothing.
func (in InSession) LateAnswer(prompt, reply string, proven bool) error {
	in.tx.over = in.id
	is, late := in.late(prompt), leftTurn{}
	in.tx.changeLeft(func(l leftTurn) bool {
		if is(l) && proven {
			late = l
		}
		return l.Session == in.id && (proven || !is(l))
	}, forgotten)
	if late.Letter == "" {
		return nil
	}
	now := in.tx.box.utcNow()
	in.tx.mark(letterMark{Letter: late.Letter, LetterMark: LetterMark{LateReply: reply, RepliedAt: &now}})
	in.tx.addEvent(Event{Event: EventLate, EntryID: late.EntryID, ID: late.ID, Session: in.id, Reason: "dead letter " + late.Letter})
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
	r.Accepted, r.Cost, l.AcceptedAt = l.Reason, l.Cost, &now
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

// LeaveInDoubt records a [Doubt], which stays until [InSession.Contest].
func (in InSession) LeaveInDoubt(d *Delivery, note json.RawMessage) {
	in.change(func(s *Session) { s.Doubt = &Doubt{d.EntryID, d.ID(), d.StartOffset, d.Attempt, note} })
}

// Doubt returns what [InSession.LeaveInDoubt] recorded, nil for nothing.
func (in InSession) Doubt() *Doubt { return in.with(`"doubt":`).Doubt }

// Contest ends the doubt. An objection becomes an event of the entry, whose result stays.
func (in InSession) Contest(objection string) {
	if d := in.Doubt(); d != nil && objection != "" {
		in.tx.addEvent(Event{Event: EventContested, EntryID: d.EntryID, ID: d.ID, Start: d.Start, Attempt: d.Attempt, Session: in.id, Reason: oneLine(objection)})
	}
	in.change(func(s *Session) { s.Doubt = nil })
}
