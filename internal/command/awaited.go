package command

import (
	"context"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/progress"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// lookEvery is how often somebody who waits at a terminal is shown anew what for.
const lookEvery = time.Second

// maxAhead is how much of a queue is read at each such look. Of more only the size is told.
const maxAhead = 1 << 20

// awaited is what a verb waits for, and tells on a line of the terminal.
type awaited struct {
	box *inbox.Inbox
	// entry is the one that is waited for, nil for whatever comes.
	entry *inbox.Receipt
	began time.Time
}

// shown shows on a line of the terminal what is waited for, until stop is called. What is
// printed meanwhile must go around the line, which is nil where there is no terminal.
func (a awaited) shown(ctx context.Context, s cli.Streams) (line *progress.Line, stop func()) {
	if line = progress.Start(s.Err, ""); line == nil {
		return nil, func() {}
	}
	told := inBackground(ctx, func(ctx context.Context) { a.tell(ctx, line) })
	return line, func() {
		told()
		line.Stop()
	}
}

// inBackground runs f until stop is called, which waits for its end.
func inBackground(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// tell shows on the line what is waited for, until ctx ends.
func (a awaited) tell(ctx context.Context, line *progress.Line) {
	news := a.box.WatchAll(cli.WatchPoll)
	defer func() { _ = news.Close() }() // it only reads
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		line.Say(a.look(ctx))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-news.C:
		}
	}
}

// look says what is waited for, and since when. Of an inbox that cannot be read it says
// nothing: who waits is told that in a sentence.
func (a awaited) look(ctx context.Context) (what string, since time.Time) {
	v, err := a.box.View()
	if err != nil {
		return "", a.began
	}
	defer func() { _ = v.Close() }() // only read
	d := v.InFlight()
	switch {
	case d != nil && (a.entry == nil || d.EntryID == a.entry.EntryID):
		what, since = a.flying(d), d.DeliveredAt
	case a.entry == nil:
		what, since = "nothing is in flight", a.began
	case a.entry.NotBefore != nil && a.entry.NotBefore.After(time.Now()):
		return words.Name(a.entry.ID, a.entry.EntryID) + " is scheduled for " + words.Stamp(*a.entry.NotBefore), a.began
	default:
		return words.Name(a.entry.ID, a.entry.EntryID) + " is queued" + a.behind(ctx, v, d), a.began
	}
	if a.entry == nil {
		what += a.waits(ctx, v)
	}
	return what, since
}

// flying is what becomes of the entry in flight.
func (a awaited) flying(d *inbox.Delivery) string {
	entry, session := words.Name(d.ID(), d.EntryID), "its session"
	if d.SessionID != "" {
		session = "session " + words.Short(d.SessionID)
	}
	what := fmt.Sprintf("%s answers %s", session, entry)
	if e := recovery.EvidenceOf(d); e.Woken && !e.Prompted {
		what = fmt.Sprintf("%s is delivered to %s", entry, session)
	}
	if now, err := charging.Spending(a.box, nil); err == nil {
		if p, known := now.OfDelivery(d); known && p.String() != "" {
			what += ", " + p.String() + " so far"
		}
	}
	return what
}

// behind is what comes before the entry that is waited for.
func (a awaited) behind(ctx context.Context, v *inbox.View, flying *inbox.Delivery) string {
	if a.entry.Start >= a.entry.End || a.entry.Start < v.Cursor() {
		return "" // it is not known where
	}
	n, bytes, err := v.Ahead(ctx, a.entry.Start, maxAhead)
	if err != nil || n < 0 {
		return sizeAhead(" behind ", bytes)
	}
	if flying != nil {
		n++
	}
	if n == 0 {
		return ", and comes next"
	}
	return fmt.Sprintf(" behind %d", n)
}

// waits is how much is queued.
func (a awaited) waits(ctx context.Context, v *inbox.View) string {
	n, bytes, err := v.Ahead(ctx, v.Size(), maxAhead)
	if err != nil || n < 0 {
		return sizeAhead(", queued ", bytes)
	}
	return fmt.Sprintf(", %d queued", n)
}

func sizeAhead(before string, bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return before + words.Size(bytes)
}
