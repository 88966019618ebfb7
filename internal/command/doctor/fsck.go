package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

func (c Check) mendedBy(m mending) Check {
	c.mend = m
	return c
}

// Mended is the state of what [Repair] has mended.
const Mended = "mended"

// shortLook is how long the inbox's lock may be held for a look, and mostLooks how often a
// longer one is tried without it.
const (
	shortLook = time.Second
	mostLooks = 4
)

// Fsck checks whether what is beside an inbox fits together: whether each entry is in one
// place. Checks that are not ok are findings. Where somebody commits meanwhile it looks once
// more, under the inbox's lock if that takes a moment or nothing else helps.
func Fsck(ctx context.Context, in Input, box *inbox.Inbox) []Check {
	e := &examination{Input: in, inbox: box.Path()}
	for look := 1; ; look++ {
		began := time.Now()
		all, moved := e.fsck(box)
		if !moved {
			return all
		}
		if look < mostLooks && time.Since(began) > shortLook {
			continue
		}
		held, err := disk.AcquireLock(ctx, filepath.Join(box.Dir(), lockFile), cli.VerbLockWait)
		if err != nil {
			return append(all, unseen("lock", "see who holds it: "+quote("heartbeat", "status", "--inbox", e.inbox), err))
		}
		all, _ = e.fsck(box)
		if err := held.Release(); err != nil {
			all = append(all, unseen("lock", "see the file", err))
		}
		return all
	}
}

