package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/internal/journal"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// A batch is committed in parts of about this size. After holdLock the lock is released between two parts, so
// that no hook waits for long.
const (
	partBytes = 1 << 20
	partLines = 4096
	holdLock  = time.Second
)

// Append adds one entry at the end of the inbox, and creates a missing inbox with mode 0600. Once Append has returned
// nil, the entry survives a power loss. After an error nothing was appended, unless the error matches [ErrUncertain].
//
// If an entry with the same id and the same text exists, nothing is appended and the receipt has the place of that
// entry; metadata, times and limits may differ. If the text differs, the error matches [ErrOtherText]. Canceled entries
// do not count, and a dead letter may be sent again.
//
// If the last line lacks its newline, Append waits until the file has not changed for settle and then ends
// that line, so that two lines do not become one.
func (b *Inbox) Append(ctx context.Context, m Message, settle time.Duration) (Receipt, error) {
	return b.appendOne(ctx, m, settle, nil)
}

func (b *Inbox) appendOne(ctx context.Context, m Message, settle time.Duration, admit func(*Tx) error) (Receipt, error) {
	all, err := b.appendAll(ctx, []Message{m}, settle, admit)
	if len(all) == 0 {
		return Receipt{}, err
	}
	return all[0], err
}

// AppendAll adds entries in order, as [Inbox.Append] does, and commits them in parts of about a mebibyte. After an
// error the receipts cover the parts that were appended. If any message is invalid, nothing is appended.
func (b *Inbox) AppendAll(ctx context.Context, all []Message, settle time.Duration) ([]Receipt, error) {
	return b.appendAll(ctx, all, settle, nil)
}

// appendAll calls admit, unless nil, in each transaction that is about to append. If admit fails, that
// transaction appends nothing.
func (b *Inbox) appendAll(ctx context.Context, all []Message, settle time.Duration, admit func(*Tx) error) ([]Receipt, error) {
	drafts, err := b.draft(all)
	if err != nil {
		return nil, err
	}
	receipts, names := make([]Receipt, 0, len(drafts)), nameSearch{ids: map[string]bool{}}
	for _, d := range drafts {
		if d.named {
			names.ids[d.ID] = true
		}
	}
	if len(names.ids) > 0 {
		if err := names.searchUnlocked(b); err != nil {
			return nil, err
		}
	}
	for still := (Mark{}); len(receipts) < len(drafts); {
		// A clone, since each try marks the drafts whose id is taken.
		appended, err := b.appendDrafts(ctx, slices.Clone(drafts[len(receipts):]), still, &names, admit)
		receipts = append(receipts, appended...)
		if errors.Is(err, ErrTorn) {
			still, err = b.AwaitStill(ctx, settle)
		}
		if err != nil {
			return receipts, err
		}
	}
	return receipts, nil
}

// draft is a message that is ready to be appended.
type draft struct {
	Receipt
	text  string
	line  []byte
	named bool // its sender gave the id
}

func (b *Inbox) draft(all []Message) ([]draft, error) {
	drafts := make([]draft, len(all))
	now := b.utcNow()
	for i, m := range all {
		d := &drafts[i]
		d.named = m.ID != ""
		var err error
		if !d.named {
			if m.ID, err = machine.RandomName(); err != nil {
				return nil, fmt.Errorf("append: %w", err)
			}
		}
		if !m.NotBefore.After(now) {
			m.NotBefore = time.Time{}
		}
		if d.line, err = m.encode(now); err != nil {
			if len(all) > 1 {
				err = fmt.Errorf("entry %d: %w", i+1, err)
			}
			return nil, fmt.Errorf("append: %w", err)
		}
		d.Receipt, d.text = Receipt{ID: m.ID, EntryID: entryID(d.line)}, m.Text
		if at := m.NotBefore; !at.IsZero() {
			d.NotBefore = &at
		}
	}
	return drafts, nil
}

// appendDrafts appends drafts until holdLock is over, and returns their receipts.
func (b *Inbox) appendDrafts(ctx context.Context, drafts []draft, still Mark, names *nameSearch, admit func(*Tx) error) (receipts []Receipt, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, t.Close())
		if len(receipts) > 0 {
			receipts[0].Warnings = t.Warnings()
		}
	}()
	results, err := journal.EndOf(b.fileOf(journal.Results))
	if err != nil {
		return nil, err
	}
	deadLetters, err := journal.EndOf(b.fileOf(journal.DeadLetters))
	if err != nil {
		return nil, err
	}
	if err := t.leaveOutKnown(drafts, names); err != nil {
		return nil, err
	}
	if torn, err := t.tornTail(); err != nil {
		return nil, err
	} else if torn && still != t.queueMark() && slices.ContainsFunc(drafts, func(d draft) bool { return d.Found == "" && d.NotBefore == nil }) {
		return nil, ErrTorn
	}
	if admit != nil && slices.ContainsFunc(drafts, func(d draft) bool { return d.Found == "" }) {
		if err := admit(t); err != nil {
			return nil, err
		}
	}
	t.noticeGone()
	for began, torn := time.Now(), false; len(drafts) > 0 && !torn && (len(receipts) == 0 || time.Since(began) < holdLock); {
		n, err := t.appendPart(drafts)
		if err != nil {
			return receipts, fmt.Errorf("append to inbox %s: %w", b.path, err)
		}
		for _, d := range drafts[:n] {
			d.results, d.deadLetters = results, deadLetters
			receipts = append(receipts, d.Receipt)
		}
		drafts = drafts[n:]
		if torn, err = t.tornTail(); err != nil { // somebody else is writing a line
			return receipts, err
		}
	}
	return receipts, nil
}

