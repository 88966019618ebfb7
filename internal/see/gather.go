package see

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/agent"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
	recovery "heartbeat/recover"
)

// Look gathers everything that is known about an inbox; what cannot be read is a fact, too. If a process holds the
// inbox's lock, Look waits up to two seconds for its release.
func Look(ctx context.Context, box *inbox.Inbox) Facts {
	now := time.Now()
	lock := Lock{}.next(box, now) // first, so that the rest sees what this waited for
	for kept := lock; lock == kept && lock.by != 0 && !lock.lasts(now) && ctx.Err() == nil; lock = lock.next(box, now) {
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
		now = time.Now()
	}
	return LookAgain(ctx, box, &Facts{Lock: lock}, now)
}

// LookAgain is [Look] at the time now, without waiting for the lock. It counts only what was added to the queue since the
// last look, as [inbox.View.Count] does, and dead letters only once their files have changed.
func LookAgain(ctx context.Context, box *inbox.Inbox, last *Facts, now time.Time) Facts {
	lock := last.Lock.next(box, now) // first, as in Look
	f := Glance(ctx, box, last)
	f.Now, f.Lock = now, lock
	if lock.lasts(now) {
		f.LockedBy, f.LockedName, f.LockedFor = lock.by, machine.Name(lock.by), lockPatience
	}
	if f.Unreadable != nil {
		return f
	}
	f.Runs, f.Still = runsOf(box, !f.Works() && f.Paused == nil && f.Backoff == nil), StandsStill(f)
	f.outcomes = [2]disk.Info{fileState(box.DeadLetterPath()), fileState(box.ResultsPath())}
	var err error
	if last.outcomes == f.outcomes && last.Letters.Open != nil {
		f.Letters = last.Letters // to count them, both files must be read
	} else if f.Letters, err = outcomes.CountLetters(box); err != nil {
		f.Letters.Warnings = append(f.Letters.Warnings, err.Error())
	}
	f.Warnings = append(f.Warnings, f.Letters.Warnings...)
	return f
}

// fileState returns what changes with a file's content, zero for no file.
func fileState(path string) disk.Info {
	info, _ := disk.StatName(path)
	info.Atime = 0
	return info
}

// Lock is who holds the lock of an inbox, and since when nobody committed.
type Lock struct {
	by      int // 0 for nobody
	since   time.Time
	journal disk.Info // anybody may change other files of the folder meanwhile
}

func (l Lock) next(box *inbox.Inbox, now time.Time) Lock {
	by, journal := box.Lock(), fileState(filepath.Join(box.Dir(), inbox.JournalName))
	if by != l.by { // the kernel may leave a lock out of its list while others come and go
		by = box.Lock()
	}
	if by == l.by && journal == l.journal {
		return l
	}
	return Lock{by, now, journal}
}

func (l Lock) lasts(now time.Time) bool { return l.by != 0 && now.Sub(l.since) >= lockPatience }

// Glance is [LookAgain] without runs, dead letters and [Still].
func Glance(ctx context.Context, box *inbox.Inbox, last *Facts) Facts {
	f := Facts{Now: time.Now(), Inbox: box.Path(), Dir: box.Dir()}
	f.Space, f.Needed = box.Room()
	if f.Launcher = LauncherOf(box); f.Launcher == nil {
		f.GaveUp = gaveUpOf(box)
	}
	f.Unwritable = disk.MayWrite(box.Dir(), inbox.LockName)
	v, err := box.View()
	if err == nil {
		if err = survey(box, v, &f); err == nil {
			var counted *inbox.Counted
			if last != nil {
				counted = last.counted
			}
			f.Backlog, f.counted, err = v.Count(ctx, counted)
		}
		if err == nil {
			f.Scheduled, err = box.Schedule()
		}
		_ = v.Close() // only read
	}
	f.Unreadable = err
	if f.Consumers, err = outcomes.Consumers(box); err != nil {
		f.Warnings = append(f.Warnings, err.Error())
	}
	for _, c := range f.Consumers {
		if c.Err != nil {
			f.Warnings = append(f.Warnings, words.Sentence(c.Err.Error()))
		}
	}
	return f
}

// LauncherOf returns the launcher that works on the inbox, or nil.
func LauncherOf(box *inbox.Inbox) *Launcher {
	pid, said := machine.LockHolder(box.LaunchLock()), SignOf(box)
	for range 2 { // the kernel may leave a lock out of its list while others come and go
		if named, err := strconv.Atoi(said[0]); pid == 0 && err == nil && machine.ProcessStart(named) != 0 {
			pid = machine.LockHolder(box.LaunchLock())
		}
	}
	if pid == 0 {
		return nil
	}
	l := &Launcher{PID: pid, Doing: words.Line(strings.TrimSpace(said[1])), Waits: said[3] != "", Troubled: said[4] != ""}
	if path := said[2]; filepath.IsAbs(path) && words.Line(path) == path {
		l.Socket = path
	}
	return l
}

