package supervise

import (
	"errors"
	"slices"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// followPoll is how often the files are looked at where the system sends no
// events.
const followPoll = 5 * time.Second

// follower reads the files of an inbox, and tells what happens in it.
type follower struct {
	box     *inbox.Inbox
	say     func(time.Time, string)
	watcher *inbox.Watcher
	changed chan struct{} // has a value after something happened
	turned  chan struct{} // the same, for the guard of the session
	done    chan struct{}
	stopped chan struct{}

	mu       sync.Mutex
	results  *inbox.Tail
	letters  *inbox.Tail
	events   *inbox.Tail
	said     []string // the deliveries that were told last
	inFlight *inbox.Delivery
	waiter   *inbox.Waiter
	answered int
	session  *session
	hear     func(inbox.Event)
	trouble  string // what kept the last look from being whole
	lines    []line // of the look in progress
}

// line is one thing that happened.
type line struct {
	at   time.Time
	text string
}

// follow follows the inbox from now on. say gets a line for each thing that happens,
// once the follower has begun.
func follow(box *inbox.Inbox, say func(time.Time, string)) (*follower, error) {
	f := &follower{
		box: box, say: say, changed: make(chan struct{}, 1), turned: make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{}),
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
	go f.run(poke)
}

func (f *follower) run(poke func()) {
	defer close(f.stopped)
	for {
		f.look()
		poke()
		for _, to := range []chan struct{}{f.changed, f.turned} {
			select {
			case to <- struct{}{}:
			default:
			}
		}
		select {
		case <-f.watcher.C:
		case <-f.done:
			return
		}
	}
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

// attach takes the events of the inbox for those of a session, until another one is
// attached, or nil.
func (f *follower) attach(s *session, hear func(inbox.Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session, f.hear = s, hear
}

// counts returns how many entries were answered since the launcher began, and the one in
// flight.
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

// look tells what has come since the last look.
func (f *follower) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.delivery()
	if err = errors.Join(err, f.read()); d != nil {
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
	f.tell()
}

// readsAtMost bounds the reads of one look.
const readsAtMost = 10

// read reads the files until none has anything new: when two things happen one after
// the other, the later one may be in the file that is read first.
func (f *follower) read() (err error) {
	for range readsAtMost {
		before := len(f.lines)
		err = errors.Join(f.events.Lines(f.event), f.results.Lines(f.result), f.letters.Lines(f.letter))
		if err != nil || len(f.lines) == before {
			break
		}
	}
	return err
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
