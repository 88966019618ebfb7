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
	"strconv"
	"strings"
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
	byHand     mending = iota // a person has to
	committing                // the next commit does it
	passing                   // likewise, and has lines passed whose outcome is known
	forgetting                // files are removed that nothing refers to
)

// mend says how what was found last is mended.
func (e *examination) mend(m mending) { e.found[len(e.found)-1].mend = m }

// Mended is the state of what [Repair] has mended.
const Mended = "mended"

// Fsck checks whether what is beside an inbox fits together: whether each entry is in one
// place. Checks that are not ok are findings. Where somebody commits meanwhile it looks once
// more, under the inbox's lock.
func Fsck(ctx context.Context, in Input, box *inbox.Inbox) []Check {
	e, moved := in.fsck(box)
	if !moved {
		return e.found
	}
	held, err := disk.AcquireLock(ctx, filepath.Join(box.Dir(), ".inbox-lock"), cli.VerbLockWait)
	if err == nil {
		e, _ = in.fsck(box)
		err = held.Release()
	}
	if err != nil {
		e.as("lock").unseen("see who holds it: "+quote("heartbeat", "status", "--inbox", e.inbox), err)
	}
	return e.found
}

// fsck looks once. moved says that somebody committed meanwhile.
func (in Input) fsck(box *inbox.Inbox) (e *examination, moved bool) {
	e = &examination{Input: in, inbox: box.Path(), box: box}
	e.look(ofFsck)
	v, err := box.View()
	if err != nil {
		e.as("entries").unseen("see the checks of the state", err)
		return e, false
	}
	defer v.Close() // it was only read
	told, err := v.Told()
	if err == nil {
		err = e.checkEntries(v, told)
	}
	if err != nil {
		e.as("entries").unseen("see the line about that file", err)
	}
	after, err := box.View()
	if err != nil {
		return e, true
	}
	now, err := after.Told()
	return e, errors.Join(err, after.Close()) != nil || now.Seq != told.Seq || v.Settling()
}

// places where an entry can be. A claim is the first 61 bits of an entry's id and a place, so
// that a million of them take 8 MB.
const (
	queued uint64 = iota
	inFlight
	scheduled
	answered
	setAside
	dealtWith // a mark: the dead letter was requeued or accepted
	told      // an event says what became of it
	settled   // its line is before the cursor
	places
)

// claims are kept by their first byte, so that no large piece of memory grows.
type claims [256][]uint64

func (c *claims) add(entryID string, place uint64) {
	if key, err := strconv.ParseUint(entryID[:min(16, len(entryID))], 16, 64); err == nil {
		of := &c[key>>56]
		*of = append(*of, key&^(places-1)|place)
	}
}

// addLine adds a line that no other entry has: `send` writes an id and the time into it.
func (c *claims) addLine(line []byte, place uint64) {
	if !bytes.Contains(line, []byte(`"sent_at"`)) {
		return
	}
	if id := gjson.GetBytes(line, "id").String(); id != "" && inbox.CheckID(id) == nil {
		c.add(lines.ID(line), place)
	}
}

// check is what one look at the entries gathers.
type check struct {
	*examination
	claims
	view *inbox.View
	say  inbox.Told
	// repair is the command for what a commit mends.
	repair string
	// waits are the ids of the entries that runs wait for.
	waits map[string]bool
}

// checkEntries holds what the files say of each entry against each other.
func (e *examination) checkEntries(v *inbox.View, say inbox.Told) error {
	c := &check{examination: e, view: v, say: say, repair: quote("heartbeat", "fsck", "--inbox", e.inbox, "--repair"), waits: map[string]bool{}}
	before := len(e.found)
	if v.Settling() {
		e.as("journal").warn(c.repair, "the last commit has not reached the files beside %s, as a kill leaves it: whoever works on it next finishes that", e.inbox)
		e.mend(committing)
	}
	for _, w := range v.Warnings() {
		e.as("state").warn(c.repair, "%s", w)
		e.mend(committing)
	}
	driven, _, _ := e.Driven(e.box) // the check of the runs tells of an error
	for _, d := range driven {
		for _, id := range d.Waits {
			c.waits[id] = true
		}
	}
	for _, look := range []func() error{c.queueFile, c.results, c.deadLetters, c.events, c.schedule} {
		if err := look(); err != nil {
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
	found, err := v.FindAll(slices.Collect(maps.Keys(c.waits)))
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
		for _, of := range c.claims {
			n += len(of)
		}
		e.as("entries").note(OK, "", words.Count(n, "line says", "lines say")+" where entries are: each entry is in one place")
	}
	return nil
}

// as says which check finds what comes.
func (e *examination) as(id string) *examination {
	e.id = id
	return e
}

// queueFile claims the lines of the inbox itself.
func (c *check) queueFile() (err error) {
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
			if len(line) <= longest && (place != queued || !c.view.Skips(start)) {
				c.addLine(line, place)
			}
			return true
		})
	}
	if c.say.Whole {
		err = visit(c.say.From, min(c.view.Cursor(), f.Info().Size), settled)
	}
	return errors.Join(err, visit(c.say.Waits, f.Info().Size, queued))
}

