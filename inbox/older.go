package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// detectOlder recognises a state that is older than the results and dead letters: these files are longer than in the
// state, and name deliveries with higher numbers. The entry in flight, and lines behind the cursor, may then have been
// settled.
func (t *Tx) detectOlder() error {
	st := &t.st
	if st.Seq > 0 && !t.here || t.settling {
		return nil
	}
	since, last, until := st.Seq+1, st.Seq, st.SeenSize
	for _, k := range []journal.Kind{journal.Results, journal.DeadLetters} {
		err := t.eachUnknown(k, func(l Letter) {
			for _, d := range t.unsettled() {
				if d.EntryID == l.EntryID && (l.FirstSeq == d.First() || l.FirstSeq == t.named) {
					since = min(since, l.FirstSeq)
				}
			}
			if last = max(last, l.FirstSeq); l.FirstSeq > st.Seq {
				until = max(until, l.EndOffset)
			}
		})
		switch {
		case errors.Is(err, ErrCorrupt):
			t.warn("whether the state in %s is older than %s is not known: %v", t.box.dir, k.Name(), err)
		case err != nil: // a commit would mark the whole file as known
			return fmt.Errorf("find out whether the state in %s is older than %s: %w: nothing is delivered until that can be read", t.box.dir, k.Name(), err)
		}
	}
	if last == st.Seq && since > st.Seq {
		return nil
	}
	const older = "the state beside the inbox is older than the results or the dead letters, as after a restore"
	t.warn("%s: entries whose outcome is known are not delivered again", older)
	st.Seq, t.noticed = last, true
	t.readAgain(older, since, until)
	t.addEvent(Event{Event: EventOlder, Reason: older})
	for _, d := range t.unsettled() {
		settled := func() (why string, err error) { return t.settledBefore(d.StartOffset) }
		if d.Detached {
			settled = func() (why string, err error) { return t.settledAs(t.rereading(), d.exact()) }
		}
		why, err := settled()
		if err != nil {
			return err
		}
		if why != "" {
			if d == t.inFlight {
				t.stale = d
			}
			t.pass(d)
			t.notePassed(d.Entry(), why)
		}
	}
	return nil
}

// eachUnknown visits the lines of a file that the state does not know. It visits them only once, because the next
// commit records the file's length.
func (t *Tx) eachUnknown(k journal.Kind, visit func(l Letter)) error {
	end := &t.st.Ends[k]
	info, err := disk.StatName(t.box.fileOf(k))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !info.IsRegular { // opening it gives the error, also where its size is 0
		return journal.Reading(t.box.fileOf(k), func(*disk.File) error { return nil })
	}
	if err != nil || t.st.Seq == 0 || info.Size == end.At && t.named == 0 || info.Size < end.At && k == journal.DeadLetters {
		return nil // without outcomes there is nothing to compare
	}
	from := end.At
	if info.Size < from {
		end.Generation++ // rotated away since
	}
	if info.Size < from || t.named > 0 {
		from = 0
	}
	end.At = info.Size
	return t.eachLine(k, from, func(line []byte) {
		seq := flat.Value(line).Get("first_seq")
		if n, err := strconv.ParseInt(string(seq), 10, 64); err != nil || n <= 0 || n >= maxSeq || !t.mayBeNewer(line, n) {
			return // decoding every line would take long
		}
		if l, mark, ok := ParseLetter(line); ok && !mark && l.FirstSeq > 0 && l.FirstSeq < maxSeq {
			visit(l)
		}
	})
}

// mayBeNewer reports whether an outcome may be newer than the state: it belongs to a later delivery, or to an entry
// that is in flight or was given back.
func (t *Tx) mayBeNewer(line []byte, seq int64) bool {
	return seq > t.st.Seq || slices.ContainsFunc(t.unsettled(), func(d *Delivery) bool {
		return bytes.Contains(line, []byte(d.EntryID))
	})
}
