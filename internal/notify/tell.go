// Package notify tells a person, by a command of theirs, what in an inbox needs one: a
// dead letter, a pause, a question, a limit, sessions that fail one after the other, an
// inbox in which nothing moves.
//
// Occasions are derived from what is on disk, not from what a process happened to see:
// [Tell] compares the inbox with what was told so far, tells the rest, and notes that.
// A kill between the two has an occasion told again, and none is lost. What was told is
// in `.notified.json` beside the inbox, under the lock `.notify-lock`.
//
// The command line comes from a flag and never from a file beside the inbox, which an
// agent's tools may be able to write.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// Options say how and what to tell.
type Options struct {
	Command string        // for /bin/sh, from a flag
	Stall   time.Duration // how long nothing may move, 0 for any time
	Drained bool          // tell that nothing waits any more
	// Linger stays until everything is told, also what has to wait since the command
	// failed or there were too many messages, for as long as [Patience] at most.
	Linger bool
	// TimeLimit is how long the command may take, 0 for the usual one.
	TimeLimit time.Duration
	Now       func() time.Time `json:"-"` // nil for time.Now
}

const (
	// maxTold is how many messages of a kind go out one by one in the span; one more
	// stands for the rest of that kind. No kind waits for another.
	maxTold  = 10
	toldSpan = 10 * time.Minute
	// Patience is how long a process stays for what has to wait.
	Patience = 15 * time.Minute
	// maxTries is how often an occasion is tried that the command cannot tell.
	maxTries = 6
	// firstPause is the rest after a first failure; it grows fivefold up to lastPause.
	firstPause, lastPause = 10 * time.Second, time.Hour
	// notedAgain is how often a failing command gets a line in the log.
	notedAgain = 10 * time.Minute
)

// Report says what one look came to.
type Report struct {
	Told []Occasion `json:"told"`
	// Waiting is how many occasions wait, for Next: the command failed, or too many
	// messages went out.
	Waiting int64     `json:"waiting"`
	Next    time.Time `json:"next,omitzero"`
	// Busy says that somebody else will look after now, so that there was nothing to do.
	Busy bool `json:"busy,omitempty"`
}

