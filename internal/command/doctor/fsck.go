package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// mending is how [Repair] mends what a check found.
type mending int

const (
	byHand     mending = iota // only a person can
	committing                // the next commit does
	passing                   // the next commit does, and passes lines whose outcome is known
	forgetting                // by removing files that nothing refers to
)

func (e *examination) mend(m mending) { e.found[len(e.found)-1].mend = m }

// Mended is the state of a finding that [Repair] has mended.
const Mended = "mended"

// Fsck checks that the files beside an inbox agree, so that each entry is in exactly one place. A check that is not
// ok is a finding. If somebody commits while Fsck looks, it looks once more under the inbox's lock.
func Fsck(ctx context.Context, in Input, box *inbox.Inbox) []Check {
	e, moved := in.fsck(box)
	if !moved {
		return e.found
	}
	held, err := disk.AcquireLock(ctx, filepath.Join(box.Dir(), inbox.LockName), cli.VerbLockWait)
	if err == nil {
		e, _ = in.fsck(box)
		err = held.Release()
	}
	if err != nil {
		e.as("lock").unseen("see who holds it: "+quote("heartbeat", "status", "--inbox", e.inbox), err)
	}
	return e.found
}

// fsck looks once. moved is whether somebody committed meanwhile.
func (in Input) fsck(box *inbox.Inbox) (e *examination, moved bool) {
	e = &examination{Input: in, inbox: box.Path(), box: box}
	e.check(ofFsck)
	v, err := box.View()
	if err != nil {
		e.as("entries").unseen("see the checks of the state", err)
		return e, false
	}
	defer v.Close() // only read
	last, err := v.Told()
	if err == nil {
		err = e.checkEntries(v, last)
	}
	if err != nil {
		e.as("entries").unseen("see the line about that file", err)
	}
	after, err := box.View()
	if err != nil {
		return e, true
	}
	now, err := after.Told()
	return e, errors.Join(err, after.Close()) != nil || now.Seq != last.Seq || v.Settling()
}

// entryCheck collects the claims of one look at the entries.
type entryCheck struct {
	*examination
	claims
	view   *inbox.View
	last   inbox.Told      // what the last commit knows
	repair string          // the command that mends what a commit can
	waits  map[string]bool // the ids of the entries that runs wait for
}

// checkEntries compares what the files say about each entry. last is what the last commit knows.
func (e *examination) checkEntries(v *inbox.View, last inbox.Told) error {
	c := &entryCheck{examination: e, view: v, last: last, repair: quote("heartbeat", "fsck", "--inbox", e.inbox, "--repair"), waits: map[string]bool{}}
	before := len(e.found)
	if v.Settling() {
		e.as("journal").warn(c.repair, "the last commit has not reached the files beside %s, as a kill leaves it: whoever works on it next finishes that", e.inbox)
		e.mend(committing)
	}
	for _, w := range v.Warnings() {
		e.as("state").warn(c.repair, "%s", w)
		e.mend(committing)
	}
	driven, _, _ := e.Driven(e.box) // the check of the runs reports the error
	for _, d := range driven {
		for _, id := range d.Waits {
			c.waits[id] = true
		}
	}
	for _, claim := range []func() error{c.queueFile, c.results, c.deadLetters, c.events, c.schedule} {
		if err := claim(); err != nil {
			return err
		}
	}
	for _, d := range []*inbox.Delivery{v.InFlight(), v.Redeliver()} {
		if d != nil {
			if raw, err := d.RawLine.Bytes(); err == nil && bytes.Contains(raw, []byte(`"sent_at"`)) && d.ID() != "" {
				c.add(d.EntryID, inFlight)
			}
		}
	}
	c.outOfPlace()
	found, err := v.Find(slices.Collect(maps.Keys(c.waits))...)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(c.waits)) {
		if found[id] == "" {
			e.as("run").warn("let the run take a step: "+quote("heartbeat", "orchestrate", "--inbox", e.inbox, "--once"),
				"a run waits for the entry %s, which is nowhere in %s", id, filepath.Dir(e.inbox))
		}
	}
	if len(e.found) == before {
		n := 0
		for _, part := range c.claims {
			n += len(part)
		}
		e.as("entries").note(OK, "", words.Count(n, "line says", "lines say")+" where entries are: each entry is in one place")
	}
	return nil
}

