package notify

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
)

// holds adds an occasion that lasts: it is told once while it does. Where it is told
// anew if it comes again, again is the time from which on that is another one.
func (s *scan) holds(o Occasion, again time.Time) {
	told, known := s.st.Holding[o.key]
	if known && !again.After(told) {
		s.next.Holding[o.key] = told
		return
	}
	o.holds = true
	s.add(o)
}

// sameQuestion is how long after a question the same words are the same question.
const sameQuestion = time.Minute

// questions finds what a person is asked: by sessions that live, and by runs.
func (s *scan) questions() {
	for _, session := range s.facts.Sessions {
		q := session.Asks
		if q == nil || session.EndedAt != nil || session.Life == machine.Gone || session.Life == machine.Rebooted {
			continue
		}
		verb := "status"
		if s.facts.Answerable() {
			verb = "attach"
		}
		s.holds(Occasion{
			What: Question, At: q.At, Session: session.ID, Reason: q.Kind,
			Text:     fmt.Sprintf("session %s of %s waits for a person: %s", words.Short(session.ID), name(s.box), line(q.String())),
			TypeThis: command(s.box, verb),
			key:      "question " + hashed(session.ID, q.Kind, q.Text),
		}, q.At.Add(-sameQuestion))
	}
	for _, q := range s.asked {
		if q.Stuck {
			s.holds(Occasion{
				What: Fault, At: cmp.Or(q.Since, s.now), Run: q.Run, Reason: "run stuck",
				Text:     name(s.box) + ": " + line(q.Rests()),
				TypeThis: command(s.box, "run", "status", q.Dir),
				key:      "run stuck " + hashed(q.Dir, q.Question),
			}, time.Time{})
			continue
		}
		if q.Effect == "" {
			s.holds(Occasion{
				What: Question, At: q.Since, Run: q.Run, Reason: "code",
				Text:     name(s.box) + ": " + line(q.Rests()),
				TypeThis: command(s.box, "run", "accept-code", q.Dir),
				key:      "code " + hashed(q.Dir, q.Question),
			}, time.Time{})
			continue
		}
		s.holds(Occasion{
			What: Question, At: q.Since, Run: q.Run, Effect: q.Effect, Reason: "breakpoint",
			Text:     fmt.Sprintf("run %s of %s waits for a person: %s", line(q.Run), name(s.box), line(q.Question)),
			TypeThis: command(s.box, "breakpoint", "list"),
			key:      "effect " + hashed(q.Run, q.Effect),
		}, time.Time{})
	}
}

// pause finds a pause that holds. One that a day's limit caused is a limit.
func (s *scan) pause() {
	p := s.facts.Paused
	if p == nil {
		return
	}
	o := Occasion{
		What: Paused, At: p.At, Reason: p.Reason, Until: p.Until,
		Text:     fmt.Sprintf("delivery of %s is %s", name(s.box), inbox.Pause{At: p.At, Until: p.Until, Reason: line(p.Reason)}.String()),
		TypeThis: command(s.box, "resume"),
		key:      "pause " + hashed(p.At.String(), p.Reason),
	}
	if p.OfLimit() {
		o.What, o.TypeThis = Limit, command(s.box, "status")
	}
	s.holds(o, time.Time{})
}

// faults finds what no session can repair.
func (s *scan) faults() {
	if s.facts.Unreadable == nil && (!works(s.facts) || s.box.CheckRoom() == nil) {
		return
	}
	state, sentence := s.explain()
	if state != why.Unreadable && state != why.Full {
		return // it has passed
	}
	s.holds(Occasion{
		What: Fault, At: s.now, Reason: string(state), Text: name(s.box) + ": " + sentence,
		TypeThis: command(s.box, "doctor"),
		key:      "fault " + string(state),
	}, time.Time{})
}

// uncounted finds sessions that no limit of what they spend holds for.
func (s *scan) uncounted() {
	for i := range s.facts.Sessions {
		of := &s.facts.Sessions[i]
		sentence := of.NotCounted()
		if sentence == "" {
			continue
		}
		s.holds(Occasion{
			What: Fault, At: of.Uncounted.At, Session: of.ID, Reason: "not counted", Text: name(s.box) + ": " + sentence,
			TypeThis: command(s.box, "doctor"),
			key:      "uncounted " + hashed(of.ID, of.Uncounted.Text),
		}, time.Time{})
	}
}

