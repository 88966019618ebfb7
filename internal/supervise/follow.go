package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/command/history"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// followPoll is how often the files are polled where the system sends no events.
const followPoll = 5 * time.Second

// follower logs what happens in the inbox, as `heartbeat log --follow` does.
type follower struct {
	box     *inbox.Inbox
	log     *history.Log
	say     func(time.Time, string)
	watcher *inbox.Watcher
	changed chan struct{} // has a value after each poll
	done    chan struct{}
	stopped chan struct{}

	mu sync.Mutex
	picture
	observer func(history.Event)
	trouble  string // the error of the last poll, "" for none
}

// picture is what a poll has read.
type picture struct {
	inFlight *inbox.Delivery
	waiter   *inbox.Waiter // the hook that waits to wake the session
	answered int           // entries since the launcher began
}

// follow opens the files at their present ends. Once begin is called, say gets a line for each later event.
func follow(box *inbox.Inbox, say func(time.Time, string)) (*follower, error) {
	log, err := history.Follow(box)
	if err != nil {
		return nil, err
	}
	return &follower{box: box, log: log, say: say, changed: make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{})}, nil
}

// begin starts to poll, and calls poke after each poll.
func (f *follower) begin(poke func()) {
	f.watcher = f.box.WatchAll(followPoll)
	go func() {
		defer close(f.stopped)
		for {
			f.poll()
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
		_ = f.watcher.Close() // nothing reads it any more
	}
	_ = f.log.Close() // only read
}

// observe passes further events of the inbox to observer, nil for nobody.
func (f *follower) observe(observer func(history.Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observer = observer
}

// last returns the picture of the last poll.
func (f *follower) last() picture {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.picture
}

// maxReads bounds the reads of one poll.
const maxReads = 10

// poll reports what has happened since the last poll, in order.
func (f *follower) poll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := fromView(f.box, func(v *inbox.View) (_ struct{}, err error) {
		f.inFlight = v.InFlight()
		f.waiter, err = v.Waiter()
		return struct{}{}, err
	})
	// The files are read until none has anything new: of two events in a row, the later one may be in
	// the file that is read first.
	var news []history.Event
	for n := 0; err == nil && n < maxReads; n++ {
		var more []history.Event
		if more, err = f.log.Next(); len(more) == 0 {
			break
		}
		news = append(news, more...)
	}
	f.log.Notes() // drops the notes on lines that an operator wrote
	history.Sort(news)
	for _, e := range news {
		f.report(e)
	}
	text := ""
	if err != nil {
		text = "look at the inbox: " + err.Error()
	} else if err = disk.MayWrite(f.box.Dir(), inbox.LockName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		text = fmt.Sprintf("nothing can be delivered or acknowledged: write to %s: %v", f.box.Dir(), err)
	}
	if text != f.trouble && text != "" {
		f.say(time.Now(), text)
	}
	f.trouble = text
}

func (f *follower) report(e history.Event) {
	at := time.Now()
	if e.At != nil {
		at = *e.At
	}
	f.say(at, lineOf(e))
	if e.Event == history.Answered {
		f.answered++
	}
	if f.observer != nil {
		f.observer(e)
	}
}

func lineOf(e history.Event) string {
	what, about := e.Event, words.Brief(e.Reason)
	switch {
	case e.Reply != nil:
		about = words.Brief(*e.Reply)
	case slices.Contains([]string{history.DeadLettered, history.Expired, history.Canceled}, e.Event):
		what, about = "dead letter", words.Brief(inbox.Reason(e.Reason).Why(e.Failure))
	}
	text := what
	if e.EntryID != "" {
		text += " " + words.Name(e.ID, e.EntryID)
	} else if e.SessionID != "" {
		text += " " + words.Short(e.SessionID)
	}
	switch {
	case e.Event == history.Delivered && e.Attempt > 1:
		text += fmt.Sprintf(" (attempt %d)", e.Attempt)
	case e.LatencyMS != nil:
		text += " in " + words.Took(time.Duration(*e.LatencyMS)*time.Millisecond)
	}
	if e.Until != nil {
		text += " until " + words.Stamp(*e.Until)
	}
	if about != "" || e.Reply != nil {
		text += ": " + about
	}
	return text
}
