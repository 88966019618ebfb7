package supervise

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

// followPoll is how often the files are polled where the system sends no events.
const followPoll = 5 * time.Second

type follower struct {
	box     *inbox.Inbox
	say     func(time.Time, string)
	watcher *inbox.Watcher
	changed chan struct{} // has a value after each look
	done    chan struct{}
	stopped chan struct{}

	mu       sync.Mutex
	results  *inbox.Tail
	letters  *inbox.Tail
	events   *inbox.Tail
	said     []string // the deliveries reported last
	inFlight *inbox.Delivery
	waiter   *inbox.Waiter
	answered int
	session  *session
	hear     func(inbox.Event)
	trouble  string // the error of the last look, "" for none
	lines    []line // of the look in progress
}

type line struct {
	at   time.Time
	text string
}

// follow opens the files at their present ends. say gets a line for each later event, once begin is called.
func follow(box *inbox.Inbox, say func(time.Time, string)) (*follower, error) {
	f := &follower{
		box: box, say: say, changed: make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	var errs [3]error
	f.results, errs[0] = box.TailResults(0)
	f.letters, errs[1] = box.TailDeadLetters(0)
	f.events, errs[2] = box.TailEvents(0)
	if err := errors.Join(errs[:]...); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin begins to look, and calls poke after each look.
func (f *follower) begin(poke func()) {
	f.watcher = f.box.WatchAll(followPoll)
	go func() {
		defer close(f.stopped)
		for {
			f.look()
			poke()
			select {
			case f.changed <- struct{}{}:
			default:
			}
			select {
			case <-f.watcher.C:
			case <-f.done:
				return
			}
		}
	}()
}

func (f *follower) close() {
	if f.watcher != nil {
		close(f.done)
		<-f.stopped
		_ = f.watcher.Close() // nothing is read any more
	}
	for _, t := range []*inbox.Tail{f.results, f.letters, f.events} {
		if t != nil {
			_ = t.Close() // only read
		}
	}
}

// attach credits further events of the inbox to s and passes them to hear. nil credits them to no session.
func (f *follower) attach(s *session, hear func(inbox.Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session, f.hear = s, hear
}

// counts returns the number of entries answered since the launcher began, and the entry in flight.
func (f *follower) counts() (answered int, inFlight *inbox.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered, f.inFlight
}

// waitingHook is the hook that waits to wake the session, as the last look found it.
func (f *follower) waitingHook() *inbox.Waiter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiter
}

// readsAtMost bounds the reads of one look.
const readsAtMost = 10

// look reports what has happened since the last look, in that order.
func (f *follower) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.delivery()
	// The files are read until none has anything new: of two events in a row, the later one may be in
	// the file that is read first.
	var unread error
	for range readsAtMost {
		before := len(f.lines)
		unread = errors.Join(f.events.Lines(f.event), f.results.Lines(f.result), f.letters.Lines(f.letter))
		if unread != nil || len(f.lines) == before {
			break
		}
	}
	if err = errors.Join(err, unread); d != nil {
		f.delivered(words.Name(d.ID(), d.EntryID), d.StartOffset, d.Attempt, d.DeliveredAt)
	}
	text := ""
	if err != nil {
		text = "look at the inbox: " + err.Error()
	}
	if text != f.trouble && text != "" {
		f.add(time.Now(), text)
	}
	f.trouble = text
	slices.SortStableFunc(f.lines, func(a, b line) int { return a.at.Compare(b.at) })
	for _, l := range f.lines {
		f.say(l.at, l.text)
	}
	f.lines = f.lines[:0]
}

// add keeps a line until the look is over.
func (f *follower) add(at time.Time, text string) { f.lines = append(f.lines, line{at, text}) }

// delivery returns the entry in flight, which is reported only after everything read from the files. It is
// nil while the outcome of the entry before may be in the journal but not yet in those files.
func (f *follower) delivery() (toTell *inbox.Delivery, err error) {
	v, err := f.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Close() }() // only read
	if f.waiter, err = v.Waiter(); err != nil {
		return nil, err
	}
	if f.inFlight = v.InFlight(); v.Settling() {
		return nil, nil
	}
	return f.inFlight, nil
}

// saidKept is how many deliveries are remembered. An answer and the next delivery arrive together
// but are read one by one.
const saidKept = 3

// delivered reports a delivery once, even if its end was seen first.
func (f *follower) delivered(name string, start int64, attempt int, at time.Time) {
	key := fmt.Sprint(start, at.UnixNano())
	if slices.Contains(f.said, key) {
		return
	}
	f.said = append(f.said[max(0, len(f.said)-saidKept):], key)
	text := "delivered " + name
	if attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", attempt)
	}
	f.add(at, text)
	if f.session != nil {
		f.session.worked.Store(true)
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
	f.add(latest(r.AcknowledgedAt, r.DeliveredAt), fmt.Sprintf("answered %s in %s: %s", name, words.Took(r.AcknowledgedAt.Sub(r.DeliveredAt)), words.Brief(r.Reply)))
}

// latest keeps an end from preceding its beginning after the clock was set back.
func latest(end, begin time.Time) time.Time {
	if end.Before(begin) {
		return begin
	}
	return end
}

func (f *follower) letter(raw []byte) {
	l, mark, ok := inbox.ParseLetter(raw)
	if !ok || mark {
		return
	}
	name, at := words.Name(l.ID, l.EntryID), l.DeadLetteredAt
	if l.DeliveredAt != nil {
		f.delivered(name, l.StartOffset, l.Attempts, *l.DeliveredAt)
		at = latest(at, *l.DeliveredAt)
	}
	f.add(at, "dead letter "+name+": "+words.Brief(l.Reason.Why(l.Failure)))
}

func (f *follower) event(text []byte) {
	var e inbox.Event
	if json.Unmarshal(text, &e) != nil {
		return // an operator's own line
	}
	at := e.At
	if (e.Event == inbox.EventRedelivered || e.Event == inbox.EventDropped) && e.DeliveredAt != nil {
		f.delivered(words.Name(e.ID, e.EntryID), e.Start, e.Attempt, *e.DeliveredAt)
		at = latest(at, *e.DeliveredAt)
	}
	f.add(at, eventLine(e))
	if f.hear != nil {
		f.hear(e)
	}
}

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
