package supervise

import (
	"context"
	"os"
	"path/filepath"

	"heartbeat/inbox"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/price"
	recovery "heartbeat/recover"
)

// viewed is what is read of an inbox as it is now.
func viewed[T any](box *inbox.Inbox, read func(*inbox.View) (T, error)) (got T, err error) {
	v, err := box.View()
	if err != nil {
		return got, err
	}
	defer func() { _ = v.Close() }() // only read
	return read(v)
}

// readTotals reads what was counted since the inbox's journal began.
func readTotals(box *inbox.Inbox) (inbox.Totals, error) { return viewed(box, (*inbox.View).Totals) }

// spent is what was spent ever, as far as the meters tell.
func spent(box *inbox.Inbox) (price.Amount, error) {
	p, err := box.Spending(charging.Load(box), nil)
	if err != nil {
		return price.Amount{}, err
	}
	return p.Total(), nil
}

// countQueued counts the entries that wait, -1 if that cannot be told.
func countQueued(box *inbox.Inbox) int64 {
	b, err := viewed(box, func(v *inbox.View) (inbox.Backlog, error) { return v.Backlog(context.Background()) })
	if err != nil {
		return -1
	}
	return b.Entries
}

// sessionInFlight is the session that has the entry in flight, "" for none.
func sessionInFlight(box *inbox.Inbox) string {
	d, err := viewed(box, func(v *inbox.View) (*inbox.Delivery, error) { return v.InFlight(), nil })
	if err != nil || d == nil {
		return "" // settle says why
	}
	return d.SessionID
}

// entryInFlight reports whether an entry is being worked on.
func entryInFlight(box *inbox.Inbox) bool {
	_, err := os.Lstat(filepath.Join(box.Dir(), ".in-flight"))
	return err == nil
}

// entryUnserved reports whether an entry waits that could be delivered, or was handed over
// and never taken up.
func entryUnserved(box *inbox.Inbox) bool {
	v, err := box.View()
	if err != nil {
		return false // the follower says why
	}
	defer func() { _ = v.Close() }() // only read
	if d := v.InFlight(); d != nil {
		e := recovery.EvidenceOf(d)
		return e.Woken && !e.Bound
	}
	paused, err1 := v.Paused()
	backoff, err2 := v.Backoff()
	if err1 != nil || err2 != nil || paused != nil || backoff != nil {
		return false
	}
	next, err := v.Next(1)
	return err == nil && len(next) > 0
}
