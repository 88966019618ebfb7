package look

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
	"heartbeat/internal/host"
	"heartbeat/internal/price"
	"heartbeat/internal/survey"
	"heartbeat/internal/why"
	"heartbeat/orchestrate"
	recovery "heartbeat/recover"
)

const (
	// livesEvery is how often it is looked whether processes live, and who holds locks.
	livesEvery = 2 * time.Second
	// anewEvery is how often an inbox is read again although nothing seems to have
	// changed, for what no file tells.
	anewEvery = 10 * time.Minute
)

// watched is an inbox with what was known of it last.
type watched struct {
	path string
	box  *inbox.Inbox
	now  Inbox

	files, runs, letters, costs sign

	day         string    // of Today
	charged     time.Time // when Today was read
	driven      []orchestrate.DrivenRun
	read, lives time.Time
	counted     *inbox.Counted
	sent        bool // Oldest is what the entry itself says
	holder      int  // of the lock, when it was looked last
	held        time.Time
}

func (w *watched) dir() string { return filepath.Dir(w.path) }

// look brings what is known up to date, and reports whether anything changed. locks are
// those that are held now.
func (w *watched) look(ctx context.Context, at time.Time, locks func() host.Locks) bool {
	if w.box == nil {
		box, err := inbox.Open(w.path, inbox.Options{})
		if err != nil {
			return w.broken(at, err)
		}
		w.box = box
	}
	files := stateSign(w.box)
	changed := !files.equal(w.files) || w.stale(at)
	if changed {
		grown := len(w.files) > 0 && w.files[1:].equal(files[1:]) && w.files[0].ino == files[0].ino && w.files[0].size < files[0].size
		w.files, w.read = files, at
		w.survey(ctx, grown)
	}
	if at.Sub(w.lives) >= livesEvery {
		w.lives = at
		changed = w.processes(at, locks()) || changed
	}
	changed = w.questions() || changed
	changed = w.deadLetters() || changed
	changed = w.spent(at) || changed
	w.now.Facts.Now = at
	if changed {
		w.now.State, w.now.Why = w.now.Explain()
		w.now.Seen++
	}
	return changed
}

// broken shows an inbox that cannot even be opened.
func (w *watched) broken(at time.Time, err error) bool {
	if w.now.Unreadable != nil && w.now.Unreadable.Error() == err.Error() {
		return false
	}
	w.now = Inbox{Facts: why.Facts{Now: at, Inbox: w.path, Dir: filepath.Dir(w.path), Space: -1, Unreadable: err}, Seen: w.now.Seen + 1}
	w.now.State, w.now.Why = w.now.Explain()
	return true
}

// stale reports whether what was read may be wrong although no file changed.
func (w *watched) stale(at time.Time) bool {
	age := at.Sub(w.read)
	return age >= anewEvery || w.now.Unreadable != nil && age >= livesEvery || w.ended(at)
}

// ended reports whether a pause, a back-off or a schedule that is shown is over.
func (w *watched) ended(at time.Time) bool {
	over := func(t *time.Time) bool { return t != nil && !t.IsZero() && t.After(w.read) && !t.After(at) }
	if p := w.now.Paused; p != nil && over(p.Until) {
		return true
	}
	if b := w.now.Backoff; b != nil && over(&b.Until) {
		return true
	}
	due := w.now.NextDue()
	return over(&due)
}

// survey reads the state of the inbox. grown says that nothing but the queue file has
// changed since it did so last.
func (w *watched) survey(ctx context.Context, grown bool) {
	held, lockedBy, name, since := w.now.Held, w.now.LockedBy, w.now.LockedName, w.now.LockedFor
	oldest := w.now.Oldest
	w.now.Facts, w.counted = survey.GlanceAgain(ctx, w.box, w.counted, func(v *inbox.View) error {
		if !grown || !w.sent { // otherwise the same entry comes next
			oldest, w.sent = head(v)
		}
		return nil
	})
	if _, err := disk.StatDir(w.box.Dir()); errors.Is(err, fs.ErrNotExist) {
		w.now.Unreadable = fmt.Errorf("its folder %s is gone", w.box.Dir())
	}
	w.now.Oldest, w.now.Notes = oldest, w.now.Warnings
	w.now.Held, w.now.LockedBy, w.now.LockedName, w.now.LockedFor = held, lockedBy, name, since
}

// longLine is longer than any line that is decoded only to see when it was sent.
const longLine = 1 << 20

// head is since when the entry waits that comes next. sent says that the entry itself
// has the time.
func head(v *inbox.View) (oldest *time.Time, sent bool) {
	found, long := false, false
	err := v.Waits(func(l []byte) bool {
		long = long || len(l) > longLine
		return !long
	}, func(w inbox.Waiting) bool {
		found = true
		if at := w.SentAt(); !at.IsZero() {
			oldest, sent = &at, true
		}
		return false
	})
	if at := v.WrittenAt(); err == nil && (found || long) && oldest == nil && !at.IsZero() {
		oldest = &at
	}
	return oldest, sent
}

