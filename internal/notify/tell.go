// Package notify runs a person's command when an inbox needs attention: for a dead letter, a pause, a question, a
// limit, sessions that keep failing, or an inbox in which nothing moves.
//
// Occasions are derived from what is on disk, not from what a process happened to see. [Tell] compares the inbox
// with what was told before, tells the rest, and then records it. After a kill between the two an occasion is told
// again, and none is lost. `.notified.json` beside the inbox is the record, under the lock `.notify-lock`.
//
// The command line comes from a flag and never from a file beside the inbox, because an agent's tools may be able
// to write such a file.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// Options are how to tell, and what.
type Options struct {
	Command string        // for /bin/sh, from a flag
	Stall   time.Duration // how long nothing may move, 0 for any time
	Drained bool          // also tell when nothing waits any more
	// Linger stays, for at most [Patience], until everything is told, including what waits because the command
	// failed or too many messages went out.
	Linger bool
	// TimeLimit is how long the command may take, 0 for [TimeLimit].
	TimeLimit time.Duration
	Now       func() time.Time `json:"-"` // nil for time.Now
}

const (
	// maxTold is how many messages of a kind go out one by one within toldSpan. One summary stands for the rest of
	// that kind. Kinds do not wait for each other.
	maxTold  = 10
	toldSpan = 10 * time.Minute
	// Patience is how long a process stays for occasions that have to wait.
	Patience = 15 * time.Minute
	maxTries = 6 // how often an occasion is tried while the command fails
	// firstPause follows the first failure. Each further failure multiplies it by five.
	firstPause, lastPause = 10 * time.Second, time.Hour
	notedAgain            = 10 * time.Minute // the least time between two log lines about a failing command
)

// Report is the outcome of one call of [Tell].
type Report struct {
	Told []Occasion `json:"told"`
	// Waiting is how many occasions wait until Next, because the command failed or too many messages went out.
	Waiting int64     `json:"waiting"`
	Next    time.Time `json:"next,omitzero"`
	// Busy means that another process is about to look, so there was nothing to do.
	Busy bool `json:"busy,omitempty"`
}

// Tell tells what was not told yet, and what a launcher adds. One process at a time tells for an inbox and one
// waits; any other leaves, because the waiting one will see the same. An error means that something could not be
// told. The next call tries it again, and the log has a line.
func Tell(ctx context.Context, box *inbox.Inbox, o Options, launcher ...Occasion) (Report, error) {
	t := &teller{Options: o, box: box, launcher: launcher}
	err := t.alone(ctx)
	for _, o := range t.launcher { // not saved for the next call, for example because the folder is gone
		if ctx.Err() == nil {
			err = errors.Join(err, t.run(ctx, o))
			t.report.Told = append(t.report.Told, o)
		}
	}
	return t.report, err
}

// alone tells while no other process does.
func (t *teller) alone(ctx context.Context) error {
	wait := time.Nanosecond
	if len(t.launcher) > 0 {
		wait = 0 // as long as ctx allows: a process that waits already does not know what this launcher has to say
	}
	next, err := disk.AcquireLock(ctx, filepath.Join(t.box.Dir(), nextName), wait)
	if errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		t.report.Busy = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("nobody can be told anything: %w", err)
	}
	lock, err := disk.AcquireLock(ctx, filepath.Join(t.box.Dir(), lockName), 0)
	if err = errors.Join(err, next.Release()); err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // otherwise the kernel does
	t.lock = lock.Identity()
	for until := t.now().Add(Patience); ; {
		err = t.round(ctx)
		if !t.Linger || t.report.Next.IsZero() || t.report.Next.After(until) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(t.report.Next.Sub(t.now())):
		case <-ctx.Done():
		}
	}
}

// Pending returns what [Tell] would tell now. It takes no lock and changes nothing.
func Pending(ctx context.Context, box *inbox.Inbox, o Options) ([]Occasion, error) {
	id := ""
	if f, err := disk.OpenRead(filepath.Join(box.Dir(), lockName)); err == nil {
		id = f.Identity()
		_ = f.Close() // only read
	}
	s := compare(box, see.Look(ctx, box), load(box, id, o.now()), o)
	if err := s.addLetters(); err != nil {
		return nil, err
	}
	var all []Occasion
	for _, what := range byUrgency {
		for len(s.pending[what].kept) > 0 {
			all = append(all, *s.next(what))
		}
	}
	return all, nil
}

// Try runs the command with an example, and returns the example.
func Try(ctx context.Context, box *inbox.Inbox, o Options) (Occasion, error) {
	example := occasion(box, Test, o.now().UTC(), "test", "", "a test of --notify: this is how heartbeat tells about "+name(box))
	example.Entry = &Entry{ID: "example", EntryID: see.Key("example"), Text: "the first line of an entry's text", Attempts: 1}
	return example, o.run(ctx, example)
}