// fsck looks once. moved says that somebody committed meanwhile.
func (e *examination) fsck(box *inbox.Inbox) (all []Check, moved bool) {
	for _, look := range []func(*examination) []Check{checkDirectory, checkFiles, checkLeftovers, checkState, checkRuns} {
		all = append(all, look(e)...)
	}
	v, err := box.View()
	if err != nil {
		return append(all, unseen("entries", "see the checks of the state", err)), false
	}
	defer v.Close() // it was only read
	told, err := v.Told()
	if err == nil {
		var more []Check
		more, err = e.checkEntries(box, v, told)
		all = append(all, more...)
	}
	if err != nil {
		all = append(all, unseen("entries", "see the line about that file", err))
	}
	after, err := box.View()
	if err != nil {
		return all, true
	}
	now, err := after.Told()
	return all, errors.Join(err, after.Close()) != nil || now.Seq != told.Seq || v.Settling()
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

// checkEntries holds what the files say of each entry against each other.
func (e *examination) checkEntries(box *inbox.Inbox, v *inbox.View, say inbox.Told) (all []Check, err error) {
	var c claims
	repair := quote("heartbeat", "fsck", "--inbox", e.inbox, "--repair")
	if v.Settling() {
		all = append(all, warn("journal", repair, "the last commit has not reached the files beside %s, as a kill leaves it: whoever works on it next finishes that", e.inbox).mendedBy(committing))
	}
	for _, w := range v.Warnings() {
		all = append(all, warn("state", repair, "%s", w).mendedBy(committing))
	}
	ids := map[string]bool{} // of entries that runs wait for
	if e.Runs != nil {
		for _, r := range e.Runs(e.inbox) {
			for _, id := range r.Waits {
				ids[id] = true
			}
		}
	}
	for _, look := range []func() ([]Check, error){
		func() ([]Check, error) { return e.queueFile(v, say, &c) },
		func() ([]Check, error) { return e.outcomes(box, say, &c, ids) },
		func() ([]Check, error) { return e.schedule(box, &c, repair) },
	} {
		more, err := look()
		if all = append(all, more...); err != nil {
			return all, err
		}
	}
	for _, d := range []*inbox.Delivery{v.InFlight(), v.Redeliver()} {
		if d != nil {
			if raw, err := d.RawLine.Bytes(); err == nil && bytes.Contains(raw, []byte(`"sent_at"`)) && d.ID() != "" {
				c.add(d.EntryID, inFlight)
			}
		}
	}
	all = append(all, e.outOfPlace(&c, repair)...)
	if len(ids) > 0 {
		found, err := v.FindAll(sorted(ids))
		if err != nil {
			return all, err
		}
		for _, id := range sorted(ids) {
			if found[id] == "" {
				all = append(all, warn("run", "let the run take a step: "+quote("heartbeat", "orchestrate", "--inbox", e.inbox, "--once"),
					"a run waits for the entry %s, which is nowhere in %s", id, filepath.Dir(e.inbox)))
			}
		}
	}
	if len(Amiss(all)) == 0 {
		n := 0
		for _, of := range c {
			n += len(of)
		}
		all = append(all, ok("entries", "%s where entries are: each entry is in one place", words.Count(n, "line says", "lines say")))
	}
	return all, nil
}

func sorted(ids map[string]bool) (all []string) {
	for id := range ids {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// queueFile claims the lines of the inbox itself.
func (e *examination) queueFile(v *inbox.View, say inbox.Told, c *claims) (_ []Check, err error) {
	f, err := disk.OpenForeign(e.inbox, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	each := func(from, to int64, visit func(start int64, line []byte)) error {
		from, err := f.SkipZeros(from, max(from, to))
		if err != nil || from >= to {
			return err
		}
		return lines.EachHead(longest, true, io.NewSectionReader(f, from, to-from), from, func(start, _ int64, line []byte, _ bool) bool {
			if len(line) <= longest {
				visit(start, line)
			}
			return true
		})
	}
	if say.Whole {
		err = each(say.From, min(v.Cursor(), f.Info().Size), func(_ int64, line []byte) { c.addLine(line, settled) })
	}
	return nil, errors.Join(err, each(say.Waits, f.Info().Size, func(start int64, line []byte) {
		if !v.Skips(start) {
			c.addLine(line, queued)
		}
	}))
}

// outcomes claims what became of entries, and forgets the ids that are dead letters.
func (e *examination) outcomes(box *inbox.Inbox, say inbox.Told, c *claims, ids map[string]bool) (all []Check, err error) {
	add := func(m gjson.Result, place uint64) {
		if m.Get("id").String() == "" || !m.Get("metadata.sent_at").Exists() {
			place = told // others may have the same bytes, and a line that was set aside unread has no more
		}
		c.add(m.Get("entry_id").String(), place)
	}
	beyond, missing := 0, map[string]string{} // files that open letters name, by letter
	more, err := e.each("results", box.ResultsPath(), func(start int64, _ []byte, m gjson.Result) bool {
		if start >= say.Results {
			beyond++
		}
		add(m, answered)
		if m.Get("accepted").Exists() { // the letter's mark does not name the entry
			c.add(m.Get("entry_id").String(), dealtWith)
		}
		return m.Get("entry_id").Exists()
	})
	all = append(all, more...)
	if beyond > 0 && err == nil {
		all = append(all, warn("results", "have it looked up which entries were answered: "+quote("heartbeat", "fsck", "--inbox", e.inbox, "--repair"),
			"%s from byte %d of %s on: the last commit knows of none there, so the state beside them is an older one, or somebody else wrote them",
			words.Count(beyond, "result stands", "results stand"), say.Results, box.ResultsPath()).mendedBy(passing))
	}
	if err == nil {
		more, err = e.each("dead-letters", box.DeadLetterPath(), func(_ int64, line []byte, m gjson.Result) bool {
			if m.Get("letter").Exists() && !m.Get("reason").Exists() {
				if m.Get("requeued_at").Exists() || m.Get("accepted_at").Exists() {
					if id := m.Get("entry_id").String(); id != "" {
						c.add(id, dealtWith)
					}
					delete(missing, m.Get("letter").String())
				}
				return true
			}
			add(m, setAside)
			delete(ids, m.Get("id").String())
			if name := m.Get("raw_file").String(); name != "" {
				if there, err := disk.Exists(e.beside(filepath.Base(name))); err == nil && !there {
					l, _, _ := inbox.ParseLetter(line) // its name is empty if it is none
					missing[l.Letter] = name
				}
			}
			return m.Get("entry_id").Exists() || m.Get("raw_line").Exists()
		})
		all = append(all, more...)
	}
	for letter, name := range missing {
		all = append(all, warn("dead-letters", "if nobody has the file, throw the letter away: "+quote("heartbeat", "dead-letter", "purge", "--inbox", e.inbox, letter),
			"the dead letter %s has its text in %s, which is not there: it cannot be requeued", letter, e.beside(name)))
	}
	if err == nil {
		more, err = e.each("events", box.EventsPath(), func(_ int64, _ []byte, m gjson.Result) bool {
			switch inbox.EventKind(m.Get("event").String()) {
			case inbox.EventScheduled, inbox.EventRedelivered, inbox.EventSaid, inbox.EventProgress, inbox.EventContested, inbox.EventFailed:
			default:
				c.add(m.Get("entry_id").String(), told)
			}
			return m.Get("event").Exists()
		})
		all = append(all, more...)
	}
	return all, err
}

// longest is how much of a line is looked at: its names come first. A longer line of the inbox
// is left out.
const longest = 1 << 20

// each visits the lines of a file that heartbeat appends to, and tells of lines that are none.
func (e *examination) each(check, path string, visit func(start int64, line []byte, m gjson.Result) bool) (all []Check, err error) {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	foreign, first := 0, int64(0)
	err = lines.EachHead(longest, false, io.NewSectionReader(f, 0, f.Info().Size), 0, func(start, _ int64, line []byte, whole bool) bool {
		text := bytes.TrimSpace(line)
		if len(text) == 0 || whole && text[0] == '{' && (text[len(text)-1] == '}' || len(line) > longest) && visit(start, line, gjson.ParseBytes(line)) {
			return true
		}
		if foreign++; foreign == 1 {
			first = start
		}
		return true
	})
	if foreign > 0 {
		all = append(all, warn(check, "look at it there, and take it out while no session runs", "%s in %s, the first at byte %d: not written whole, or not by heartbeat; nothing is taken from there",
			words.Count(foreign, "line is no line of its kind", "lines are no lines of their kind"), path, first))
	}
	return all, err
}

// overdue is how late a scheduled entry may be beside a session that waits.
const overdue = time.Minute

func (e *examination) schedule(box *inbox.Inbox, c *claims, repair string) (all []Check, err error) {
	waiting, err := box.Scheduled()
	late, since := 0, time.Time{}
	for _, s := range waiting {
		c.add(s.EntryID, scheduled)
		if s.NotBefore.Before(e.Now.Add(-overdue)) {
			if late++; since.IsZero() || s.NotBefore.Before(since) {
				since = s.NotBefore
			}
		}
	}
	if late > 0 {
		all = append(all, warn("schedule", repair, "%s past its time, the first since %s: whoever works on %s next moves it there",
			words.Count(late, "scheduled entry is", "scheduled entries are"), words.Stamp(since), e.inbox).mendedBy(committing))
	}
	more, err2 := e.each("schedule", box.ScheduledPath(), func(_ int64, _ []byte, m gjson.Result) bool { return m.IsObject() })
	return append(all, more...), errors.Join(err, err2)
}

// mostNamed is how many entries are named of each kind of finding.
const mostNamed = 5

// outOfPlace finds entries that are in more than one place, or in none.
func (e *examination) outOfPlace(all *claims, repair string) (found []Check) {
	of := map[string][]string{} // names by what is wrong
	count := map[string]int{}
	var order []string
	for _, c := range all {
		slices.Sort(c)
		for i := 0; i < len(c); {
			var n [places]int
			key := c[i] &^ (places - 1)
			for ; i < len(c) && c[i]&^(places-1) == key; i++ {
				n[c[i]&(places-1)]++
			}
			wrong := wrongPlaces(n)
			if wrong == "" {
				continue
			}
			if count[wrong]++; count[wrong] == 1 {
				order = append(order, wrong)
			}
			if len(of[wrong]) < mostNamed {
				of[wrong] = append(of[wrong], fmt.Sprintf("%016x", key)[:12])
			}
		}
	}
	for _, wrong := range order {
		names := strings.Join(of[wrong], ", ")
		if more := count[wrong] - mostNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		look := quote("heartbeat", "log", "--inbox", e.inbox, of[wrong][0])
		switch wrong {
		case nowhere:
			found = append(found, fail("entries", look+" shows what is known; send it again if it is still wanted", "%s: %s", names, wrong))
		case waitsToo:
			found = append(found, fail("entries", repair+", and it is passed without a turn", "%s: %s", names, wrong).mendedBy(passing))
		default:
			found = append(found, fail("entries", look+" shows where, and `heartbeat dead-letter` and `heartbeat cancel` take one away", "%s: %s", names, wrong))
		}
	}
	return found
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
