package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"
)

// When a backup of the inbox or of its state comes back, settled lines are read again. Only then is each line looked
// up in the results and dead letters. In ordinary delivery no line is, because an identical line may be new work.

// reread means that lines may be read again that were settled before. The record keeps it until the cursor has passed
// them, and for status until rereadKept is over.
type reread struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
	// Lines that start in [From,Until) are looked up. Size is the length that the file had when the reread was noted;
	// what lies before Size was not appended since.
	From  int64 `json:"from"`
	Until int64 `json:"until"`
	Size  int64 `json:"size"`
	// Since, unless 0, is the first delivery that an older state does not know, or whose outcome it does not know.
	Since  int64 `json:"since,omitempty"`
	Passed int   `json:"passed,omitempty"` // entries that were passed without a turn
	// ByHand means that somebody changed the state by hand, which by itself needs no lookup.
	ByHand bool `json:"by_hand,omitempty"`
}

// Mended records in an event what was mended in the state. If again is set, waiting lines whose outcome is known are
// passed, as after a restore.
func (t *Tx) Mended(what string, again bool) error {
	if again {
		t.readAgain(what, 0, 0)
	}
	t.addEvent(Event{Event: EventMended, Reason: what})
	return t.failed
}

const rereadKept = 24 * time.Hour

// rereading returns the record's reread, nil if there is none or if another release wrote one that cannot be decoded.
func (t *Tx) rereading() *reread {
	r, _ := recorded[reread](t.st.Reread, "")
	return r
}

func (t *Tx) setReread(r *reread) { t.st.Reread, _ = flat.JSON(r) } // reread always encodes

// readAgain has the lines from the cursor on looked up, as far as the inbox reached when it was whole.
func (t *Tx) readAgain(why string, since, until int64) {
	r := &reread{At: t.box.utcNow(), Why: why, From: t.st.Cursor, Since: since}
	if t.file != nil {
		r.Size = t.queueSize()
	}
	if was := t.rereading(); was != nil {
		until = max(until, was.Until)
	}
	r.Until, t.dirty, t.looked, t.justFound = max(until, r.Size), true, nil, true
	t.setReread(r)
}

// noteByHand records, for status and in an event, what somebody did to the state.
func (t *Tx) noteByHand(e Event, why string) {
	r := t.rereading()
	if r == nil || r.From >= r.Until {
		r = new(reread)
	}
	r.At, r.Why, r.ByHand = t.box.utcNow(), why, true
	t.setReread(r)
	e.Reason = why
	t.addEvent(e)
}

// endReread drops the reread from the next record once nobody needs it. Lines that this commit appends are
// new, and nothing restored can come behind them.
func (t *Tx) endReread(next *journal.Record) {
	r := t.rereading()
	if r == nil {
		return
	}
	for _, l := range next.Appends {
		if l.Kind == journal.Queue {
			r.Until = min(r.Until, l.At)
		}
	}
	t.setReread(r)
	if next.Reread = t.st.Reread; max(next.Cursor, r.From) >= r.Until && !r.isNews(t.box.utcNow(), next.Cursor) {
		next.Reread = nil
	}
}

// isNews reports whether a person should know of the reread.
func (r *reread) isNews(now time.Time, cursor int64) bool {
	return cursor < min(r.Size, r.Until) || now.Sub(r.At) <= rereadKept && (r.Passed > 0 || r.Since > 0 || r.ByHand)
}

// sentence returns the text for a person. again is the number of entries that look answered but get a turn.
func (r *reread) sentence(again int) string {
	s := fmt.Sprintf("%s (found %s)", r.Why, words.Stamp(r.At))
	if r.ByHand {
		return s
	}
	s += ": entries whose outcome is known are passed"
	if r.Passed > 0 {
		s += fmt.Sprintf(" (%d so far)", r.Passed)
	}
	s += ", and the others are delivered"
	if again > 0 {
		s += fmt.Sprintf("; done again: %s like one that was answered, without the id and sent_at that would tell it from new work", words.Count(again, "entry", "entries"))
	}
	return s
}

// lookSpan bounds how many lines are looked up at once.
const lookSpan = 1 << 16

// lookup holds the outcomes of the entries in a part of the queue file.
type lookup struct {
	from, to int64
	passed   map[int64]string // why a line needs no turn, by its start
	again    int              // the number of lines that look answered, but may be new work
}

// settledBefore returns why the line at start needs no turn, "" if it needs one.
func (t *Tx) settledBefore(start int64) (why string, err error) {
	if len(t.st.Reread) == 0 || !t.here {
		return "", nil
	}
	r := t.rereading()
	if r == nil || start < r.From || start >= r.Until {
		return "", nil
	}
	if t.looked == nil || start < t.looked.from || start >= t.looked.to {
		if t.looked, err = t.lookUp(r, start); err != nil {
			return "", fmt.Errorf("find out which entries of %s were settled before: %w", t.box.path, err)
		}
	}
	return t.looked.passed[start], nil
}

// skips reports whether a waiting line will be passed without delivery.
func (t *Tx) skips(start int64) bool {
	if t.canceledAt(start) {
		return true
	}
	why, err := t.settledBefore(start)
	return err == nil && why != ""
}

// candidate is a line that may have been settled before.
type candidate struct {
	start    int64
	unique   bool  // no other entry has the same bytes
	answered int64 // the highest FirstSeq of its results, -1 for none
	alike    bool
	letter   string // the name of its last dead letter
	dead     int64  // FirstSeq of that letter
	requeued bool
	again    bool // the same bytes follow further on
}

