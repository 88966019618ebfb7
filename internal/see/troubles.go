package see

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"heartbeat/internal/agent"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

// Troubles returns what is wrong, most urgent first, and then why nothing moves, in the words of [Facts.Explain].
func (f Facts) Troubles() []Trouble {
	var all []Trouble
	if t, is := f.why(); is {
		all = append(all, t)
	}
	for _, t := range slices.Concat(f.questions(), f.failing(), f.delivery(), f.letters(), f.ofConsumers()) {
		if !slices.ContainsFunc(all, func(of Trouble) bool { return of.Key == t.Key }) {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b Trouble) int {
		return slices.Index(urgencies, a.Urgency) - slices.Index(urgencies, b.Urgency)
	})
	return all
}

// why returns the reason why nothing moves, if that is a trouble.
func (f Facts) why() (t Trouble, is bool) {
	state, sentence := f.Explain()
	kind, since, key := find(Row{state: state}).Kind, f.Still.Since, ""
	switch d := f.InFlight; {
	case state == Scheduled && f.overdue() != "":
		t = f.late()
	case state == Person && d != nil:
		t = f.asked(f.session(d.SessionID))
	case state == Person:
		t = f.asked(f.Current())
	case state == Held || state == Stuck:
		t = f.ofRun(f.Runs[0])
	case state == Paused:
		t = f.pause()
	case state == Launching && f.Launcher.Troubled:
		kind = KindLauncher
	case state == Locked:
		since, key = f.Now.Add(-f.LockedFor), strconv.Itoa(f.LockedBy)
	case state == BackingOff:
		since = f.Backoff.At
	case state == Unchecked:
		since = *d.Check.Since
	case state == Torn:
		since = f.WrittenAt
	case state == Failed:
		since = d.Failure.At
	case state == Orphaned:
		if s := f.session(d.SessionID); s != nil && s.EndedAt != nil && s.EndedAt.After(d.DeliveredAt) {
			since = *s.EndedAt
		}
	}
	if t.Kind == "" {
		if kind == "" {
			return t, false // the state only says what is being waited for
		}
		t = f.trouble(kind, since, key)
		t.Reason = string(state)
	}
	if state == NoSession && f.EverAsked && f.GaveUp == nil {
		transcript := "" // of the session that was heard of last
		if s := f.Current(); s != nil {
			transcript, _, _ = agent.StartOf(s.StartNote)
		}
		t.Do = Command(f.Inbox, append([]string{"launch", "--"}, agent.ForTranscript(transcript).Begin...)...)
	}
	t.Text = words.Line(sentence)
	return t, true
}

// trouble makes a trouble of a kind. key tells it from others of that kind, and args go to the verb that fixes it.
func (f Facts) trouble(k Kind, since time.Time, key string, args ...string) Trouble {
	row := find(Row{Kind: k})
	t := Trouble{Kind: k, Urgency: row.Urgency, Do: Command(f.Inbox, append([]string{row.Verb}, args...)...), About: About{Key: string(k) + " " + key}}
	if !since.IsZero() {
		t.Since = &since
	}
	return t
}

const sameQuestion = time.Minute // how long the same words count as the same question

func (f Facts) asked(s *Session) Trouble {
	q := s.Asks
	t := f.trouble(KindQuestion, q.At, Key(s.ID, q.Kind, q.Text))
	t.Text, t.Reason, t.Session, t.Again = words.Line(asked(s)), q.Kind, s.ID, q.At.Add(-sameQuestion)
	if f.Answerable() {
		t.Do = Command(f.Inbox, "attach")
	}
	return t
}

// ofRun returns the trouble of a run that needs a person.
func (f Facts) ofRun(r Run) (t Trouble) {
	switch r.State {
	case orchestrate.Asking:
		t = f.trouble(KindBreakpoint, r.Since, Key(r.Run, r.Effect))
		t.Reason = "breakpoint"
	case orchestrate.Resting:
		t = f.trouble(KindCode, r.Since, Key(r.Dir, r.Text), r.Dir)
		t.Reason = "code"
	default:
		t = f.trouble(KindRunStuck, r.Since, Key(r.Dir, r.Text), r.Dir)
		t.Reason = "run stuck"
	}
	t.Text, t.Run, t.Effect = words.Line(r.Stands(f.Inbox)), r.Run, r.Effect
	return t
}

// questions returns what sessions and runs ask a person, sessions whose limits do not hold, and runs that are stuck.
func (f Facts) questions() (all []Trouble) {
	for i := range f.Sessions {
		s := &f.Sessions[i]
		if s.IsAsking() {
			all = append(all, f.asked(s))
		}
		if of := s.Uncounted; of != nil && s.isRunning() {
			t := f.trouble(KindUncounted, of.At, Key(s.ID, of.Text))
			t.Reason, t.Session = "not counted", s.ID
			t.Text = words.Line(fmt.Sprintf("limits are set, and since %s not all that session %s spends is counted, so limits of dollars and tokens may not hold: %s",
				words.Stamp(of.At), words.Short(s.ID), of.Text))
			all = append(all, t)
		}
	}
	for _, r := range f.Runs {
		if r.NeedsPerson() {
			all = append(all, f.ofRun(r))
		}
	}
	return all
}