// outcome claims what became of an entry. Of a line without a name of its own others may have
// the same bytes, and a line that was set aside unread has no more.
func (c *check) outcome(m gjson.Result, place uint64) {
	if m.Get("id").String() == "" || !m.Get("metadata.sent_at").Exists() {
		place = told
	}
	c.add(m.Get("entry_id").String(), place)
}

func (c *check) results() error {
	beyond, path := 0, c.box.ResultsPath()
	err := c.each("results", path, func(start int64, _ []byte, m gjson.Result) bool {
		if start >= c.say.Results {
			beyond++
		}
		c.outcome(m, answered)
		if m.Get("accepted").Exists() { // the letter's mark does not name the entry
			c.add(m.Get("entry_id").String(), dealtWith)
		}
		return m.Get("entry_id").Exists()
	})
	if beyond > 0 && err == nil {
		c.warn("have it looked up which entries were answered: "+c.repair,
			"%s from byte %d of %s on: the last commit knows of none there, so the state beside them is an older one, or somebody else wrote them",
			words.Count(beyond, "result stands", "results stand"), c.say.Results, path)
		c.mend(passing)
	}
	return err
}

// deadLetters claims what was set aside. For a run, a dead letter is an outcome.
func (c *check) deadLetters() error {
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
				l, _, _ := inbox.ParseLetter(line) // its name is empty if it is none
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

func (c *check) events() error {
	return c.each("events", c.box.EventsPath(), func(_ int64, _ []byte, m gjson.Result) bool {
		switch inbox.EventKind(m.Get("event").String()) {
		case inbox.EventScheduled, inbox.EventRedelivered, inbox.EventSaid, inbox.EventProgress, inbox.EventContested, inbox.EventFailed:
		default:
			c.add(m.Get("entry_id").String(), told)
		}
		return m.Get("event").Exists()
	})
}

// overdue is how late a scheduled entry may be beside a session that waits.
const overdue = time.Minute

func (c *check) schedule() error {
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

// longest is how much of a line is looked at: its names come first. A longer line of the inbox
// is left out.
const longest = 1 << 20

// each visits the lines of a file that heartbeat appends to, and tells of those that are none.
func (c *check) each(id, path string, visit func(start int64, line []byte, m gjson.Result) bool) error {
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

// eachLine visits the lines of a file of ours, which may not exist, as far as they are looked at.
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

// mostNamed is how many entries are named of each kind of finding.
const mostNamed = 5

// outOfPlace finds entries that are in more than one place, or in none.
func (c *check) outOfPlace() {
	of := map[string][]string{} // names by what is wrong
	count := map[string]int{}
	for _, all := range c.claims {
		slices.Sort(all)
		for i := 0; i < len(all); {
			var n [places]int
			key := all[i] &^ (places - 1)
			for ; i < len(all) && all[i]&^(places-1) == key; i++ {
				n[all[i]&(places-1)]++
			}
			wrong := wrongPlaces(n)
			if wrong == "" {
				continue
			}
			if count[wrong]++; count[wrong] <= mostNamed {
				of[wrong] = append(of[wrong], fmt.Sprintf("%016x", key)[:12])
			}
		}
	}
	for _, wrong := range slices.Sorted(maps.Keys(of)) {
		names := strings.Join(of[wrong], ", ")
		if more := count[wrong] - mostNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		look, by := quote("heartbeat", "log", "--inbox", c.inbox, of[wrong][0]), byHand
		fix := look + " shows where, and `heartbeat dead-letter` and `heartbeat cancel` take one away"
		switch wrong {
		case nowhere:
			fix = look + " shows what is known; send it again if it is still wanted"
		case waitsToo:
			fix, by = c.repair+", and it is passed without a turn", passing
		}
		c.as("entries").fail(fix, "%s: %s", names, wrong)
		c.mend(by)
	}
}

const (
	nowhere  = "settled in the inbox, and neither a result, a dead letter nor an event says how"
	waitsToo = "it waits in the inbox, and was settled before: it would be done again"
)

// wrongPlaces says what is wrong with an entry that is so often in each place, "" for nothing.
func wrongPlaces(n [places]int) string {
	open := max(0, n[setAside]-n[dealtWith])
	live := n[queued] + n[inFlight] + n[scheduled]
	switch {
	case n[settled] > 0 && live+n[answered]+n[setAside]+n[dealtWith]+n[told] == 0:
		return nowhere
	case live == n[queued] && live > 0 && n[answered]+open > 0:
		return waitsToo
	case live > 1 || live == 1 && n[answered]+open > 0:
		return fmt.Sprintf("in more than one place: %s", where(n, open))
	case n[answered] > 1 || n[answered] == 1 && open > 0:
		return fmt.Sprintf("settled more than once: %s", where(n, open))
	}
	return ""
}

func where(n [places]int, open int) string {
	var all []string
	for _, p := range []struct {
		n    int
		name string
	}{{n[queued], "in the queue"}, {n[inFlight], "in flight or given back"}, {n[scheduled], "scheduled"}, {n[answered], "among the results"}, {open, "among the open dead letters"}} {
		if p.n > 1 {
			p.name = fmt.Sprintf("%d times %s", p.n, p.name)
		}
		if p.n > 0 {
			all = append(all, p.name)
		}
	}
	return strings.Join(all, ", ")
}

// Repair mends what can be mended without delivering anything and without taking away an
// answer, and records that in an event. It returns what it did, as [Mended], and what is found
// then.
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
