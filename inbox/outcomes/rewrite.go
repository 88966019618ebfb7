package outcomes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"
)

// rewriting replaces an append-only file by a copy without the lines that keep rejects. It copies most lines
// without the inbox's lock, and only the newest ones under the lock.
type rewriting struct {
	box    *inbox.Inbox
	kind   journal.Kind
	keep   func(line []byte) bool
	held   *holding              // of a trimming, else nil
	purged func() []inbox.Letter // the letters that go, nil for a trimming

	tmp     *disk.Lock // the new file, locked by its writer
	of      string     // the identity of the old file
	from    int64      // how much of the old file was copied
	to      int64      // how much of the new file was written
	dropped int
}

// rewriteTries bounds how often the rewriting starts over after a rotation of the file.
const rewriteTries = 5

var errRotated = errors.New("somebody keeps rotating it: try again later")

// run rewrites the file. It is durable when it returns; a kill leaves the old file or the new one.
func (w *rewriting) run(ctx context.Context) (warnings []string, err error) {
	for try := 0; ; try++ {
		again, more, err := w.attempt(ctx)
		warnings = append(warnings, more...)
		if err == nil && again && try == rewriteTries {
			err = errRotated
		}
		if err != nil {
			return warnings, fmt.Errorf("rewrite %s: %w", fileOf(w.box, w.kind), err)
		}
		if !again {
			return warnings, nil
		}
	}
}

func (w *rewriting) copyPath() string { return fileOf(w.box, w.kind) + journal.CopySuffix }

