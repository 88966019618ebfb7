package meter

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/disk"
)

// Reading is of which session the transcript is to be counted, and how.
type Reading struct {
	Session, Transcript string
	// Wait is how long the reading waits for another one, 0 for two seconds. One that comes too
	// late is caught up on by the next.
	Wait time.Duration
	// Final says that the process has ended: what the transcript does not have now it
	// will not get.
	Final bool
}

// lockWait is how long one reading waits for another, unless it says.
const lockWait = 2 * time.Second

// Advance counts what a session's transcript has since the last time, writes the file in dir, the
// folder of its inbox, and returns the state. A transcript that cannot be read is an error too,
// beside a state in which the rest is booked.
func Advance(dir string, r Reading) (s *State, err error) {
	if err := named(r.Session); err != nil {
		return nil, err
	}
	lock, err := disk.AcquireLock(context.Background(), filepath.Join(dir, Name), cmp.Or(r.Wait, lockWait))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	all, err := readLines(lock.File())
	if err != nil {
		return nil, err
	}
	s = stateIn(all, r.Session)
	err = s.advance(r)
	return s, errors.Join(err, writeLines(lock.File(), all, s))
}

// Look is what [Advance] would count, and writes nothing: for those who only look. A transcript that
// the count does not know is the one that is given.
func Look(dir, session, transcript string) (*State, error) {
	if err := named(session); err != nil {
		return nil, err
	}
	all, err := load(dir)
	if err != nil {
		return nil, err
	}
	s := stateIn(all, session)
	return s, s.advance(Reading{Session: session, Transcript: cmp.Or(s.Transcript, transcript)})
}

func named(session string) error {
	if session == "" || len(session) > 256 {
		return errors.New("count what a session spends: it has no name, or one of more than 256 bytes")
	}
	return nil
}

func (s *State) advance(r Reading) error {
	s.move(r.Transcript)
	limit := int64(maxRead)
	if r.Final {
		limit = maxFinal
	}
	err := errors.Join(s.count(limit), s.tableErr)
	s.forget()
	s.derive()
	return err
}

// Prune removes the files of earlier releases, which had one for each session. One with such a name
// that no meter wrote stays.
func Prune(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	names, _, err := disk.Names(dir, 10_000)
	for _, name := range names {
		if !strings.HasPrefix(name, Name+"-") {
			continue
		}
		path := filepath.Join(dir, name)
		if info, errStat := disk.StatName(path); errStat == nil && info.IsRegular && isOld(path) {
			err = errors.Join(err, disk.Remove(path))
		}
	}
	return err
}

// isOld reports whether a file begins, or has a second half that begins, as an earlier release wrote it:
// a line of three hexadecimal numbers.
func isOld(path string) bool {
	f, err := disk.OpenRead(path)
	if err != nil {
		return false
	}
	defer f.Close() // it was only read
	for _, at := range [...]int64{0, 512 << 10} {
		var head [43]byte
		n, _ := f.ReadAt(head[:], at)
		if fields := strings.Fields(string(head[:n])); n == len(head) && head[n-1] == '\n' && len(fields) == 3 {
			return true
		}
	}
	return false
}
