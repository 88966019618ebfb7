package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	recovery "heartbeat/recover"
)

const (
	// LockPatience is how long a lock may be held before it is shown.
	LockPatience = livesEvery
	// livesEvery is how often processes and lock holders are checked.
	livesEvery = 2 * time.Second
	// movesEvery is how often it is checked whether anything moves.
	movesEvery = 10 * time.Second
	// anewEvery is how often an inbox is read again without a visible change, for what no file shows.
	anewEvery = 10 * time.Minute
)

// watched is an inbox with what was last known of it.
type watched struct {
	path string
	box  *inbox.Inbox
	now  Inbox

	files, letters, costs sign

	day         string    // the day of Today
	charged     time.Time // when Today was read
	read, lives time.Time
	moved       time.Time // when Still was computed
	counted     *inbox.Counted
	head        *inbox.Head // the entry that comes next
	holder      int         // who held the lock at the last look
	held        time.Time
}

func (w *watched) dir() string { return filepath.Dir(w.path) }

// look updates what is known, and reports whether anything changed. locks returns the locks held now.
func (w *watched) look(ctx context.Context, at time.Time, locks func() machine.Locks) bool {
	if w.box == nil {
		box, err := inbox.Open(w.path, inbox.Options{})
		if err != nil {
			return w.broken(at, err)
		}
		w.box = box
	}
	files, due := stateSign(w.box), at.Sub(w.lives) >= livesEvery
	changed := !slices.Equal(files, w.files) || w.stale(at) || due && w.died()
	if changed {
		w.files, w.read = files, at
		w.survey(ctx)
	}
	if due {
		w.lives = at
		changed = w.surroundings(at, locks()) || changed
	}
	changed = w.questions() || changed
	changed = w.deadLetters() || changed
	changed = w.spent(at) || changed
	w.now.Facts.Now = at
	if changed {
		w.now.judge()
		w.now.Seen++
	}
	return changed
}

// broken shows an inbox that cannot be opened.
func (w *watched) broken(at time.Time, err error) bool {
	if w.now.Unreadable != nil && w.now.Unreadable.Error() == err.Error() {
		return false
	}
	w.now = Inbox{Facts: see.Facts{Now: at, Inbox: w.path, Dir: filepath.Dir(w.path), Reach: see.Reach{Space: -1, Unreadable: err}}, Seen: w.now.Seen + 1}
	w.now.judge()
	return true
}

// stale reports whether what was read may be wrong although no file changed.
func (w *watched) stale(at time.Time) bool {
	age := at.Sub(w.read)
	return age >= anewEvery || w.now.Unreadable != nil && age >= livesEvery || w.ended(at)
}

// ended reports whether a displayed pause, back-off or schedule is over.
func (w *watched) ended(at time.Time) bool {
	over := func(t *time.Time) bool { return t != nil && !t.IsZero() && t.After(w.read) && !t.After(at) }
	if p := w.now.Paused; p != nil && over(p.Until) {
		return true
	}
	if b := w.now.Backoff; b != nil && over(&b.Until) {
		return true
	}
	due := w.now.Scheduled.Next
	return over(&due)
}

// survey reads the state of the inbox.
func (w *watched) survey(ctx context.Context) {
	was := w.now.Facts
	var head *inbox.Head
	w.now.Facts, w.counted = see.GlanceAgain(ctx, w.box, w.counted, func(v *inbox.View) error {
		var err error
		head, err = v.Head()
		return err
	})
	if _, err := disk.StatDir(w.box.Dir()); errors.Is(err, fs.ErrNotExist) {
		w.now.Unreadable = fmt.Errorf("its folder %s is gone", w.box.Dir())
	}
	w.now.Oldest, w.now.Notes = w.waitsSince(head), slices.Concat(w.now.Warnings, was.Letters.Warnings)
	w.now.Held, w.now.Still, w.now.Letters = was.Held, was.Still, was.Letters
	w.now.LockedBy, w.now.LockedName, w.now.LockedFor = was.LockedBy, was.LockedName, was.LockedFor
}

// longLine is longer than any line whose text is listed.
const longLine = 1 << 20

// waitsSince is since when the next entry has waited, as far as this look or an earlier one can tell, nil for none.
func (w *watched) waitsSince(now *inbox.Head) *time.Time {
	was := w.head
	if w.head = now; now == nil {
		return nil
	}
	if was != nil && was.At == now.At && was.Since.Before(now.Since) {
		now.Since = was.Since
	}
	return &now.Since
}