// saysKey begins the keys of what launchers say, overKey those of what is over.
const saysKey, overKey = "says ", "over "

// launcherKey returns the key of what a launcher says.
func (o Occasion) launcherKey() string { return saysKey + see.Key(o.Reason, o.Text) }

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// teller tells while it holds the lock.
type teller struct {
	Options
	box      *inbox.Inbox
	lock     string
	launcher []Occasion
	report   Report
	st       *state
}

func (t *teller) round(ctx context.Context) error {
	t.report.Waiting, t.report.Next = 0, time.Time{}
	repaired := repair(ctx, t.box) // what it cannot repair is told one commit later
	t.st = load(t.box, t.lock, t.now())
	s := compare(t.box, see.Look(ctx, t.box), t.st, t.Options, t.launcher...)
	if err := s.addLetters(); err != nil {
		return errors.Join(err, repaired)
	}
	if s.total() == 0 {
		t.launcher = nil // it was told before
		return t.finish(s)
	}
	if t.unsaved() {
		t.st.written = nil // makes save write, which shows whether there is room by now
	}
	if err := t.st.save(t.box); err != nil {
		return t.tellUnsaved(ctx, s, err)
	}
	t.launcher = nil // the state has it now
	for last := s.facts; s.total() > 0; {
		o := t.choose(s)
		if o == nil {
			return t.forget(s)
		}
		if err := t.tell(ctx, s, *o); err != nil {
			if t.report.Waiting = s.total(); o.of == "" {
				t.report.Waiting++
			}
			return err
		}
		if o.What == DeadLetter { // letters may be many and the command slow, so newer and more urgent occasions go first
			last = see.LookAgain(ctx, t.box, &last, time.Now())
			now := compare(t.box, last, t.st, t.Options)
			for _, what := range byUrgency[:slices.Index(byUrgency, Limit)] {
				s.pending[what] = now.pending[what]
			}
			s.holds = now.holds
		}
	}
	return t.finish(s)
}

// choose removes and returns what to tell next: the most urgent occasion of a kind that may still send, or a
// summary of that kind if only one more message may go out. It returns nil if no kind may send.
func (t *teller) choose(s *scan) *Occasion {
	t.report.Waiting, t.report.Next = s.total(), t.st.Trouble.NotBefore
	if t.report.Next.After(t.now()) {
		return nil
	}
	t.report.Next = time.Time{}
	for _, what := range byUrgency {
		count := s.pending[what].count
		if count == 0 {
			continue
		}
		times := slices.DeleteFunc(t.st.ToldAt[what], func(at time.Time) bool { return t.now().Sub(at) >= toldSpan })
		t.st.ToldAt[what] = times
		switch {
		case len(times) > maxTold:
			if until := slices.MinFunc(times, time.Time.Compare).Add(toldSpan); t.report.Next.IsZero() || until.Before(t.report.Next) {
				t.report.Next = until
			}
		case len(times) == maxTold && count > 1:
			o := occasion(s.box, More, s.now, "too many", "more "+s.now.String(), fmt.Sprintf("%s: and %d more, %s", name(s.box), count, what))
			o.Count, o.Kinds, o.of = count, map[What]int64{what: count}, what
			return &o
		default:
			return s.next(what)
		}
	}
	return nil
}

// forget removes conditions that no longer hold, so that they are told again if they return. Once no dead letter
// waits to be told, it also removes the list of those that were told.
func (t *teller) forget(s *scan) error {
	maps.DeleteFunc(t.st.Holding, func(key string, told holding) bool { return !s.holds[key] && !s.isOver(key, told) })
	if s.pending[DeadLetter].count+s.pending[Limit].count == 0 {
		t.st.Letters, t.st.Done = s.letters, nil
	}
	return t.st.save(t.box)
}

func (t *teller) tell(ctx context.Context, s *scan, o Occasion) error {
	err := t.run(ctx, o)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return t.failed(ctx, s, o, err)
	}
	t.st.Trouble = trouble{Noted: t.st.Trouble.Noted}
	what := cmp.Or(o.of, o.What)
	t.st.ToldAt[what] = append(t.st.ToldAt[what], t.now())
	t.markTold(s, o)
	t.report.Told = append(t.report.Told, o)
	if err = t.st.save(t.box); err != nil {
		err = errors.Join(err, disk.Touch(filepath.Join(t.box.Dir(), lockName))) // see unsaved
	}
	return err
}

