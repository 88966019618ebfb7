package notify

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// letters finds the dead letters that were not told. Who cancels an entry knows of it.
func (s *scan) letters() (err error) {
	s.next.Letters, err = s.st.Letters.read(s.box.DeadLetterPath(), s.now, func(l []byte, after time.Time) time.Time {
		letter, mark, ok := inbox.ParseLetter(l)
		if !ok || mark {
			return time.Time{}
		}
		if letter.DeadLetteredAt.After(after) && letter.DeadLetter.Reason != inbox.ReasonCanceled {
			s.add(s.letter(letter))
		}
		return letter.DeadLetteredAt
	})
	return err
}

func (s *scan) letter(l inbox.Letter) Occasion {
	reason := string(l.DeadLetter.Reason)
	text := "dead letter " + words.Name(l.ID, l.EntryID) + " in " + name(s.box) + ": " + reason
	if l.Failure != nil {
		text += " (" + line(l.Failure.String()) + ")"
	}
	if l.Attempts > 1 {
		text += ", after " + words.Count(l.Attempts, "attempt", "attempts")
	}
	o := Occasion{
		What: DeadLetter, At: l.DeadLetteredAt, Text: text, Reason: reason, Session: l.SessionID, Failure: l.Failure,
		Entry:    &Entry{ID: l.ID, EntryID: l.EntryID, Letter: l.Letter, Text: l.Text(), Attempts: l.Attempts},
		TypeThis: command(s.box, "dead-letter", "show", l.Letter),
		key:      "letter " + l.Letter,
	}
	if l.DeadLetter.Reason == inbox.ReasonOverBudget {
		o.What = Limit
	}
	if run, is := l.OverRun(); is {
		o.Run, o.TypeThis = run, command(s.box, "status") // it says what lets the run go on
	}
	return o
}