// Tell tells what was not told yet, and what a launcher says besides. At any time one
// process tells for an inbox, and one waits; others leave, since the one that waits will
// see what they would. An error means that something could not be told; it is told by
// whoever looks next, and the log has a line.
func Tell(ctx context.Context, box *inbox.Inbox, o Options, launcher ...Occasion) (r Report, err error) {
	lock, err := enter(ctx, box, len(launcher) > 0)
	if errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		return Report{Busy: true}, nil
	}
	if err != nil {
		return r, err
	}
	defer func() { _ = lock.Release() }() // otherwise the kernel does
	t := &teller{Options: o, box: box, lock: lock.Identity(), launcher: launcher}
	for until := o.now().Add(Patience); ; {
		err = t.round(ctx)
		if !o.Linger || t.report.Next.IsZero() || t.report.Next.After(until) || ctx.Err() != nil {
			return t.report, err
		}
		timer := time.NewTimer(t.report.Next.Sub(o.now()))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Pending is what [Tell] would tell now. It takes no lock and changes nothing.
func Pending(ctx context.Context, box *inbox.Inbox, o Options) ([]Occasion, error) {
	id := ""
	if f, err := disk.OpenRead(filepath.Join(box.Dir(), lockName)); err == nil {
		id = f.Identity()
		_ = f.Close() // only read
	}
	s, err := look(ctx, box, load(box, id, o.now()), o)
	if err != nil {
		return nil, err
	}
	var all []Occasion
	for _, what := range byUrgency {
		for p := s.of(what); len(p.kept) > 0; {
			all = append(all, p.next())
		}
	}
	return all, nil
}

// Try runs the command with an example, and returns that.
func Try(ctx context.Context, box *inbox.Inbox, o Options) (Occasion, error) {
	of := Occasion{
		What: Test, Inbox: box.Path(), Host: hostName(), At: o.now().UTC(), Reason: "test",
		Text:     "a test of --notify: this is how heartbeat tells about " + name(box),
		TypeThis: see.Command(box.Path(), "status"),
		Entry:    &Entry{ID: "example", EntryID: see.Key("example"), Text: "the first line of an entry's text", Attempts: 1},
	}
	return of, o.run(ctx, of)
}

// says is an occasion that nothing on the disk shows: a launcher has given up. The same
// reason is told once until an entry was answered.
func says(box *inbox.Inbox, w Words) Occasion {
	return Occasion{
		What: Failing, Reason: w.Reason, At: time.Now().UTC(), Text: name(box) + ": " + line(w.Sentence),
		TypeThis: see.Command(box.Path(), "status"), key: saysKey + see.Key(w.Reason, w.Sentence), holds: true,
	}
}

// saysKey begins the keys of what launchers say.
const saysKey = "says "

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// enter takes the lock, after whoever has it. If somebody waits for it already, the
// error matches disk.ErrLocked, unless this one has to say what the other cannot see.
func enter(ctx context.Context, box *inbox.Inbox, says bool) (*disk.Lock, error) {
	wait := time.Nanosecond
	if says {
		wait = 0 // for as long as ctx allows
	}
	next, err := disk.AcquireLock(ctx, filepath.Join(box.Dir(), nextName), wait)
	if err != nil {
		return nil, err
	}
	lock, err := disk.AcquireLock(ctx, filepath.Join(box.Dir(), lockName), 0)
	return lock, errors.Join(err, next.Release())
}

// teller tells while it has the lock.
type teller struct {
	Options
	box      *inbox.Inbox
	lock     string
	launcher []Occasion
	report   Report
	st       *state
}

// round looks once, and tells what it finds.
func (t *teller) round(ctx context.Context) error {
	t.report.Waiting, t.report.Next = 0, time.Time{}
	repaired := repair(ctx, t.box) // what it does not repair is told a commit later
	t.st = load(t.box, t.lock, t.now())
	s, err := look(ctx, t.box, t.st, t.Options, t.launcher...)
	if err != nil {
		return errors.Join(err, repaired)
	}
	if s.total() == 0 {
		return t.finish(s)
	}
	if err := t.st.save(t.box); err != nil {
		return t.tellUnsaved(ctx, s, err)
	}
	t.launcher = nil // it is noted
	for s.total() > 0 {
		o := t.choose(s)
		if o == nil {
			return t.settle(s)
		}
		if err := t.tell(ctx, s, *o); err != nil {
			if t.report.Waiting = s.total(); o.of == "" {
				t.report.Waiting++
			}
			return err
		}
	}
	return t.finish(s)
}

// choose takes out what to tell next: the most urgent of a kind of which another message
// may go out, or a summary of what is left of it once that is the last one. It is nil where
// none may.
func (t *teller) choose(s *scan) *Occasion {
	t.report.Waiting, t.report.Next = s.total(), t.st.Trouble.NotBefore
	if t.report.Next.After(t.now()) {
		return nil
	}
	t.report.Next = time.Time{}
	for _, what := range byUrgency {
		p := s.of(what)
		if p.n == 0 {
			continue
		}
		times := slices.DeleteFunc(t.st.ToldAt[what], func(at time.Time) bool { return t.now().Sub(at) >= toldSpan })
		t.st.ToldAt[what] = times
		switch {
		case len(times) > maxTold:
			if until := slices.MinFunc(times, time.Time.Compare).Add(toldSpan); t.report.Next.IsZero() || until.Before(t.report.Next) {
				t.report.Next = until
			}
		case len(times) == maxTold && p.n > 1:
			return s.summary(what)
		default:
			o := p.next()
			return &o
		}
	}
	return nil
}

// summary stands for all that is left of a kind.
func (s *scan) summary(what What) *Occasion {
	n := s.of(what).n
	return &Occasion{
		What: More, Inbox: s.box.Path(), Host: hostName(), At: s.now, Count: n, Kinds: map[What]int64{what: n}, Reason: "too many",
		Text: fmt.Sprintf("%s: and %d more, %s", name(s.box), n, what), TypeThis: see.Command(s.box.Path(), "status"), key: "more " + s.now.String(), of: what,
	}
}

// settle forgets what holds no more, so that it is told again if it comes again, and which
// letters were told once no other one waits.
func (t *teller) settle(s *scan) error {
	maps.DeleteFunc(t.st.Holding, func(key string, told holding) bool { return !s.holds[key] && !s.isOver(key, told) })
	if s.of(DeadLetter).n+s.of(Limit).n == 0 {
		t.st.Letters, t.st.Done = s.letters, nil
	}
	return t.st.save(t.box)
}

// tell runs the command, and notes that.
func (t *teller) tell(ctx context.Context, s *scan, o Occasion) error {
	err := t.run(ctx, o)
	now := t.now()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return t.failed(ctx, s, o, err)
	}
	t.st.Trouble = trouble{Noted: t.st.Trouble.Noted}
	what := cmp.Or(o.of, o.What)
	t.st.ToldAt[what] = append(t.st.ToldAt[what], now)
	t.noted(s, o)
	t.report.Told = append(t.report.Told, o)
	return t.st.save(t.box)
}