// gaveUpOf returns why the last launcher of the inbox gave up, nil if it did not.
func gaveUpOf(box *inbox.Inbox) *GaveUp {
	before, what, did := strings.Cut(SignOf(box)[1], "has ended: ")
	info, err := disk.StatName(box.LaunchLock())
	if !did || before != "" || err != nil {
		return nil
	}
	return &GaveUp{At: time.Unix(0, info.Mtime), Text: words.Sentence(what)}
}

// SignOf returns the lines in which a launcher describes itself: process id, what it does, socket, whether it waits for
// somebody to attach, whether it is in trouble. Missing lines are empty.
func SignOf(box *inbox.Inbox) []string {
	text, _ := disk.ReadState(box.LaunchLock(), 4096) // its process id is enough
	return append(strings.Split(string(text), "\n"), "", "", "", "")
}

// byUrgency are the states in which a run may be, the most pressing first.
var byUrgency = []orchestrate.WaitState{
	orchestrate.Stuck, orchestrate.Left, orchestrate.Asking, orchestrate.Resting, orchestrate.AtWork, orchestrate.Asleep,
}

// runsOf returns what the runs of the inbox wait for. idle: no entry waits, is in flight or would be held back.
func runsOf(box *inbox.Inbox, idle bool) (all []Run) {
	driven, _, _ := orchestrate.Driven(box) // a ledger that is not ours names no run of ours
	for _, of := range driven {
		if of.Done {
			continue // its directory may be gone
		}
		r, err := runs.Open(of.Dir)
		if err != nil {
			all = append(all, Run{filepath.Base(of.Dir), of.Dir, orchestrate.Wait{State: orchestrate.Stuck, Text: err.Error()}})
			continue
		}
		for _, w := range (&orchestrate.Bridge{Box: box, Run: r}).Waits(idle) {
			all = append(all, Run{r.ID(), r.Dir(), w})
		}
	}
	slices.SortStableFunc(all, func(a, b Run) int {
		return cmp.Or(slices.Index(byUrgency, a.State)-slices.Index(byUrgency, b.State), a.Since.Compare(b.Since))
	})
	return all
}

// survey reads the state. After an error the facts mean nothing.
func survey(box *inbox.Inbox, v *inbox.View, f *Facts) (err error) {
	f.Exists, f.WrittenAt, f.Cursor = v.Size() >= 0, v.WrittenAt(), v.Cursor()
	f.Replaced, f.Anew, f.InFlight, f.Redeliver = v.Replaced(), v.LastReplaced(), v.InFlight(), v.Redeliver()
	f.Totals = keepError(v.Totals())(&err)
	f.Asked, f.EverAsked = f.Totals.LastAcknowledgedAt, f.Totals.Delivered > 0 || v.LastSession() != ""
	f.Head = keepError(v.Head())(&err)
	f.SelfEnqueued, f.Warnings = v.SelfEnqueued(), slices.Concat(v.Warnings(), v.ReadAgain())
	f.Paused = keepError(v.Holds().Paused())(&err)
	f.Backoff = keepError(v.Holds().Backoff())(&err)
	f.Streak = keepError(v.Holds().Streak())(&err)
	f.Spent = sync.OnceValues(func() (*book.Prices, error) { return book.Spending(box, nil) })
	a := keepError(account.Of(v).Charged())(&err)
	if limit := recovery.DayLimit(&a); limit.Any() {
		if spent, unread := f.Spent(); unread == nil {
			f.DayNear = recovery.NearDay(limit, spent.Today())
		}
	}
	for _, of := range keepError(v.Sessions())(&err) {
		f.Sessions = append(f.Sessions, Session{Session: of, Life: of.Life()})
	}
	if w := keepError(v.Waiter())(&err); w != nil {
		f.Waiter = &Waiter{Waiter: *w, Life: w.Life()}
		f.Waiter.Stopped = f.Waiter.Life == machine.Alive && machine.Stopped(w.PID)
	}
	if f.InFlight != nil {
		e := recovery.EvidenceOf(f.InFlight)
		interrupted := agent.ForTranscript(e.Transcript).Interrupted(e.Transcript, f.InFlight.PromptID, e.TranscriptSize)
		f.Client, f.Woken, f.Bound, f.Interrupted, f.Prompted = recovery.OwnerOf(v, f.InFlight).Life, e.Woken, e.Bound, interrupted, e.Prompted
	}
	return err
}

// keepError returns a function that returns the value, and stores the error unless an earlier one is there.
func keepError[T any](value T, err error) func(first *error) T {
	return func(first *error) T {
		*first = cmp.Or(*first, err)
		return value
	}
}

const (
	// lockPatience is how long a lock may be held before it is a trouble. A commit takes milliseconds.
	lockPatience = 2 * time.Second
	lockPoll     = 10 * time.Millisecond
)
