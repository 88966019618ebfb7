package notify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// scan is a look at an inbox, compared with what was told.
type scan struct {
	box   *inbox.Inbox
	now   time.Time
	st    *state
	facts see.Facts
	stall time.Duration        // how long nothing may move, 0 for any time
	seen  map[string]time.Time // [state.Seen] before this look

	holds   map[string]bool // the keys of all conditions that hold now
	letters outcomes.Place  // how far the dead letters were read
	pending map[What]pending
}

// pending are a kind's occasions that were not told. kept are all that hold, and as many others as may be told singly.
type pending struct {
	kept  []Occasion
	count int64
}

// compare compares everything but the dead letters with what was told, and records since when each condition was seen.
func compare(box *inbox.Inbox, facts see.Facts, st *state, o Options, launcher ...Occasion) *scan {
	s := &scan{box: box, now: o.now(), st: st, facts: facts, stall: o.Stall, seen: st.Seen, holds: map[string]bool{}, pending: map[What]pending{}}
	s.facts.Now, s.facts.Still = s.now, see.Still{} // how long nothing moves is measured below
	s.facts.Runs = s.facts.Runs[:min(len(s.facts.Runs), maxHolding)]
	st.Seen = map[string]time.Time{}
	s.troubles()
	s.stalled()
	if o.Drained && s.facts.Unreadable == nil {
		s.drained(settled(s.facts.Totals))
	}
	s.addSaid(launcher)
	s.addOver()
	return s
}

const saidAgain = 24 * time.Hour // how long a launcher's repeated words are not told again

// addSaid adds what a launcher has to tell. The same words of the next launcher are not told again within a day,
// unless an entry was answered in between.
func (s *scan) addSaid(launcher []Occasion) {
	for key, told := range s.st.Holding {
		answered := s.facts.Asked != nil && s.facts.Asked.After(told.At)
		if strings.HasPrefix(key, saysKey) && !answered && s.now.Sub(told.At) < saidAgain {
			s.holds[key] = true
		}
	}
	for _, o := range launcher {
		known := slices.ContainsFunc(s.st.Said, func(said Occasion) bool { return said.launcherKey() == o.launcherKey() })
		if !s.holds[o.launcherKey()] && !known && len(s.st.Said) < maxSaid {
			s.st.Said = append(s.st.Said, o)
		}
	}
	for _, o := range s.st.Said {
		o.key, o.holds = o.launcherKey(), true
		s.holds[o.key] = true
		s.add(o)
	}
}

// add notes an occasion, unless an interrupted round has told it already.
func (s *scan) add(o Occasion) {
	if slices.Contains(s.st.Done, o.key) {
		return
	}
	o.Inbox = s.box.Path() // also in an occasion that an earlier process saved
	p := s.pending[o.What]
	if p.count++; o.holds || len(p.kept) <= maxTold {
		p.kept = append(p.kept, o)
	}
	s.pending[o.What] = p
}

// next removes and returns the oldest occasion of a kind.
func (s *scan) next(what What) *Occasion {
	p := s.pending[what]
	slices.SortStableFunc(p.kept, func(a, b Occasion) int { return a.At.Compare(b.At) })
	s.pending[what] = pending{p.kept[1:], p.count - 1}
	return &p.kept[0]
}

func (s *scan) total() (n int64) {
	for _, p := range s.pending {
		n += p.count
	}
	return n
}

// repair completes a commit that a killed process left behind.
func repair(ctx context.Context, box *inbox.Inbox) error {
	v, err := box.View()
	if err != nil {
		return nil // a fault, which is told
	}
	settling := v.Settling()
	if err := v.Close(); err != nil || !settling {
		return err
	}
	tx, err := box.Begin(ctx)
	if err != nil {
		return err
	}
	return tx.Close()
}

// whatOf maps troubles to kinds of messages. A trouble that is not listed is a [Fault].
var whatOf = map[see.Kind]What{
	see.KindQuestion: Question, see.KindBreakpoint: Question, see.KindCode: Question,
	see.KindPaused: Paused, see.KindDayOver: Limit, see.KindDayNear: Limit,
	see.KindFailing: Failing, see.KindOverdue: Stalled, see.KindTorn: Stalled, see.KindReplaced: Stalled, see.KindBackingOff: Stalled,
}

// unmoved troubles are reported by [scan.stalled], unless they end at a known time.
var unmoved = []see.Kind{
	see.KindFailed, see.KindOrphaned, see.KindStalled, see.KindReplaced, see.KindNoSession, see.KindSessionDown, see.KindNoWaker, see.KindLauncher,
}

// troubles adds what is wrong, but for dead letters: [scan.addLetters]. What usually passes is told once it has lasted.
func (s *scan) troubles() {
	for _, t := range s.facts.Troubles() {
		if t.Kind == see.KindLetters || slices.Contains(unmoved, t.Kind) && t.Until == nil { // told elsewhere
			continue
		}
		at := s.now
		if t.Since != nil {
			at = *t.Since
		}
		if t.Row().Lasts {
			if _, long := s.lasts(t.Key, at); !long {
				continue
			}
		}
		o := occasion(s.box, cmp.Or(whatOf[t.Kind], Fault), at, t.Reason, t.Key, name(s.box)+": "+t.Text)
		o.Trouble, o.TypeThis, o.urgency, o.Until = t.Kind, t.Do, t.Urgency, t.Until
		o.Session, o.Run, o.Effect, o.Failure = t.Session, t.Run, t.Effect, t.Failed
		s.addLasting(o, t.Again)
	}
}

