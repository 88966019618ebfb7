package recover

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// Report says what a recovery did. Its JSON shape is that of `recover --json`.
type Report struct {
	Action  Action       `json:"action"`
	EntryID string       `json:"entry_id,omitempty"`
	ID      string       `json:"id,omitempty"`
	Start   int64        `json:"start_offset"`
	End     int64        `json:"end_offset"`
	Attempt int          `json:"attempt,omitempty"` // deliveries it had
	Session string       `json:"session_id,omitempty"`
	Reason  inbox.Reason `json:"reason,omitempty"` // of a dead letter
	// Said is what the entry's agent said of it, if that decided.
	Said inbox.VerdictKind `json:"verdict,omitempty"`
	// Owner is who has an entry that was kept.
	Owner *Owner `json:"-"`
	// Failure is the error that ended the entry's turn, where that decided.
	Failure *inbox.Failure `json:"failure,omitempty"`
	Cursor  int64          `json:"cursor"`
	// Warnings are sentences about other things that were found and repaired.
	Warnings []string `json:"warnings,omitempty"`
}

func reportOf(d *inbox.Delivery, a Action) Report {
	return Report{
		Action: a, EntryID: d.EntryID, ID: d.ID(), Start: d.StartOffset, End: d.EndOffset,
		Attempt: d.Attempt, Session: d.SessionID,
	}
}

// String is the report as one sentence.
func (r Report) String() string {
	entry := fmt.Sprintf("the entry %s, attempt %d,", words.Name(r.ID, r.EntryID), r.Attempt)
	switch r.Action {
	case Answered, Requeued, DeadLettered:
		if r.Said != "" {
			return fmt.Sprintf("%s is %s, as its agent said (%s)", entry, r.became(), r.Said)
		}
	}
	switch r.Action {
	case Owned:
		return r.Owner.String() + ": it is left to that one"
	case Cleared:
		return entry + " was answered before: only its note was left, and is gone"
	case Answered:
		return entry + " was answered, as the transcript tells, although the end of its turn was not noted"
	case DeadLettered:
		return fmt.Sprintf("%s is a dead letter (%s)", entry, r.Reason)
	case Requeued:
		if r.Failure != nil {
			return entry + " will be delivered again, but not now: its turn ended in an error" + inBrackets(words.Brief(r.Failure.String())) + ", see heartbeat status"
		}
		return entry + " will be delivered again"
	case Returned:
		return entry + " never arrived, and will be delivered again"
	case Dropped:
		return entry + " is dropped"
	}
	return "nothing was in flight"
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// became is the action as a participle.
func (r Report) became() string {
	switch r.Action {
	case Requeued:
		return "given back"
	case DeadLettered:
		return fmt.Sprintf("a dead letter (%s)", r.Reason)
	}
	return "answered"
}
