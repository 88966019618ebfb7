package inbox

import (
	"errors"
	"io"
	"strings"
	"time"
)

// Next returns the entry to deliver: one that was given back, else the first line at the cursor that is not
// blank. The error matches [ErrEmpty] if none waits.
//
// A last line without its newline gives [ErrTorn], since somebody may still be writing it. It is delivered if
// still is a mark from [Inbox.AwaitStill] and the file has not changed since.
//
// Next makes a dead letter of each line that can never be delivered, such as one that is too long or empty,
// with this transaction's commit. One transaction sets aside only as much as can be committed quickly;
// [ErrMore] then asks for a commit and a new transaction.
func (t *Tx) Next(still Mark) (Entry, error) {
	t.offered = nil
	e, err := t.nextEntry(still)
	if err == nil {
		t.offered = new(offer)
		e.offer = t.offered
	}
	return e, err
}

func (t *Tx) nextEntry(still Mark) (Entry, error) {
	if t.inFlight != nil {
		return Entry{}, errors.New("next entry: one is still in flight: settle it first")
	}
	now := t.box.opts.Now()
	if d := t.redeliver; d != nil {
		e := d.Entry()
		if !e.expired(now) {
			return e, nil
		}
		if err := t.setAsideGivenBack(d, deadLetterOf(d, ReasonExpired, t.box.utcNow())); err != nil {
			return Entry{}, err
		}
	}
	if t.file == nil {
		return Entry{}, ErrEmpty
	}
	zeros := int64(0)
	for off := t.st.Cursor; ; {
		if t.asideLines >= asideLines || t.asideBytes >= asideBytes {
			return Entry{}, ErrMore
		}
		l, err := t.lineAt(off, longLine)
		if err == io.EOF {
			return Entry{}, ErrEmpty
		}
		if err != nil {
			return Entry{}, err
		}
		zeros += l.start - off
		if off, err = t.passCanceled(l.start); err != nil {
			return Entry{}, err
		} else if off > l.start {
			continue
		}
		off = l.end
		switch {
		case l.blank():
			continue
		case !l.terminated && still != t.queueMark():
			return Entry{}, ErrTorn
		}
		if zeros > 0 {
			t.warn("skipped %d zero bytes before offset %d of the inbox: no entry begins with a zero byte", zeros, l.start)
			zeros = 0
		}
		died, err := t.tryLarge(l)
		if err != nil {
			return Entry{}, inReading(err)
		}
		long := l.isLong()
		if (died || long) && l.id == "" {
			l.id = entryID(l.raw)
		}
		if died {
			if err := t.setAsideWhole(l, ReasonDied); err != nil {
				return Entry{}, err
			}
			continue
		}
		var e Entry
		if long {
			if e, err = t.longEntry(l); err == io.EOF {
				continue // blank
			}
		} else {
			e = decodeEntry(l.raw)
			e.Start, e.End, e.terminated = l.start, l.end, l.terminated
			t.resume(&e)
		}
		if errors.Is(err, errUnwieldy) {
			if err := t.setAsideWhole(l, ReasonTooLong); err != nil {
				return Entry{}, err
			}
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		if passed, err := t.passMoved(e); err != nil {
			return Entry{}, err
		} else if passed {
			continue
		}
		if passed, err := t.passSettled(e); err != nil {
			return Entry{}, err
		} else if passed {
			continue
		}
		reason, failure := t.undeliverable(e, l.raw, now)
		if reason == "" {
			return e, nil
		}
		rawFile := ""
		if long {
			if rawFile, err = t.box.spill(t.file, l); err != nil {
				return Entry{}, err
			}
			e.raw = nil
		}
		if err := t.setAsideUnread(e, reason, rawFile, failure); err != nil {
			return Entry{}, err
		}
	}
}

// undeliverable says why the entry on this line can never be delivered, "" if it can.
func (t *Tx) undeliverable(e Entry, raw []byte, now time.Time) (Reason, *Failure) {
	switch {
	case t.wide(raw):
		return ReasonWide, &Failure{Error: string(ReasonWide), Message: wideMeans, At: now.UTC()}
	case strings.TrimSpace(e.Text) == "":
		return ReasonEmpty, nil
	case e.expired(now):
		return ReasonExpired, nil
	}
	return "", nil
}