// processes looks whether those live that did, and whether somebody keeps the lock.
func (w *watched) processes(at time.Time, locks host.Locks) bool {
	changed := false
	w.now.Sessions = slices.Clone(w.now.Sessions) // whoever has an earlier picture reads those
	for i, s := range w.now.Sessions {
		if s.Life == host.Alive {
			w.now.Sessions[i].Life = s.Session.Life()
			changed = changed || w.now.Sessions[i].Life != s.Life
		}
	}
	if b := w.now.Waiter; b != nil && b.Life == host.Alive {
		w.now.Waiter = &why.Waiter{Waiter: b.Waiter, Life: b.Waiter.Life()}
		changed = changed || w.now.Waiter.Life != b.Life
	}
	if l := w.now.Launcher; l != nil && l.PID > 0 && host.ProcessStart(l.PID) == 0 {
		w.now.Launcher, changed = nil, true
	}
	if d := w.now.InFlight; d != nil && w.now.Client == host.Alive {
		w.now.Client = recovery.EvidenceOf(d).Process().Life()
		changed = changed || w.now.Client != host.Alive
	}
	space, full := w.now.Space, w.now.Space >= 0 && w.now.Space < w.now.Needed
	w.now.Space, w.now.Needed = w.box.Room()
	if space != w.now.Space {
		changed = changed || full != (w.now.Space >= 0 && w.now.Space < w.now.Needed)
	}
	return w.lock(at, locks) || changed
}

// lockName is the file that a transaction locks.
const lockName = ".inbox-lock"

// lock notes who has kept the lock since the last look, with nothing committed
// meanwhile.
func (w *watched) lock(at time.Time, locks host.Locks) bool {
	holder := locks.Holder(filepath.Join(w.box.Dir(), lockName))
	if holder != w.holder { // the kernel may leave a lock out of its list for a moment
		holder = w.box.Lock()
	}
	if holder == 0 || holder != w.holder || w.read.After(w.held) {
		w.holder, w.held = holder, at
		holder = 0
	}
	if holder == w.now.LockedBy {
		return false
	}
	w.now.LockedBy, w.now.LockedName, w.now.LockedFor = holder, survey.ProcessName(holder), livesEvery
	return true
}

// questions looks what runs ask a person, if any of their journals changed.
func (w *watched) questions() bool {
	now := runSign(w.box, w.driven)
	if now.equal(w.runs) {
		return false
	}
	before := len(w.now.Held)
	w.driven, w.now.Held = nil, nil
	if hasRuns(w.box.Dir()) {
		w.driven, _, _ = orchestrate.Driven(w.box) // what cannot be read asks nothing
		w.now.Held = survey.Questions(w.box)
	}
	w.runs = runSign(w.box, w.driven)
	return before > 0 || len(w.now.Held) > 0
}

// deadLetters counts the open ones, if their file changed.
func (w *watched) deadLetters() bool {
	now := sign{markOf(w.box.DeadLetterPath())}
	if now.equal(w.letters) {
		return false
	}
	w.letters = now
	letters, err := w.box.CountLetters(context.Background())
	warnings := letters.Warnings
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	w.now.Notes = append(append([]string(nil), w.now.Warnings...), warnings...)
	w.now.DeadLetters = letters.All()
	return true
}

const (
	// costsEvery is how often it is read what was spent, at most: meters change at every
	// request.
	costsEvery = 5 * time.Second
	// mostCosts is how long a file of charges may be that is read to add what is not
	// charged yet. Of a longer one the account in the journal is enough.
	mostCosts = 4 << 20
)

// spent reads what was spent today, if that may have changed.
func (w *watched) spent(at time.Time) bool {
	day, now := at.Local().Format(time.DateOnly), costSign(w.box)
	anew := day != w.day || len(w.costs) == 0 || now[0] != w.costs[0] // something was charged
	if !anew && (now.equal(w.costs) || at.Sub(w.charged) < costsEvery) {
		return false
	}
	w.costs, w.charged, w.day = now, at, day
	before := w.now.Today
	if !markOf(filepath.Join(w.box.Dir(), ".inbox-journal")).there() {
		w.now.Today = price.Amount{}
	} else if spent, err := today(w.box, day); err == nil { // otherwise the state is what is shown
		w.now.Today = spent
	}
	return w.now.Today != before
}

func today(box *inbox.Inbox, day string) (price.Amount, error) {
	if size := markOf(filepath.Join(box.Dir(), costsName)).size; size > 0 && size <= mostCosts {
		p, err := box.Prices(meterOf(box.Dir()))
		if err != nil {
			return price.Amount{}, err
		}
		return p.Today(), nil
	}
	v, err := box.View()
	if err != nil {
		return price.Amount{}, err
	}
	a, err := v.Account()
	return a.On(day), errors.Join(err, v.Close())
}