func (w *rewriting) attempt(ctx context.Context) (again bool, warnings []string, err error) {
	w.of, w.from, w.to, w.dropped = "", 0, 0, 0
	if w.held != nil {
		if err := w.held.begin(); err != nil {
			return false, nil, err
		}
	}
	if w.tmp, err = disk.AcquireLock(ctx, w.copyPath(), w.box.Options().LockWait); err != nil {
		return false, nil, err
	}
	published := false
	defer func() {
		if !published {
			err = errors.Join(err, disk.Remove(w.copyPath()))
		}
		err = errors.Join(err, w.tmp.Release())
	}()
	if err := w.tmp.File().Truncate(0); err != nil {
		return false, nil, err
	}
	// Twice, because little is added while a lot is copied.
	for range 2 {
		if err := w.copyWithoutLock(); err != nil {
			return false, nil, err
		}
	}
	if w.dropped == 0 && w.purged == nil { // a purged letter may be the last line, without its newline
		return false, nil, disk.SyncDir(w.box.Dir()) // an earlier process may have been killed before its own sync
	}
	t, err := w.box.Begin(ctx)
	if err != nil {
		return false, nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	again, published, err = w.publish(t)
	return again, t.Warnings(), err
}

func (w *rewriting) copyWithoutLock() error {
	return journal.Reading(fileOf(w.box, w.kind), func(f *disk.File) error {
		if w.of = cmp.Or(w.of, f.Identity()); w.of != f.Identity() {
			return nil
		}
		if err := w.copyOn(f, false); err != nil {
			return err
		}
		return errors.Join(w.tmp.File().Sync(), f.Sync())
	})
}

// copyOn continues the copy to the end of the file. Unless all is set, it leaves out a last line without its newline,
// which may still grow.
func (w *rewriting) copyOn(f *disk.File, all bool) error {
	if f.Info().Size < w.from {
		return nil // publish notices
	}
	to := &disk.Writer{File: w.tmp.File(), Off: w.to}
	read, left, err := lines.Keep(to, io.NewSectionReader(f, w.from, f.Info().Size-w.from), all, w.keep)
	w.from, w.to, w.dropped = w.from+read, to.Off, w.dropped+left
	return err
}

// publish puts the new file in place of the old one.
func (w *rewriting) publish(t *inbox.Tx) (again, published bool, err error) {
	f, err := journal.OpenState(fileOf(w.box, w.kind)) // Begin may have finished a commit
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch {
	case f == nil:
		w.dropped = 0
	case f.Identity() != w.of || f.Info().Size < w.from:
		return true, false, nil
	default:
		err = w.copyOn(f, true)
	}
	if err != nil || w.dropped == 0 {
		return false, false, errors.Join(err, disk.SyncDir(w.box.Dir()))
	}
	if w.held != nil {
		if still, err := w.held.still(); err != nil || !still {
			return true, false, err
		}
	}
	// The journal stops vouching for the old file's lines, which must then be durable by themselves.
	if err := errors.Join(w.tmp.File().Sync(), f.Sync(), disk.SyncDir(w.box.Dir())); err != nil {
		return false, false, err
	}
	var purged []inbox.Letter
	if w.purged != nil {
		purged = w.purged()
	}
	err = t.ReplaceFile(w.kind, w.copyPath(), purged)
	return false, err == nil, err
}

// holding keeps the lines that consumers have yet to be handed from being trimmed: those behind the earliest of the
// consumers' places, and the line before that, by which a consumer finds its place.
type holding struct {
	box    *inbox.Inbox
	kind   journal.Kind
	wanted func(line []byte) bool // true for lines that stay anyway

	consumers []string // their names
	behind    []string // those that were not handed everything
	// A line younger than after is behind a place. A line whose hash is in last is right before one. From the first
	// such line on, all is set and every line stays.
	after time.Time
	last  map[string]bool
	all   bool

	unread  int // outcomes that stay for consumers
	removed int // lines that go, except the marks of dead letters
}

// begin reads the consumers' places. Call keep afterwards for each line of the file, in order.
func (h *holding) begin() error {
	*h = holding{box: h.box, kind: h.kind, wanted: h.wanted, last: map[string]bool{}}
	consumers, err := h.known()
	if err != nil || len(consumers) == 0 {
		return err
	}
	return journal.Reading(fileOf(h.box, h.kind), func(f *disk.File) error {
		h.after = now(h.box).AddDate(1000, 0, 0)
		for _, c := range consumers {
			p := c.place(h.kind)
			if p.At.Before(h.after) {
				h.after = p.At
			}
			h.last[p.Line] = true
			h.all = h.all || p.Line == "" // also if the consumer's file cannot be read
			if p.File != f.Identity() || p.Off < f.Info().Size {
				h.behind = append(h.behind, c.Name)
			}
			h.consumers = append(h.consumers, c.Name)
		}
		return nil
	})
}

// known returns the consumers that are handed the file.
func (h *holding) known() ([]Consumer, error) {
	if whenOf[h.kind] == nil {
		return nil, nil
	}
	return Consumers(h.box)
}

// still reports whether no consumer has been added since begin.
func (h *holding) still() (bool, error) {
	consumers, err := h.known()
	return !slices.ContainsFunc(consumers, func(c Consumer) bool { return !slices.Contains(h.consumers, c.Name) }), err
}

// keep reports whether a line stays.
func (h *holding) keep(line []byte) bool {
	unread := false
	if len(h.consumers) > 0 {
		at, outcome := whenOf[h.kind](line)
		unread = outcome && (h.all || at.After(h.after))
		h.all = h.all || unread || h.last[lines.ID(line)]
	}
	switch {
	case h.wanted(line):
		return true
	case unread:
		h.unread++
	case !h.all && (h.kind != journal.DeadLetters || !glance(line).mark):
		h.removed++
	}
	return h.all
}

func (h *holding) notes() []string {
	if h.unread == 0 {
		return nil
	}
	path := fileOf(h.box, h.kind)
	return []string{fmt.Sprintf("%s, since %s has yet to be handed them: heartbeat results --forget NAME forgets a consumer that is gone for good",
		words.Count(h.unread, "line of "+path+" stays", "lines of "+path+" stay"), strings.Join(h.behind, " or "))}
}

// Trimming is what [Trim] removed.
type Trimming struct {
	Results     int      `json:"results"`
	DeadLetters int      `json:"dead_letters"`
	Events      int      `json:"events"`
	Costs       int      `json:"costs"`
	Freed       int64    `json:"freed_bytes"`
	Warnings    []string `json:"warnings,omitempty"`
}

// Trim removes results, closed dead letters, events and costs from before the given time. It keeps lines that
// a consumer has yet to be handed, and lines that arrive during the call. Once a result is gone, its id can
// be sent again. The files are copied without the lock.
func Trim(ctx context.Context, b *inbox.Inbox, before time.Time) (n Trimming, err error) {
	began := now(b)
	n.Warnings, err = b.MakeGood(ctx)
	space, unknown := spaceOf(b)
	if err = errors.Join(err, unknown); err != nil {
		return n, err
	}
	defer func() { // also after a failure
		left, unknown := spaceOf(b)
		n.Freed, err = max(0, space-left), errors.Join(err, unknown)
	}()
	rewrite := func(kind journal.Kind, keep func([]byte) bool) (int, error) {
		held := holding{box: b, kind: kind, wanted: keep}
		w := rewriting{box: b, kind: kind, keep: held.keep, held: &held}
		warnings, err := w.run(ctx)
		n.Warnings = append(append(n.Warnings, warnings...), held.notes()...)
		return min(held.removed, w.dropped), err // none if the file vanished
	}
	gone, err := closedBefore(b, before)
	if err != nil {
		return n, err
	}
	n.DeadLetters, err = rewrite(journal.DeadLetters, func(line []byte) bool {
		return len(gone) == 0 || !gone[sumOf(glance(line).name)]
	})
	if err != nil {
		return n, err
	}
	counts := []*int{&n.Results, &n.Events, &n.Costs}
	for i, kind := range []journal.Kind{journal.Results, journal.Events, journal.Costs} {
		*counts[i], err = rewrite(kind, func(line []byte) bool {
			l := flat.Value(line)
			at, err := time.Parse(time.RFC3339, cmp.Or(l.Get("acknowledged_at").Text(), l.Get("at").Text()))
			isNew := at.After(began) && !at.After(now(b)) // nobody may have seen it
			return err != nil || isNew || !at.Before(before) || !json.Valid(line)
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func spaceOf(b *inbox.Inbox) (space int64, err error) {
	for _, kind := range journal.OutcomeKinds {
		info, err := disk.StatName(fileOf(b, kind))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		space += info.Space
	}
	return space, nil
}

// closedBefore returns the names, as sums, of the letters that were closed before that time, and of letters of which
// only marks are left. A letter whose entry was answered since is trimmed along with that result: without the result
// the letter would count as open again.
func closedBefore(b *inbox.Inbox, before time.Time) (gone map[uint64]bool, err error) {
	r := NewLetterReader(b)
	if _, err := r.Read(); err != nil {
		return nil, err
	}
	if err := r.findAnswered(before); err != nil {
		return nil, err
	}
	gone = map[uint64]bool{}
	return gone, r.reading(func(f *disk.File) error {
		if err := r.stillThere(f); err != nil {
			return err
		}
		for name, l := range r.letters {
			m, err := l.marks(f)
			if err != nil {
				return err
			}
			at := cmp.Or(m.RequeuedAt, m.AcceptedAt)
			if l.letter == 0 {
				at = cmp.Or(at, m.RepliedAt)
			}
			if l.answered || at != nil && at.Before(before) {
				gone[name] = true
			}
		}
		return nil
	})
}
