package managed

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// followPoll is how often the files are looked at where the system sends no
// events.
const followPoll = 5 * time.Second

// follower tells what happens in the inbox, as the files show it.
type follower struct {
	box     *inbox.Inbox
	say     func(time.Time, string)
	watcher *inbox.Watcher
	changed chan struct{} // has a value after something happened
	done    chan struct{}
	stopped chan struct{}

	mu       sync.Mutex
	results  *inbox.Tail
	letters  *inbox.Tail
	events   *inbox.Tail
	said     []string // the deliveries that were told last
	open     bool     // the last one has no end yet
	again    *time.Timer
	patient  bool // a delivery waits to be told
	inFlight *inbox.Delivery
	answered int
	session  *session
	hear     func(inbox.Event)
	trouble  string
	lines    []line // of the look that goes on
}

// line is one thing that happened.
type line struct {
	at   time.Time
	text string
}

// follow follows the inbox from now on. say gets a line for each thing that
// happens.
func follow(box *inbox.Inbox, say func(time.Time, string)) (*follower, error) {
	f := &follower{
		box: box, say: say, changed: make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	f.watcher, f.again = box.WatchAll(followPoll), time.NewTimer(0)
	var errs [3]error
	f.results, errs[0] = box.TailResults(0)
	f.letters, errs[1] = box.TailDeadLetters(0)
	f.events, errs[2] = box.TailEvents(0)
	if err := errors.Join(errs[:]...); err != nil {
		close(f.stopped)
		f.close()
		return nil, err
	}
	return f, nil
}

// begin begins to look, and pokes somebody after each look.
func (f *follower) begin(poke func()) { go f.run(poke) }

func (f *follower) run(poke func()) {
	defer close(f.stopped)
	for {
		select {
		case <-f.watcher.C:
		case <-f.again.C:
		case <-f.done:
			return
		}
		f.look()
		poke()
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

func (f *follower) close() {
	close(f.done)
	<-f.stopped
	_ = f.watcher.Close() // nobody follows any more
	for _, t := range []*inbox.Tail{f.results, f.letters, f.events} {
		if t != nil {
			_ = t.Close() // only read
		}
	}
}

// attach has the events of the inbox be those of a session, until another one is
// attached, or nil.
func (f *follower) attach(s *session, hear func(inbox.Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session, f.hear = s, hear
}

// counts are those of this launcher's time.
func (f *follower) counts() (answered int, inFlight *inbox.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered, f.inFlight
}

// look tells what has come since the last look.
func (f *follower) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(
		f.events.Lines(f.event),
		f.results.Lines(f.result),
		f.letters.Lines(f.letter),
		f.delivery(),
	)
	text := ""
	if err != nil {
		text = "look at the inbox: " + err.Error()
	}
	if text != f.trouble && text != "" {
		f.add(time.Now(), text)
	}
	f.trouble = text
	f.tell()
}

// add keeps a line until the look is over.
func (f *follower) add(at time.Time, text string) { f.lines = append(f.lines, line{at, text}) }

// tell says what a look has found, in the order in which it happened.
func (f *follower) tell() {
	slices.SortStableFunc(f.lines, func(a, b line) int { return a.at.Compare(b.at) })
	for _, l := range f.lines {
		f.say(l.at, l.text)
	}
	f.lines = f.lines[:0]
}

// delivery tells of the entry in flight.
func (f *follower) delivery() error {
	v, err := f.box.View()
	if err != nil {
		return err
	}
	defer func() { _ = v.Close() }() // only read
	d := v.InFlight()
	if f.inFlight = d; d == nil {
		return nil
	}
	// The answer before it is in the journal already, and in its own file in a moment.
	if f.open && !f.patient && !slices.Contains(f.said, deliveryKey(d.StartOffset, d.Attempt, d.DeliveredAt)) {
		f.patient = true
		f.again.Reset(lineWait)
		return nil
	}
	f.delivered(words.Name(d.ID(), d.EntryID), d.StartOffset, d.Attempt, d.DeliveredAt)
	return nil
}

// lineWait is how long the line of an answer may take that was committed.
const lineWait = 100 * time.Millisecond

func deliveryKey(start int64, attempt int, at time.Time) string {
	return fmt.Sprint(start, attempt, at.UnixNano())
}

const saidKept = 3

// delivered tells of a delivery once, also where its end was seen first.
func (f *follower) delivered(name string, start int64, attempt int, at time.Time) {
	key := deliveryKey(start, attempt, at)
	if slices.Contains(f.said, key) {
		return
	}
	// An answer and the delivery behind it come together, and are read one by one.
	f.said = append(f.said[max(0, len(f.said)-saidKept):], key)
	f.open, f.patient = true, false
	text := "delivered " + name
	if attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", attempt)
	}
	f.add(at, text)
	if f.session != nil {
		f.session.note(&f.session.worked)
	}
}

func (f *follower) result(text []byte) {
	var r inbox.Result
	if json.Unmarshal(text, &r) != nil {
		return // an operator's own line
	}
	name := words.Name(r.ID, r.EntryID)
	f.delivered(name, r.StartOffset, r.Attempt, r.DeliveredAt)
	f.answered++
	f.open = false
	f.add(r.AcknowledgedAt, fmt.Sprintf("answered %s in %s: %s", name, words.Took(r.AcknowledgedAt.Sub(r.DeliveredAt)), words.Brief(r.Reply)))
}

func (f *follower) letter(raw []byte) {
	l, mark, ok := inbox.ParseLetter(raw)
	if !ok || mark {
		return
	}
	f.open = false
	text := fmt.Sprintf("dead letter %s: %s", words.Name(l.ID, l.EntryID), l.Reason)
	if l.Failure != nil {
		text += ": " + words.Brief(l.Failure.String())
	}
	f.add(l.DeadLetteredAt, text)
}

func (f *follower) event(text []byte) {
	var e inbox.Event
	if json.Unmarshal(text, &e) != nil {
		return // an operator's own line
	}
	if e.Event == inbox.EventRedelivered || e.Event == inbox.EventDropped {
		f.open = false
	}
	f.add(e.At, eventLine(e))
	if f.hear != nil {
		f.hear(e)
	}
}

// eventLine is an event in words.
func eventLine(e inbox.Event) string {
	text := string(e.Event)
	if e.EntryID != "" {
		text += " " + words.Name(e.ID, e.EntryID)
	} else if e.Session != "" {
		text += " " + words.Short(e.Session)
	}
	if e.Until != nil {
		text += " until " + words.Stamp(*e.Until)
	}
	if e.Reason != "" {
		text += ": " + words.Brief(e.Reason)
	}
	return text
}