const (
	fruitless     = 3              // how many sessions in a row that end without an answer are a trouble
	fruitlessSpan = 24 * time.Hour // how long ago they may have started
)

// failing returns the trouble that sessions in a row ended without an answer while work waits.
func (f Facts) failing() []Trouble {
	if f.Paused != nil || !f.Works() {
		return nil
	}
	since, answered := f.Now.Add(-fruitlessSpan), ""
	if f.Asked != nil {
		answered = f.Asked.String()
		if f.Asked.After(since) {
			since = *f.Asked
		}
	}
	var ended []*Session
	for i := range f.Sessions {
		s := &f.Sessions[i]
		if over := s.EndedAt != nil || s.Life == machine.Gone || s.Life == machine.Rebooted; over && s.StartedAt != nil && s.StartedAt.After(since) {
			ended = append(ended, s)
		}
	}
	if len(ended) < fruitless {
		return nil
	}
	last := ended[0]
	t := f.trouble(KindFailing, *ended[len(ended)-1].StartedAt, answered)
	t.Reason, t.Session, t.Failed = "sessions fail", last.ID, last.Failure
	t.Text = fmt.Sprintf("%d sessions in a row ended without an answer", len(ended))
	if last.Failure != nil {
		t.Text += ", the last one after an error: " + words.Line(last.Failure.String())
	}
	return []Trouble{t}
}

// delivery returns what keeps entries back by intent or for a while, or soon will.
func (f Facts) delivery() (all []Trouble) {
	if f.Paused != nil {
		all = append(all, f.pause())
	}
	if f.DayNear != "" {
		t := f.trouble(KindDayNear, time.Time{}, f.Now.Local().Format(time.DateOnly))
		t.Reason, t.Text = "day near its limit", words.Line(f.DayNear+", the limit of a day: once that is reached delivery pauses until midnight")
		all = append(all, t)
	}
	if f.Paused == nil && f.Unreadable == nil && f.overdue() != "" {
		all = append(all, f.late())
	}
	return append(all, f.replaced()...)
}

// anewFor is how long a replaced inbox stays a trouble: the next commit takes it up, often before a person notices.
const anewFor = time.Hour

// replaced returns the trouble that the inbox was replaced within anewFor.
func (f Facts) replaced() []Trouble {
	was := f.Anew
	if f.Replaced != "" || f.Now.Sub(was.At).Abs() >= anewFor {
		return nil
	}
	t, until := f.trouble(KindReplaced, was.At, ""), was.At.Add(anewFor)
	t.Reason, t.Until = string(Replaced), &until
	t.Text = words.Line(fmt.Sprintf("the inbox was truncated or replaced at %s (%s), and has been read from its start since", words.Stamp(was.At), was.Why))
	return []Trouble{t}
}

func (f Facts) pause() Trouble {
	p, kind := f.Paused, KindPaused
	if p.OfLimit() {
		kind = KindDayOver
	}
	t := f.trouble(kind, p.At, Key(p.At.String(), p.Reason))
	if p.Until != nil {
		t.Urgency = Passes
	}
	_, sentence := f.held()
	t.Text, t.Reason, t.Until = words.Line(sentence), words.Line(p.Reason), p.Until
	return t
}

// late returns the trouble that a due entry is not in the inbox: nobody has moved it yet, or it cannot be moved.
func (f Facts) late() Trouble {
	t := f.trouble(KindOverdue, f.Scheduled.Next, f.Scheduled.Next.String())
	t.Reason, t.Text = string(Scheduled), words.Line(f.overdue())
	return t
}

// letters puts the open dead letters into one trouble.
func (f Facts) letters() []Trouble {
	n := f.Letters.All()
	if n == 0 {
		return nil
	}
	t := f.trouble(KindLetters, time.Time{}, "")
	t.Text = words.Count(n, "dead letter waits", "dead letters wait") + " for somebody to requeue or accept"
	return []Trouble{t}
}

func (f Facts) ofConsumers() (all []Trouble) {
	for _, c := range f.Consumers {
		if why := c.Failing; why.Long(f.Now) {
			t := f.trouble(KindConsumer, why.Since, Key(c.Name, why.Since.String()))
			t.Reason = "consumer stuck"
			t.Text = fmt.Sprintf("the consumer %s has taken no results since %s: %s", c.Name, words.Stamp(why.Since), cut(why.Error))
			all = append(all, t)
		}
	}
	return all
}
