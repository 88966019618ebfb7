package meter

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/price"
)

// Reading is what somebody knows of a session at a moment. Its session and transcript
// suffice: then the transcript tells the tokens.
type Reading struct {
	Session, Transcript string
	// Client names the process that said Total, in billionths of a dollar, by
	// whatever distinguishes it from all others: see [ClientName].
	Client   string
	Total    int64
	HasTotal bool
	// Usage is that of its last request, nil if it does not say.
	Usage *price.Tokens

	Model          string
	ContextPercent float64 // negative if unknown
	// Wait is how long the reading waits for another of the same session, 0 for two
	// seconds. One that comes too late is caught up on by the next.
	Wait time.Duration
	// Final says that the process has ended: what the transcript does not have now it
	// will not get.
	Final bool
}

// ClientName names a process for good: by the boot, its pid, and when it started in
// ticks since then.
func ClientName(boot string, pid int, start int64) string {
	return boot + "/" + strconv.Itoa(pid) + "/" + strconv.FormatInt(start, 10)
}

// lockWait is how long one reading waits for another of the same session, unless it says.
const lockWait = 2 * time.Second

// Advance counts what a session's transcript has since the last time, books what a
// reading says, writes the file in dir, and returns the state. A transcript that
// cannot be read is an error too, beside a state in which the rest is booked.
func Advance(dir string, r Reading) (s *State, err error) {
	if r.Session == "" || len(r.Session) > 256 {
		return nil, errors.New("count what a session spends: it has no name, or one of more than 256 bytes")
	}
	path := filepath.Join(dir, Name(r.Session))
	lock, err := disk.AcquireLock(context.Background(), path, cmp.Or(r.Wait, lockWait))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	old := newest(lock.File())
	if s = old.state(r.Session); s == nil {
		s = begun(r.Session, strconv.FormatUint(rand.Uint64(), 36))
		prune(dir)
	}
	err = s.advance(r)
	return s, errors.Join(err, old.replace(lock.File(), s.encode()))
}

func (s *State) advance(r Reading) error {
	s.move(r.Transcript)
	limit := int64(maxRead)
	if r.Final {
		limit = maxFinal
	}
	err := errors.Join(s.count(limit), s.tableErr)
	if r.Model != "" {
		s.Model = clip(r.Model)
	}
	if r.HasTotal {
		s.At = time.Now()
		s.ContextPercent = r.ContextPercent
		s.say(r)
	}
	s.forget()
	s.derive()
	return err
}

// keep is how long the file of a session is kept that nothing was heard of. A session
// that is resumed later is counted anew.
const keep = 60 * 24 * time.Hour

// prune removes old files. It is done once a session, so that it may take its time.
func prune(dir string) {
	_ = Prune(dir, time.Now().Add(-keep), nil) // the next session tries again
}

// Prune removes the files in dir of which nothing was heard since, but for those of some
// sessions. A session that goes on one day is counted anew. A file with such a name that no
// meter wrote stays.
func Prune(dir string, before time.Time, keep []string) error {
	names, _, err := disk.Names(dir, 10_000)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, session := range keep {
		kept[Name(session)] = true
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) || kept[name] {
			continue
		}
		path := filepath.Join(dir, name)
		if info, errStat := disk.StatName(path); errStat == nil && info.IsRegular && info.Mtime < before.UnixNano() && isOurs(path) {
			err = errors.Join(err, disk.Remove(path))
		}
	}
	return err
}

// isOurs reports whether a file has a slot that a meter wrote.
func isOurs(path string) bool {
	f, err := disk.OpenRead(path)
	if err != nil {
		return false
	}
	defer f.Close() // it was only read
	return newest(f).number > 0
}