// sessionsOver finds sessions that have reached their limit, and sit at their prompt. The
// session of a launcher ends then, and is not noted.
func (s *scan) sessionsOver() {
	for i := range s.facts.Sessions {
		of := &s.facts.Sessions[i]
		sentence := of.IsOver()
		if sentence == "" {
			continue
		}
		s.holds(Occasion{
			What: Limit, At: of.Over.At, Session: of.ID, Reason: "session over its limit", Text: name(s.box) + ": " + sentence,
			TypeThis: command(s.box, "status"),
			key:      "session over " + hashed(of.ID),
		}, time.Time{})
	}
}

const (
	// fruitless is how many sessions in a row may end without an answer.
	fruitless = 3
	// fruitlessSpan is how long ago they may have started.
	fruitlessSpan = 24 * time.Hour
)

// failing finds sessions that ended one after the other without an answer, while work
// is there. A launcher that gives up says so itself.
func (s *scan) failing() {
	if s.facts.Paused != nil || !works(s.facts) {
		return
	}
	since := s.now.Add(-fruitlessSpan)
	if at := s.facts.Asked; at != nil && at.After(since) {
		since = *at
	}
	n, last := 0, why.Session{}
	for _, of := range s.facts.Sessions {
		over := of.EndedAt != nil || of.Life == machine.Gone || of.Life == machine.Rebooted
		if !over || of.StartedAt == nil || !of.StartedAt.After(since) {
			continue
		}
		if n++; n == 1 {
			last = of
		}
	}
	if n < fruitless {
		return
	}
	text := fmt.Sprintf("%d sessions in a row of %s ended without an answer", n, name(s.box))
	if f := last.Failure; f != nil {
		text += ", the last one after an error: " + line(f.String())
	}
	answered := time.Time{}
	if s.facts.Asked != nil {
		answered = *s.facts.Asked
	}
	s.holds(Occasion{
		What: Failing, At: s.now, Session: last.ID, Failure: last.Failure, Reason: "sessions fail", Text: text,
		TypeThis: command(s.box, "log"), key: "failing " + answered.String(),
	}, time.Time{})
}

// drained finds that nothing waits any more, after something was settled.
func (s *scan) drained(settled int64) {
	if works(s.facts) || s.facts.Unreadable != nil || len(s.asked) > 0 {
		if s.next.Settled == nil {
			s.next.Settled = &settled // from here on it counts
		}
		return
	}
	s.next.Settled = &settled
	if s.st.Settled == nil || settled <= *s.st.Settled {
		return
	}
	s.add(Occasion{
		What: Drained, At: s.now, Count: settled - *s.st.Settled, Reason: "drained",
		Text:     fmt.Sprintf("%s is drained: %s", name(s.box), words.Count(int(settled-*s.st.Settled), "entry was settled", "entries were settled")),
		TypeThis: command(s.box, "results"), key: fmt.Sprint("drained ", settled),
	})
}

// works reports whether an entry is in flight or waits.
func works(f why.Facts) bool {
	return f.InFlight != nil || f.Redeliver != nil || f.Backlog.Entries > 0
}

// letters finds the dead letters that were not told, and are open.
func (s *scan) letters() (err error) {
	open := sync.OnceValues(s.box.OpenLetters)
	s.next.Letters, err = s.st.Letters.read(s.box.DeadLetterPath(), s.now, func(l []byte, after time.Time) time.Time {
		letter, mark, ok := inbox.ParseLetter(l)
		if !ok || mark {
			return time.Time{}
		}
		if letter.DeadLetteredAt.After(after) {
			if is, err := open(); err != nil || is(letter.Letter) {
				s.add(s.letter(letter))
			}
		}
		return letter.DeadLetteredAt
	})
	return err
}

// letterKey begins the keys of dead letters.
const letterKey = "letter "

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
		key:      letterKey + l.Letter,
	}
	if l.DeadLetter.Reason == inbox.ReasonOverBudget {
		o.What = Limit
	}
	if run, is := l.OverRun(); is {
		o.Run, o.TypeThis = run, command(s.box, "status") // it says what lets the run go on
	}
	return o
}