// died reports whether a process has changed since the state was read.
func (w *watched) died() bool {
	gone := func(s see.Session) bool { return s.Life == machine.Alive && s.Session.Life() != s.Life }
	ended := func(p inbox.Process) bool { return p.PID != 0 && p.Life() != machine.Alive } // else a session has it
	b, l, d := w.now.Waiter, w.now.Launcher, w.now.InFlight
	return slices.ContainsFunc(w.now.Sessions, gone) ||
		b != nil && b.Life == machine.Alive && see.WaiterNow(b.Waiter).String() != b.String() ||
		l != nil && l.PID > 0 && machine.Ended(l.PID) ||
		d != nil && w.now.Client == machine.Alive && ended(recovery.EvidenceOf(d).Process())
}

// surroundings checks what no state file shows: the free space, whether somebody keeps the lock, and whether
// anything moves. It reports whether the reason why nothing moves changed. Only a transcript, which may be long,
// tells whether a tool runs, so movement is not checked at each look.
func (w *watched) surroundings(at time.Time, locks machine.Locks) bool {
	by := w.now.LockedBy
	w.now.Space, w.now.Needed = w.box.Room()
	w.lock(at, locks)
	w.now.Facts.Now = at
	if at.Sub(w.moved) >= movesEvery || !at.After(w.moved) {
		w.moved, w.now.Still = at, see.StandsStill(w.now.Facts)
	}
	state, _ := w.now.Explain()
	return state != w.now.State || by != w.now.LockedBy
}

// lockName is the file that a transaction locks.
const lockName = ".inbox-lock"

// lock notes who has kept the lock since the last look without a commit in between.
func (w *watched) lock(at time.Time, locks machine.Locks) {
	holder := locks.Holder(filepath.Join(w.box.Dir(), lockName))
	if holder != w.holder { // the kernel may leave a lock out of its list for a moment
		holder = w.box.Lock()
	}
	if holder == 0 || holder != w.holder || w.read.After(w.held) {
		w.holder, w.held = holder, at
		holder = 0
	}
	if holder != w.now.LockedBy {
		w.now.LockedBy, w.now.LockedName, w.now.LockedFor = holder, machine.Name(holder), livesEvery
	}
}

// questions reads what runs ask a person.
func (w *watched) questions() bool {
	before := w.now.Held
	w.now.Held = see.Questions(w.box)
	return !slices.Equal(before, w.now.Held)
}

// deadLetters counts the open dead letters, if that may have changed.
func (w *watched) deadLetters() bool {
	now := sign{markOf(w.box.DeadLetterPath())}
	if now[0].there() && w.now.Letters.All() > 0 { // an answer may close one
		now = append(now, markOf(w.box.ResultsPath()))
	}
	if slices.Equal(now, w.letters) {
		return false
	}
	w.letters = now
	w.now.ReadLetters(w.box)
	w.now.Notes = slices.Concat(w.now.Warnings, w.now.Letters.Warnings)
	return true
}

// costsEvery limits how often spending is read, because transcripts change at every request.
const costsEvery = 5 * time.Second

// spent reads what was spent today, if that may have changed.
func (w *watched) spent(at time.Time) bool {
	day, now := at.Local().Format(time.DateOnly), costSign(w.box)
	anew := day != w.day || len(w.costs) == 0 || now[0] != w.costs[0] // something was charged
	if !anew && (slices.Equal(now, w.costs) || at.Sub(w.charged) < costsEvery) {
		return false
	}
	w.costs, w.charged, w.day = now, at, day
	before := w.now.Today
	if !markOf(filepath.Join(w.box.Dir(), ".inbox-journal")).there() {
		w.now.Today = price.Amount{}
	} else if p, err := book.Spending(w.box, nil); err == nil { // otherwise the state is what is shown
		w.now.Today = p.Today()
	}
	return w.now.Today != before
}

// sign identifies the state of files without reading them.
type sign []mark

type mark struct {
	dev, ino           uint64
	size, mtime, ctime int64
	mode               uint32
}

func markOf(path string) mark {
	i, err := disk.StatName(path)
	if err != nil {
		return mark{}
	}
	return mark{i.Dev, i.Ino, i.Size, i.Mtime, i.Ctime, i.Mode}
}

// there reports whether the file existed.
func (m mark) there() bool { return m != mark{} }

// stateFiles are the files beside an inbox from which the overview is made.
var stateFiles = []string{
	".inbox-journal", ".inbox-offset", ".in-flight", ".responded", ".scheduled.jsonl", ".launch-lock",
}

func stateSign(box *inbox.Inbox) sign {
	s := sign{markOf(box.Path())}
	for _, name := range stateFiles {
		s = append(s, markOf(filepath.Join(box.Dir(), name)))
	}
	return s
}

// costSign covers what was charged, and what is not charged yet.
func costSign(box *inbox.Inbox) sign {
	return sign{markOf(filepath.Join(box.Dir(), costsName)), markOf(filepath.Join(box.Dir(), ".inbox-journal")), markOf(box.Dir())}
}

// costsName is the file of what was charged.
const costsName = ".costs.jsonl"