// noted has an occasion, or all that a summary stands for, count as told.
func (t *teller) noted(s *scan, o Occasion) {
	all := []Occasion{o}
	if o.of != "" {
		all = s.of(o.of).lasting
		delete(s.pending, o.of)
	}
	if o.of == Over {
		maps.DeleteFunc(t.st.Holding, s.isOver)
	}
	for _, o := range all {
		switch {
		case o.holds:
			t.st.Holding[o.key] = o.holding(t.now(), t.st.Holding[o.key])
			t.st.Said = slices.DeleteFunc(t.st.Said, func(of said) bool { return of.Key == o.key })
		case o.What == Over:
			delete(t.st.Holding, strings.TrimPrefix(o.key, overKey))
		case o.What == Drained:
			t.st.Settled = &s.facts.Settled
		default:
			t.st.Done = append(t.st.Done, o.key)
		}
	}
}

// failed has the occasion tried again later, a few times.
func (t *teller) failed(ctx context.Context, s *scan, o Occasion, err error) error {
	f, now := &t.st.Trouble, t.now()
	if f.Key != o.key {
		f.Key, f.Tries = o.key, 0
	}
	f.Tries++
	pause := firstPause
	for range f.Tries - 1 {
		pause = min(5*pause, lastPause)
	}
	f.NotBefore = now.Add(pause)
	t.report.Next = f.NotBefore
	text := fmt.Sprintf("%s could not be told: %v", o.What, err)
	if f.Tries >= maxTries {
		text = fmt.Sprintf("%s is not told after %s: %v", o.What, words.Count(f.Tries, "try", "tries"), err)
		t.noted(s, o)
		f.Key, f.Tries = "", 0
	}
	if now.Sub(f.Noted) >= notedAgain || f.Tries == 0 {
		f.Noted = now
		err = errors.Join(err, t.log(ctx, text))
	}
	return errors.Join(fmt.Errorf("tell of %s: %w", line(o.Text), err), t.st.save(t.box))
}

// logWait is how long the inbox's lock may be held by somebody else.
const logWait = 5 * time.Second

// log leaves a line in the inbox's log.
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

// finish notes that everything was told, if that says anything new.
func (t *teller) finish(s *scan) error {
	t.st.Trouble = trouble{Noted: t.st.Trouble.Noted}
	t.report.Waiting, t.report.Next = 0, time.Time{}
	if err := t.settle(s); err != nil {
		return err
	}
	return t.touch()
}

// touch makes the state as young as the dead letters: by that, hooks tell whether there
// are some that nobody was told of.
func (t *teller) touch() error {
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

// unsavedAgain is how often something is told where that cannot be noted, and made is how far
// apart the files of the two locks are made.
const unsavedAgain, made = time.Hour, time.Second

// tellUnsaved tells the most urgent occasion where nothing can be noted, as on a full
// disk. The lock's file keeps the time: setting that takes no space. Where it is as old as that
// of the other lock, nothing was told so.
func (t *teller) tellUnsaved(ctx context.Context, s *scan, why error) error {
	path := filepath.Join(t.box.Dir(), lockName)
	info, err := disk.StatName(path)
	next, errNext := disk.StatName(filepath.Join(t.box.Dir(), nextName))
	told := time.Unix(0, info.Mtime)
	if err != nil || errNext != nil || t.now().Sub(told) < unsavedAgain && told.Sub(time.Unix(0, next.Mtime)) > made {
		return why
	}
	if err := disk.Touch(path); err != nil {
		return errors.Join(why, err)
	}
	what := slices.IndexFunc(byUrgency, func(w What) bool { return s.of(w).n > 0 })
	o := s.of(byUrgency[what]).next()
	if err := t.run(ctx, o); err != nil {
		return errors.Join(why, err)
	}
	t.report.Told = append(t.report.Told, o)
	return why
}