// leaveOutKnown marks the drafts whose id, given by the sender, is taken.
func (t *Tx) leaveOutKnown(drafts []draft, names *nameSearch) error {
	if len(names.ids) == 0 {
		return nil
	}
	known, err := names.find(t, names.ids)
	if err != nil {
		return err
	}
	for i := range drafts {
		d := &drafts[i]
		if !d.named {
			continue
		}
		p, there := known[d.ID]
		if there && t.hasOtherText(p, d.text) {
			return fmt.Errorf("the id %q is that of %w, which %s and whose text begins %q: it was not sent: choose another id, or send that text", d.ID, ErrOtherText, p.stands(), words.Brief(p.text))
		}
		if !there || p.where == setAside { // a second draft of this id finds this draft
			p = place{where: FoundQueued, entryID: d.EntryID, notBefore: d.NotBefore, text: d.text, ahead: true}
			if d.NotBefore != nil {
				p.where = FoundScheduled
			}
			known[d.ID] = p
			continue
		}
		d.Receipt = Receipt{ID: d.ID, EntryID: p.entryID, Found: p.where, Start: p.start, End: p.end, NotBefore: p.notBefore}
	}
	return nil
}

// appendPart commits the first drafts, up to the size of a part.
func (t *Tx) appendPart(drafts []draft) (n int, err error) {
	size := 0
	for ; n < len(drafts) && n < partLines && size < partBytes; n++ {
		d := &drafts[n]
		switch {
		case d.Found != "":
			continue
		case d.NotBefore != nil:
			t.addJSON(journal.Scheduled, d.line)
			t.addEvent(Event{Event: EventScheduled, EntryID: d.EntryID, ID: d.ID, Until: d.NotBefore})
		default:
			t.addJSON(journal.Queue, d.line)
		}
		d.Appended = true
		size += len(d.line)
	}
	if err := t.Commit(); err != nil {
		return 0, err
	}
	queued := t.store.Appended()
	for i := range drafts[:n] {
		if d := &drafts[i]; d.Appended && d.NotBefore == nil && len(queued) > 0 {
			d.Start, d.End = queued[0].Start, queued[0].End
			queued = queued[1:]
		}
	}
	return n, nil
}

// SelfEnqueued counts the entries that agents sent into this inbox while they worked on an entry.
type SelfEnqueued struct {
	Count int64     `json:"count"`
	Last  time.Time `json:"last"`
	Left  float64   `json:"left"` // how many more the rate admitted then
}

// RateError means that agents have sent as many entries as the rate admits.
type RateError struct {
	PerHour int
	After   time.Duration // until the next entry is admitted
}

func (e *RateError) Error() string {
	return fmt.Sprintf("agents may send %d entries an hour into this inbox, and have: the next one may come in %v", e.PerHour, e.After.Round(time.Second))
}

// AppendSelf is [Inbox.Append] for an entry that an agent sends while it works on one. The same commit counts
// it. Beyond perHour entries an hour (0 for no limit) nothing is appended and the error is a [RateError].
func (b *Inbox) AppendSelf(ctx context.Context, m Message, settle time.Duration, perHour int) (Receipt, error) {
	return b.appendOne(ctx, m, settle, func(t *Tx) error { return t.countSelf(perHour) })
}

// countSelf counts an entry against the rate. The entries still admitted grow back over an hour.
func (t *Tx) countSelf(perHour int) error {
	now, most := t.box.utcNow(), float64(perHour)
	s := kept[SelfEnqueued](t.st.SelfEnqueued)
	if perHour > 0 {
		if s.Count == 0 || s.Left > most {
			s.Left = most
		}
		// Abs: if the clock was set back, the time until it has caught up must not delay the next entry.
		s.Left = min(most, s.Left+most*now.Sub(s.Last).Abs().Hours())
		if s.Left < 1 {
			return &RateError{PerHour: perHour, After: time.Duration((1 - s.Left) / most * float64(time.Hour))}
		}
		s.Left--
	}
	s.Count, s.Last = s.Count+1, now
	t.st.SelfEnqueued = t.encoded(s)
	return nil
}

// SelfEnqueued returns the count of entries that agents sent into this inbox.
func (v *View) SelfEnqueued() SelfEnqueued { return kept[SelfEnqueued](v.tx.st.SelfEnqueued) }
