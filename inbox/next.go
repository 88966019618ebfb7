package inbox

import (
	"errors"
	"io"
	"strings"
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
	if d := t.redeliver; d != nil {
		e := d.Entry()
		if !e.expired(t.box.opts.Now()) {
			return e, nil
		}
		t.setAsideGivenBack(d, ReasonExpired)
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
		if e, passed, err := t.entryOn(l); err != nil || !passed {
			return e, err
		}
	}
}

// entryOn returns the entry on a line. passed means that there is none to deliver: the line was set aside, or is passed
// for another reason.
func (t *Tx) entryOn(l line) (e Entry, passed bool, err error) {
	died, err := t.tryLarge(l)
	if err != nil {
		return e, false, inReading(err)
	}
	long := l.isLong()
	if (died || long) && l.id == "" {
		l.id = entryID(l.raw)
	}
	if died {
		return e, true, t.setAsideWhole(l, ReasonDied)
	}
	if long {
		e, err = t.longEntry(l)
	} else {
		e = decodeEntry(l.raw)
		e.Start, e.End, e.terminated = l.start, l.end, l.terminated
		t.resume(&e)
	}
	switch {
	case err == io.EOF: // blank
		return e, true, nil
	case errors.Is(err, errUnwieldy):
		return e, true, t.setAsideWhole(l, ReasonTooLong)
	case err != nil:
		return e, false, err
	}
	if passed, err = t.passMoved(e); !passed && err == nil {
		passed, err = t.passSettled(e)
	}
	if passed || err != nil {
		return e, passed, err
	}
	reason := t.undeliverable(e, l.raw)
	if reason == "" {
		return e, false, nil
	}
	var failure *Failure
	if reason == ReasonWide {
		failure = t.failure(string(reason), wideMessage)
	}
	rawFile := ""
	if long {
		if rawFile, err = t.box.spill(t.file, l); err != nil {
			return e, false, err
		}
		e.raw = nil
	}
	t.setAsideUnread(e, reason, rawFile, failure)
	return e, true, nil
}

// undeliverable returns why the entry on a line can never be delivered, "" if it can.
func (t *Tx) undeliverable(e Entry, raw []byte) Reason {
	switch {
	case t.wide(raw):
		return ReasonWide
	case strings.TrimSpace(e.Text) == "":
		return ReasonEmpty
	case e.expired(t.box.opts.Now()):
		return ReasonExpired
	}
	return ""
}
