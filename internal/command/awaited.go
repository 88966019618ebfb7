package command

import (
	"context"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/money/book"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// lookEvery is how often the line of a person who waits at a terminal is updated.
const lookEvery = time.Second

// maxAhead is how many bytes of a queue each update reads. Beyond that only the size is shown.
const maxAhead = 1 << 20

// awaited is what a verb waits for, shown on a line of the terminal.
type awaited struct {
	box *inbox.Inbox
	// entry is the entry waited for, nil for whatever comes.
	entry *inbox.Receipt
	began time.Time
}

// shown shows what is waited for on a line of the terminal, until stop is called. Other output must go around the
// line, which is nil without a terminal.
func (a awaited) shown(ctx context.Context, s cli.Streams) (line *layout.ProgressLine, stop func()) {
	if line = layout.StartLine(s.Err, ""); line == nil {
		return nil, func() {}
	}
	told := inBackground(ctx, func(ctx context.Context) { a.tell(ctx, line) })
	return line, func() {
		told()
		line.Stop()
	}
}

// inBackground runs f until stop is called, which waits for f to end.
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

// tell updates the line until ctx ends.
func (a awaited) tell(ctx context.Context, line *layout.ProgressLine) {
	news := a.box.WatchAll(cli.WatchPoll)
	defer func() { _ = news.Close() }() // only read
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

// look says what is waited for, and since when. It says nothing about an inbox that cannot be read, because the
// verb itself reports that.
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

// flying says what becomes of the entry in flight.
func (a awaited) flying(d *inbox.Delivery) string {
	entry, session := words.Name(d.ID(), d.EntryID), "its session"
	if d.SessionID != "" {
		session = "session " + words.Short(d.SessionID)
	}
	what := fmt.Sprintf("%s answers %s", session, entry)
	if e := recovery.EvidenceOf(d); e.Woken && !e.Prompted {
		what = fmt.Sprintf("%s is delivered to %s", entry, session)
	}
	if now, err := book.Spending(a.box, nil); err == nil {
		if p, known := now.OfDelivery(d); known && p.String() != "" {
			what += ", " + p.String() + " so far"
		}
	}
	return what
}

// behind says what comes before the entry waited for.
func (a awaited) behind(ctx context.Context, v *inbox.View, flying *inbox.Delivery) string {
	if a.entry.Start >= a.entry.End || a.entry.Start < v.Cursor() {
		return "" // its place is unknown
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

// waits says how much is queued.
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