// as names the check that makes the next findings.
func (e *examination) as(id string) *examination {
	e.id = id
	return e
}

// queueFile claims those lines of the inbox that belong to one entry only, since `send` wrote id and time into them.
func (c *entryCheck) queueFile() (err error) {
	f, err := disk.OpenForeign(c.inbox, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	visit := func(from, to int64, place uint64) error {
		from, err := f.SkipZeros(from, max(from, to))
		if err != nil || from >= to {
			return err
		}
		return lines.EachHead(longest, true, io.NewSectionReader(f, from, to-from), from, func(start, _ int64, line []byte, _ bool) bool {
			if len(line) > longest || place == queued && c.view.Skips(start) || !bytes.Contains(line, []byte(`"sent_at"`)) {
				return true
			}
			if id := gjson.GetBytes(line, "id").String(); id != "" && inbox.CheckID(id) == nil {
				c.add(lines.ID(line), place)
			}
			return true
		})
	}
	if c.last.Whole {
		err = visit(c.last.From, min(c.view.Cursor(), f.Info().Size), settled)
	}
	return errors.Join(err, visit(c.last.Waits, f.Info().Size, queued))
}

// outcome claims what became of an entry. A line without an id and a sending time may have a twin with the same
// bytes, and an unreadable line that was set aside keeps neither, so both count as told.
func (c *entryCheck) outcome(m gjson.Result, place uint64) {
	if m.Get("id").String() == "" || !m.Get("metadata.sent_at").Exists() {
		place = told
	}
	c.add(m.Get("entry_id").String(), place)
}

func (c *entryCheck) results() error {
	beyond, path := 0, c.box.ResultsPath()
	err := c.each("results", path, func(start int64, _ []byte, m gjson.Result) bool {
		if start >= c.last.Results {
			beyond++
		}
		c.outcome(m, answered)
		if m.Get("accepted").Exists() { // the letter's mark does not name the entry
			c.add(m.Get("entry_id").String(), dealtWith)
		}
		return m.Get("entry_id").Exists()
	})
	if beyond > 0 && err == nil {
		c.warn("look up which entries were answered: "+c.repair, "%s from byte %d of %s on: the last commit knows of none there, so the state beside them is an older one, or somebody else wrote them", words.Count(beyond, "result stands", "results stand"), c.last.Results, path)
		c.mend(passing)
	}
	return err
}

// deadLetters claims what was set aside. For a run, a dead letter is an outcome.
func (c *entryCheck) deadLetters() error {
	missing := map[string]string{} // files that open letters name, by letter
	err := c.each("dead-letters", c.box.DeadLetterPath(), func(_ int64, line []byte, m gjson.Result) bool {
		if m.Get("letter").Exists() && !m.Get("reason").Exists() {
			if m.Get("requeued_at").Exists() || m.Get("accepted_at").Exists() {
				if id := m.Get("entry_id").String(); id != "" {
					c.add(id, dealtWith)
				}
				delete(missing, m.Get("letter").String())
			}
			return true
		}
		c.outcome(m, setAside)
		delete(c.waits, m.Get("id").String())
		if name := m.Get("raw_file").String(); name != "" {
			if there, err := disk.Exists(c.beside(filepath.Base(name))); err == nil && !there {
				l, _, _ := inbox.ParseLetter(line) // a line that is no letter has an empty name
				missing[l.Letter] = name
			}
		}
		return m.Get("entry_id").Exists() || m.Get("raw_line").Exists()
	})
	for letter, name := range missing {
		c.warn("if nobody has the file, throw the letter away: "+quote("heartbeat", "dead-letter", "purge", "--inbox", c.inbox, letter),
			"the dead letter %s has its text in %s, which is not there: it cannot be requeued", letter, c.beside(name))
	}
	return err
}

func (c *entryCheck) events() error {
	return c.each("events", c.box.EventsPath(), func(_ int64, _ []byte, m gjson.Result) bool {
		switch inbox.EventKind(m.Get("event").String()) {
		case inbox.EventScheduled, inbox.EventRedelivered, inbox.EventSaid, inbox.EventProgress, inbox.EventContested, inbox.EventFailed:
		default:
			c.add(m.Get("entry_id").String(), told)
		}
		return m.Get("event").Exists()
	})
}

const overdue = time.Minute // how late a scheduled entry may be while a session waits

func (c *entryCheck) schedule() error {
	waiting, err := c.box.Scheduled()
	late, since := 0, time.Time{}
	for _, s := range waiting {
		c.add(s.EntryID, scheduled)
		if s.NotBefore.Before(c.Now.Add(-overdue)) {
			if late++; since.IsZero() || s.NotBefore.Before(since) {
				since = s.NotBefore
			}
		}
	}
	if late > 0 {
		c.as("schedule").warn(c.repair, "%s past its time, the first since %s: whoever works on %s next moves it there",
			words.Count(late, "scheduled entry is", "scheduled entries are"), words.Stamp(since), c.inbox)
		c.mend(committing)
	}
	return errors.Join(err, c.each("schedule", c.box.ScheduledPath(), func(_ int64, _ []byte, m gjson.Result) bool { return m.IsObject() }))
}

// longest is how many bytes of a line are read. The names come first. A longer line of the inbox is skipped.
const longest = 1 << 20

// each visits the lines of a file that heartbeat appends to, and reports the lines that are not heartbeat's.
func (c *entryCheck) each(id, path string, visit func(start int64, line []byte, m gjson.Result) bool) error {
	c.id = id
	foreign, first := 0, int64(0)
	err := eachLine(path, func(start int64, line []byte, whole bool) {
		text := bytes.TrimSpace(line)
		object := len(text) > 0 && whole && text[0] == '{' && (text[len(text)-1] == '}' || len(line) > longest)
		if len(text) == 0 || object && visit(start, line, gjson.ParseBytes(line)) {
			return
		}
		if foreign++; foreign == 1 {
			first = start
		}
	})
	if foreign > 0 {
		c.warn("look at it there, and take it out while no session runs", "%s in %s, the first at byte %d: not written whole, or not by heartbeat; nothing is taken from there",
			words.Count(foreign, "line is no line of its kind", "lines are no lines of their kind"), path, first)
	}
	return err
}

// eachLine visits the start of each line of a file that heartbeat writes, which may be missing.
func eachLine(path string, visit func(start int64, line []byte, whole bool)) error {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = lines.EachHead(longest, false, io.NewSectionReader(f, 0, f.Info().Size), 0, func(start, _ int64, line []byte, whole bool) bool {
		visit(start, line, whole)
		return true
	})
	return errors.Join(err, f.Close())
}

// Repair mends what can be mended without delivering anything or removing an answer, and records that in an event.
// It returns what it did, as [Mended], and then what is left to find.
func Repair(ctx context.Context, in Input, box *inbox.Inbox) ([]Check, error) {
	var mended []Check
	done, again, files := []string{}, false, false
	found := Fsck(ctx, in, box)
	for _, c := range found {
		if c.mend == byHand {
			continue
		}
		again, files = again || c.mend == passing, files || c.mend == forgetting
		done = append(done, c.Evidence)
		c.State, c.Fix = Mended, ""
		mended = append(mended, c)
	}
	if len(done) == 0 {
		return found, nil
	}
	tx, err := box.Begin(ctx)
	if err != nil {
		return nil, err
	}
	what := done[0]
	if len(done) > 1 {
		what += fmt.Sprintf(" (and %d more)", len(done)-1)
	}
	if files {
		err = recovery.ForgetSpills(box, tx.InFlight())
	}
	err = errors.Join(err, tx.Mended(what, again))
	if err == nil {
		err = tx.Commit()
	}
	err = errors.Join(err, tx.Close())
	if files && err == nil {
		err = box.ForgetLeftovers(ctx)
	}
	if err != nil {
		return nil, err
	}
	return append(mended, Fsck(ctx, in, box)...), nil
}