// lasts records since when a condition holds, which is since at if it is new, and reports whether that is long enough.
func (s *scan) lasts(key string, at time.Time) (since time.Time, long bool) {
	since, known := s.seen[key]
	if !known {
		since = at
	}
	s.st.Seen[key] = since
	return since, s.stall > 0 && s.now.Sub(since) >= s.stall
}

// stalled adds that nothing moves. If something has changed since the last look, the exact time is unknown, so the
// clock starts now. New entries do not count as movement.
func (s *scan) stalled() {
	now := see.StandsStill(s.facts)
	if now.Fingerprint == "" {
		return
	}
	if s.st.written != nil || now.Since.IsZero() {
		now.Since = s.now
	}
	key := "stalled " + now.Fingerprint
	since, long := s.lasts(key, now.Since)
	if !long {
		return
	}
	state, sentence := s.facts.Explain()
	o := occasion(s.box, Stalled, s.now, string(state), key,
		fmt.Sprintf("nothing has moved in %s for %s: %s", name(s.box), words.Took(s.now.Sub(since).Truncate(time.Second)), line(sentence)))
	o.Trouble, o.Since = see.KindStalled, &since
	if d := cmp.Or(s.facts.InFlight, s.facts.Redeliver); d != nil {
		o.Entry = &Entry{ID: d.ID(), EntryID: d.EntryID, Text: d.Text(), Attempts: d.Attempt}
	}
	all := s.facts.Troubles()
	if i := slices.IndexFunc(all, func(t see.Trouble) bool { return t.Row().Lasts }); i >= 0 {
		o.Trouble = all[i].Kind
	}
	s.addLasting(o, time.Time{})
}

// repeatFirst and repeatThen are the times after which a trouble that needs a person is told again.
const repeatFirst, repeatThen = 4 * time.Hour, 24 * time.Hour

// addLasting adds an occasion that holds for a while. It is told once, and repeated at long intervals if nothing goes
// on without a person. An occasion that begins anew at again is told as a new one.
func (s *scan) addLasting(o Occasion, again time.Time) {
	told, known := s.st.Holding[o.key]
	s.holds[o.key] = true
	o.holds, o.text = true, o.Text
	if !known || again.After(told.At) {
		s.add(o)
		return
	}
	pace := repeatThen
	if told.Times <= 1 {
		pace = repeatFirst
	}
	if (o.urgency == see.Act || o.urgency == see.Asked || o.What == Stalled) && told.Kind != "" && s.now.Sub(told.Last) >= pace {
		o.Text, o.first = "still: "+o.Text, told.At
		s.add(o)
	}
}

// addOver adds what was told and no longer holds.
func (s *scan) addOver() {
	for key, told := range s.st.Holding {
		if s.isOver(key, told) {
			o := occasion(s.box, Over, s.now, "over", overKey+key, "over: "+told.Text)
			o.Trouble, o.Since = told.Kind, &told.At
			s.add(o)
		}
	}
}

func (s *scan) isOver(key string, told holding) bool {
	return !s.holds[key] && told.Kind != "" && told.Kind != see.KindDayNear
}

// settled returns how many entries so far were answered, dropped or set aside.
func settled(n inbox.Totals) int64 {
	all := n.Answered + n.Dropped
	for _, set := range n.DeadLetters {
		all += set
	}
	return all
}

// drained adds that nothing waits any more, after something was settled.
func (s *scan) drained(settled int64) {
	was := s.st.Settled
	switch works := s.facts.Works() || len(s.facts.Runs) > 0; {
	case was == nil, !works && settled <= *was:
		s.st.Settled = &settled // counting starts here
		return
	case works:
		return
	}
	o := occasion(s.box, Drained, s.now, "drained", fmt.Sprint("drained ", settled),
		fmt.Sprintf("%s is drained: %s", name(s.box), words.Count(int(settled-*was), "entry was settled", "entries were settled")))
	o.Count, o.TypeThis = settled-*was, see.Command(s.box.Path(), "results")
	s.add(o)
}

// memory is the greatest age at which a dead letter is told when there is no record of what was told.
const memory = 24 * time.Hour

func (s *scan) addLetters() (err error) {
	open := sync.OnceValues(func() (func(string) bool, error) { return outcomes.OpenLetters(s.box) })
	from := s.st.Letters
	if from.At.IsZero() {
		from.At = s.now.Add(-memory)
	}
	when := func(l []byte) (time.Time, bool) {
		letter, mark, ok := inbox.ParseLetter(l)
		return letter.DeadLetteredAt, ok && !mark && !letter.DeadLetteredAt.IsZero()
	}
	s.letters, _, err = outcomes.EachBehind(from, s.box.DeadLetterPath(), when, func(l []byte, _ time.Time) bool {
		letter, _, _ := inbox.ParseLetter(l)
		if is, err := open(); err != nil || is(letter.Letter) {
			s.add(s.letter(letter))
		}
		return true
	})
	return err
}

func (s *scan) letter(l inbox.Letter) Occasion {
	text := "dead letter " + words.Name(l.ID, l.EntryID) + " in " + name(s.box) + ": " + line(l.Reason.Why(l.Failure))
	if l.Attempts > 1 {
		text += ", after " + words.Count(l.Attempts, "attempt", "attempts")
	}
	o := occasion(s.box, DeadLetter, l.DeadLetteredAt, string(l.Reason), "letter "+l.Letter, text)
	o.Trouble, o.Session, o.Failure, o.TypeThis = see.KindLetters, l.SessionID, l.Failure, see.Command(s.box.Path(), "dead-letter", "show", l.Letter)
	o.Entry = &Entry{ID: l.ID, EntryID: l.EntryID, Letter: l.Letter, Text: l.Text(), Attempts: l.Attempts}
	if l.DeadLetter.Reason == inbox.ReasonOverBudget {
		o.What = Limit
	}
	return o
}