// candidates holds the lines to look up, by entry id.
type candidates map[string][]*candidate

func (all candidates) add(line []byte, start int64, looked bool) {
	id := entryID(line)
	for _, c := range all[id] {
		c.again = true
	}
	if !looked {
		return
	}
	unique := false // `send` writes an id and the time into each line
	if bytes.Contains(line, []byte(sentAtMember)) {
		e := decodeEntry(line)
		unique = e.ID != "" && !e.SentAt().IsZero()
	}
	all[id] = append(all[id], &candidate{start: start, unique: unique, answered: -1})
}

// proves reports whether an outcome with the line's bytes belongs to that very entry. For a line behind Size
// the offset must match too, because a restore may still be under way. For a line that others may repeat, an
// older state still proves it by offset and FirstSeq.
func (r *reread) proves(c *candidate, l Letter) bool {
	there := l.StartOffset == c.start
	return c.unique && (there || c.start < r.Size) || r.Since > 0 && there && c.start < r.Size && l.FirstSeq >= r.Since
}

const (
	settledAnswered = "it was answered before"
	settledDead     = "it is a dead letter"
)

// settled returns why the line needs no turn, "" if it needs one. The last outcome counts.
func (c *candidate) settled() string {
	switch {
	case c.requeued && c.dead > c.answered:
		if c.again {
			return "it was requeued, and waits further on"
		}
	case c.answered >= 0:
		return settledAnswered
	case c.letter != "" && !c.requeued:
		return settledDead
	}
	return ""
}

// lookUp looks up the lines of a part of the queue file in all outcomes.
func (t *Tx) lookUp(r *reread, from int64) (*lookup, error) {
	all, n := candidates{}, 0
	l := &lookup{from: from, to: from, passed: map[int64]string{}}
	err := lines.Each(io.NewSectionReader(t.file, from, t.queueSize()-from), from, func(start, end int64, line []byte, _ bool) bool {
		if n++; start < r.Until && n <= lookSpan {
			l.to = end
		}
		if len(line) <= MaxLine && !blank(line) {
			all.add(line, start, l.to == end)
		}
		return true
	})
	if err == nil {
		err = t.outcomes(r, all)
	}
	err = errors.Join(err, t.box.EachScheduled(func(s Scheduled) bool {
		for _, c := range all[s.EntryID] {
			if c.unique && s.putOff != nil {
				l.passed[c.start] = "it was put off, and waits for its time"
			}
		}
		return true
	}))
	if err != nil {
		return nil, err
	}
	twice := slices.ContainsFunc(t.unsettled(), func(d *Delivery) bool { return len(all[d.EntryID]) > 0 })
	for _, same := range all {
		twice = twice || len(same) > 1
		for _, c := range same {
			if why := c.settled(); why != "" {
				l.passed[c.start] = why
			} else if c.alike {
				l.again++
			}
		}
	}
	// These lines need not be looked up again, unless this search began behind others that must be.
	if len(l.passed)+l.again == 0 && !twice && from <= max(r.From, t.settledEnd()) {
		r.From = l.to
		t.setReread(r)
	}
	return l, nil
}

// outcomes adds the outcomes of the candidates, including those of this transaction.
func (t *Tx) outcomes(r *reread, all candidates) error {
	if len(all) == 0 {
		return nil
	}
	each := func(k journal.Kind, note func(c *candidate, l Letter, mark bool)) error {
		return t.eachLine(k, 0, func(line []byte) {
			if len(all[idIn(line)]) == 0 {
				return
			}
			if l, mark, ok := ParseLetter(line); ok {
				for _, c := range all[l.EntryID] {
					note(c, l, mark)
				}
			}
		})
	}
	err := each(journal.Results, func(c *candidate, l Letter, _ bool) {
		if r.proves(c, l) {
			c.answered = max(c.answered, l.FirstSeq)
		} else if !c.unique && c.start < r.Size {
			c.alike = true
		}
	})
	return errors.Join(err, each(journal.DeadLetters, func(c *candidate, l Letter, mark bool) {
		if mark {
			c.requeued = c.requeued || l.RequeuedAt != nil && c.letter == l.Letter
		} else if r.proves(c, l) {
			c.letter, c.dead, c.requeued = l.Letter, l.FirstSeq, false
		}
	}))
}

// maxSeq is more than any journal reaches. Commit numbers continue from the highest one in a result, so
// larger ones are ignored.
const maxSeq = 1 << 53

// idIn returns the entry_id of a line that heartbeat wrote, wherever the member stands.
func idIn(line []byte) string {
	const begins, long = `{"entry_id":"`, 64
	if rest, ok := bytes.CutPrefix(line, []byte(begins)); ok && len(rest) > long && rest[long] == '"' {
		return string(rest[:long])
	}
	return flat.Value(line).Get("entry_id").Shown()
}

// eachLine visits the lines of an append-only file from an offset on, and then those that this transaction adds.
func (t *Tx) eachLine(k journal.Kind, from int64, visit func(line []byte)) error {
	err := t.box.readLines(k, from, func(_, _ int64, l []byte, _ bool) bool {
		visit(l)
		return true
	})
	for _, l := range t.pending {
		if l.Kind == k {
			visit(l.JSON)
		}
	}
	return err
}

// settledAs returns why an entry with that line, which may be in no inbox, needs no turn, "" if it needs one.
func (t *Tx) settledAs(r *reread, line []byte) (why string, err error) {
	all := candidates{}
	all.add(line, -1, true)
	err = t.outcomes(r, all)
	return all[entryID(line)][0].settled(), err
}