// markTold marks an occasion, or everything a summary stands for, as told.
func (t *teller) markTold(s *scan, o Occasion) {
	all := []Occasion{o}
	if o.of != "" {
		all = s.pending[o.of].kept
		delete(s.pending, o.of)
	}
	if o.of == Over {
		maps.DeleteFunc(t.st.Holding, s.isOver)
	}
	for _, o := range all {
		switch {
		case o.holds:
			h := holding{At: t.now(), Last: t.now(), Kind: o.Trouble, Text: line(o.text), Times: 1}
			if !o.first.IsZero() {
				h.At, h.Times = o.first, t.st.Holding[o.key].Times+1
			}
			t.st.Holding[o.key] = h
			t.st.Said = slices.DeleteFunc(t.st.Said, func(said Occasion) bool { return said.launcherKey() == o.key })
		case o.What == Over:
			delete(t.st.Holding, strings.TrimPrefix(o.key, overKey))
		case o.What == Drained:
			t.st.Settled = new(settled(s.facts.Totals))
		default:
			t.st.Done = append(t.st.Done, o.key)
		}
	}
}

// failed schedules the next try of the occasion, up to maxTries times.
func (t *teller) failed(ctx context.Context, s *scan, o Occasion, err error) error {
	f, now := &t.st.Trouble, t.now()
	if f.Key != o.key {
		f.Key, f.Tries = o.key, 0
	}
	f.Tries++
	f.NotBefore = now.Add(min(lastPause, firstPause*time.Duration(math.Pow(5, float64(min(f.Tries, maxTries)-1)))))
	t.report.Next = f.NotBefore
	text := fmt.Sprintf("%s could not be told: %v", o.What, err)
	if f.Tries >= maxTries {
		text = fmt.Sprintf("%s is not told after %s: %v", o.What, words.Count(f.Tries, "try", "tries"), err)
		t.markTold(s, o)
		f.Key, f.Tries = "", 0
	}
	if now.Sub(f.Noted) >= notedAgain || f.Tries == 0 {
		f.Noted = now
		err = errors.Join(err, t.log(ctx, text))
	}
	return errors.Join(fmt.Errorf("tell of %s: %w", line(o.Text), err), t.st.save(t.box))
}

const logWait = 5 * time.Second // how long another process may hold the inbox's lock

func (t *teller) log(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	tx, err := t.box.Begin(ctx)
	if err != nil {
		return err
	}
	if err = tx.NoteUntold(line(text)); err == nil {
		err = tx.Commit()
	}
	return errors.Join(err, tx.Close())
}

// finish records that everything was told, if that is new. It makes the state file as new as the dead letters: hooks
// compare the two times to see whether a dead letter was not told.
func (t *teller) finish(s *scan) error {
	t.st.Trouble = trouble{Noted: t.st.Trouble.Noted}
	t.report.Waiting, t.report.Next = 0, time.Time{}
	if err := t.forget(s); err != nil {
		return err
	}
	letters, err := disk.StatName(t.box.DeadLetterPath())
	if err != nil {
		return nil // there are none
	}
	path := filepath.Join(t.box.Dir(), StateName)
	if told, err := disk.StatName(path); err != nil || told.Mtime >= letters.Mtime {
		return err
	}
	return disk.Touch(path)
}

// unsavedAgain is how often the same thing is told while nothing can be recorded. The two lock files are created
// within createdWithin of each other.
const unsavedAgain, createdWithin = time.Hour, time.Second

// unsaved reports whether something was told lately that could not be recorded, as on a full disk. The lock file's
// mtime keeps the time, because setting it takes no space. While it equals that of the other lock file, nothing was
// told this way. A time in the future comes from a clock that was wrong.
func (t *teller) unsaved() bool {
	lock, err := disk.StatName(filepath.Join(t.box.Dir(), lockName))
	next, errNext := disk.StatName(filepath.Join(t.box.Dir(), nextName))
	told := time.Unix(0, lock.Mtime)
	return err == nil && errNext == nil && t.now().Sub(told).Abs() < unsavedAgain && told.Sub(time.Unix(0, next.Mtime)) > createdWithin
}

// tellUnsaved tells the most urgent occasion when nothing can be recorded.
func (t *teller) tellUnsaved(ctx context.Context, s *scan, why error) error {
	if t.unsaved() {
		t.launcher = nil // it may be one that is started again and again
		return why
	}
	if err := disk.Touch(filepath.Join(t.box.Dir(), lockName)); err != nil {
		return errors.Join(why, err) // for example, the folder is gone by now
	}
	t.launcher = nil
	o := s.next(byUrgency[slices.IndexFunc(byUrgency, func(w What) bool { return s.pending[w].count > 0 })])
	if err := t.run(ctx, *o); err != nil {
		return errors.Join(why, err)
	}
	t.report.Told = append(t.report.Told, *o)
	return why
}
