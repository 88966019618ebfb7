package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
)

// maxLetters is how many letters are listed in one folder.
const maxLetters = 10_000

// Letter is a report that waits to be sent.
type Letter struct {
	Kind      Kind      `json:"kind,omitempty"`
	SessionID string    `json:"sessionId,omitempty"`
	Status    string    `json:"status,omitempty"` // of a record
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	Since     time.Time `json:"since"`
	// Cwd is the working directory that the letter was found below; empty for a letter
	// beside the database.
	Cwd string `json:"cwd,omitempty"`
	// Problem is why the file is never sent; empty for a letter that is whole.
	Problem string `json:"problem,omitempty"`
	// Refused is how the guild refused the letter; nil if it did not.
	Refused *Refusal `json:"refused,omitempty"`

	running []byte // a foreign running report, rebuilt from what was understood of it
}

// List returns the letters beside the database, running reports first, each by its
// age. more says that there are others, beyond 10,000 in one folder.
func (b Box) List() (letters []Letter, more bool, err error) {
	for _, dir := range []string{filepath.Join(b.dir, "running"), b.dir} {
		found, others, err := b.list(dir, "")
		if err != nil {
			return nil, false, fmt.Errorf("list the dead letters: %w", err)
		}
		letters, more = append(letters, found...), more || others
	}
	order(letters)
	return letters, more, nil
}

// ListBelow returns the letters of the babysitter below a working directory, as
// [Box.List] does. There an agent can write: no link is followed, and a letter whose
// name is not its session's has a problem.
func (b Box) ListBelow(cwd string) (letters []Letter, more bool, err error) {
	info, err := disk.StatName(filepath.Join(cwd, ".nexus"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir {
		return nil, false, nil
	}
	if err == nil {
		letters, more, err = b.list(filepath.Join(cwd, ".nexus", "dlq"), cwd)
	}
	if err != nil {
		return nil, false, fmt.Errorf("list the dead letters below %s: %w", cwd, err)
	}
	order(letters)
	return letters, more, nil
}

func order(letters []Letter) {
	slices.SortStableFunc(letters, func(x, y Letter) int {
		if (x.Kind == Running) != (y.Kind == Running) {
			if x.Kind == Running {
				return -1
			}
			return 1
		}
		if c := x.Since.Compare(y.Since); c != 0 {
			return c
		}
		return strings.Compare(x.Path, y.Path)
	})
}

func (b Box) list(dir, cwd string) (letters []Letter, more bool, err error) {
	names, more, err := disk.Names(dir, maxLetters)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	foreign := int64(0)
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		l := Letter{Path: filepath.Join(dir, name), Cwd: cwd}
		err := l.read(maxForeignTotal - foreign)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another drain was here
		}
		if l.foreign() {
			foreign += l.Size
		}
		if err != nil {
			l.Problem = err.Error()
		} else {
			l.Refused = b.refusal(&l)
		}
		letters = append(letters, l)
	}
	return letters, more, nil
}

func (l *Letter) foreign() bool { return l.Cwd != "" }

func (l *Letter) open() (*disk.File, error) {
	f, err := disk.OpenRead(l.Path)
	if err != nil {
		return nil, err
	}
	limit := int64(maxOwn)
	if l.foreign() && f.Info().Links > 1 { // what it holds is told to others, and the agent can name any file
		return nil, errors.Join(fmt.Errorf("open %s: the file has %d names: %w", l.Path, f.Info().Links, disk.ErrForeign), f.Close())
	}
	if l.foreign() {
		limit = maxForeign
	}
	if f.Info().Size > limit {
		return nil, errors.Join(fmt.Errorf("open %s: it is over %d MiB", l.Path, limit>>20), f.Close())
	}
	return f, nil
}

// read finds out what a file holds. The kind is what the content says, never what the
// name says alone: a running report taken for a record would end the session without a
// status.
//
// left is how many bytes may still be read where an agent can write.
func (l *Letter) read(left int64) error {
	f, err := l.open()
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	if l.foreign() && f.Info().Size > left {
		return fmt.Errorf("the letters below %s are over %d MiB together: move some away", l.Cwd, maxForeignTotal>>20)
	}
	l.Size, l.Since = f.Info().Size, time.Unix(0, f.Info().Mtime)
	envelope, err := guild.ReadEnvelope(io.NewSectionReader(f, 0, l.Size))
	if err != nil {
		return err
	}
	l.SessionID, l.Status, l.Kind = envelope.SessionID, envelope.Status, Record
	name := strings.TrimSuffix(filepath.Base(l.Path), ".json")
	if envelope.Status == "" {
		l.Kind = Running
		if l.foreign() || filepath.Base(filepath.Dir(l.Path)) != "running" {
			name = strings.TrimSuffix(name, "-running")
		}
	}
	if folder.CheckID(l.SessionID) != nil || name != l.SessionID {
		return fmt.Errorf("the file is named after another session than %q, which it is about", l.SessionID)
	}
	if l.Kind == Running && l.foreign() {
		return l.understand(f)
	}
	return nil
}

// understand rebuilds a running report from a place where an agent can write. It names
// the process group that the guild will signal, so that has to be shown first.
func (l *Letter) understand(f *disk.File) error {
	if l.Size > 1<<20 {
		return errors.New("it is too large for a running report")
	}
	text, err := f.ReadUpTo(1 << 20)
	if err != nil {
		return err
	}
	var r guild.Running
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&r); err != nil {
		return err
	}
	if r.SessionID != l.SessionID {
		return errors.New("it names two sessions")
	}
	if !runsIn(r.Cancel.PGID, l.Cwd) {
		return fmt.Errorf("its process group %d is none that runs in %s", r.Cancel.PGID, l.Cwd)
	}
	r.Cancel, r.Socket = guild.LocalGroup(r.Cancel.PGID), ""
	l.running, err = json.Marshal(r)
	return err
}

// remove removes the letter unless another one has its name by now.
func (l *Letter) remove(sent *disk.File) error {
	now, err := disk.StatName(l.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Ino != sent.Info().Ino {
		return nil
	}
	if err != nil {
		return err
	}
	return disk.Remove(l.Path)
}
