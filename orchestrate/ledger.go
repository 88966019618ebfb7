package orchestrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/orchestrate/run"
	"heartbeat/orchestrate/session"
)

// ledger is what a bridge remembers of a run, so that it need not look again.
type ledger struct {
	Run     string  `json:"run_id"`
	Dir     string  `json:"run_dir"`
	Options Options `json:"options"`
	// Lock is the identity of the lock's file beside it, which nobody can know
	// beforehand: a ledger that came with a repository or a copy has another one.
	Lock string `json:"lock,omitempty"`
	// Head is the journal's last event as the process was run last, and Wants what it
	// then waited for. Nothing else can be wanted before the journal grows.
	Head     int              `json:"head_seq"`
	Wants    []want           `json:"wants,omitempty"`
	Effects  map[string]asked `json:"effects,omitempty"`
	Failure  asked            `json:"failure"`            // the entry about the last failure, and its event
	Past     int              `json:"past_seq,omitempty"` // the event of a failure that the process got over
	Finish   asked            `json:"finish"`
	Done     bool             `json:"done,omitempty"`
	Steps    int              `json:"steps"`
	Progress session.Progress `json:"progress"`
	// Guard is why the last step went no further.
	Guard string `json:"guard,omitempty"`

	kept []byte // what the file holds
}

// want is an effect that the process waits for.
type want struct {
	Effect string    `json:"effect"`
	Kind   string    `json:"kind"`
	Until  time.Time `json:"until,omitzero"` // of a sleep
}

// asked is what was made of it.
type asked struct {
	Entry string    `json:"entry,omitempty"` // the id of its entry
	Nth   int       `json:"nth,omitempty"`   // which one that is
	Seq   int       `json:"seq,omitempty"`   // the event that it is about, of a failure
	Over  string    `json:"over,omitempty"`  // why the last step made no more of it
	Since time.Time `json:"since,omitzero"`
}

const (
	ledgerPrefix, ledgerSuffix = ".run-", ".json"

	// maxLedger is more than any ledger has: a hundred bytes for each effect.
	maxLedger = 64 << 20
)

// ledgerPath is where the ledger of a run is kept. A run's id is the name of a
// file, or babysitter could not have made it.
func ledgerPath(box *inbox.Inbox, r *run.Run) string {
	return filepath.Join(box.Dir(), ledgerPrefix+filepath.Base(r.ID())+ledgerSuffix)
}

// cachePath is where what the journal came to is kept.
func cachePath(box *inbox.Inbox, r *run.Run) string { return ledgerPath(box, r) + ".state" }

func lockPath(ledger string) string { return ledger + ".lock" }

// readLedger reads a ledger that was made here. The error matches [fs.ErrNotExist]
// where there is none, and [errStrange] where it is one of elsewhere, or none at all.
func readLedger(path string) (*ledger, error) {
	text, err := disk.ReadState(path, maxLedger)
	if err != nil {
		return nil, err
	}
	l := &ledger{kept: text}
	if json.Unmarshal(text, l) != nil || l.Dir == "" || l.Lock == "" {
		return nil, errStrange
	}
	f, err := disk.OpenRead(lockPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errStrange
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if f.Identity() != l.Lock {
		return nil, errStrange
	}
	if l.Effects == nil {
		l.Effects = map[string]asked{}
	}
	return l, nil
}

// errStrange says that a ledger is not one that was made where it stands.
var errStrange = errors.New("it was not made here")

// open reads the ledger. One that is not there, not made here, or of another run by
// the same id is begun anew: nothing depends on it but work that is done twice.
func (b *Bridge) open() (*ledger, error) {
	fresh := &ledger{Run: b.Run.ID(), Dir: b.Run.Dir(), Effects: map[string]asked{}}
	l, err := readLedger(ledgerPath(b.Box, b.Run))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errStrange), errors.Is(err, disk.ErrTooLarge):
		return fresh, nil
	case err != nil:
		return nil, fmt.Errorf("read the ledger of run %s: %w", b.Run.ID(), err)
	case l.Dir != b.Run.Dir() && !l.Done && isThere(filepath.Join(l.Dir, "run.json")):
		return nil, fmt.Errorf("run %s: this inbox drives another run of that id, %s: use another inbox for one of them", b.Run.ID(), l.Dir)
	case l.Run != b.Run.ID() || l.Dir != b.Run.Dir():
		return fresh, nil
	}
	return l, nil
}

// save publishes the ledger of a step that holds the lock.
func (b *Bridge) save(l *ledger, lock *disk.Lock) error {
	l.Lock = lock.Identity()
	text, err := json.Marshal(l)
	if text = append(text, '\n'); err == nil && !bytes.Equal(text, l.kept) {
		err = disk.Publish(ledgerPath(b.Box, b.Run), text, true)
	}
	if err != nil {
		return fmt.Errorf("write the ledger of run %s: %w", b.Run.ID(), err)
	}
	return nil
}

// stepWait is how long a step waits for another one of the same run: the process
// may be running.
const stepWait = 2 * time.Minute

func (b *Bridge) lock(ctx context.Context, wait time.Duration) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(ctx, lockPath(ledgerPath(b.Box, b.Run)), wait)
	if err != nil {
		return nil, fmt.Errorf("take a step of run %s: %w", b.Run.ID(), err)
	}
	return lock, nil
}

// DrivenRun is a run that was driven by way of an inbox.
type DrivenRun struct {
	Dir string
	Options
}

// Driven are the runs that were driven by way of an inbox, and strange the names of
// the ledgers beside it that were not made there, which nothing is taken from.
func Driven(box *inbox.Inbox) (all []DrivenRun, strange []string, err error) {
	names, err := os.ReadDir(box.Dir())
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), ledgerPrefix) || !strings.HasSuffix(n.Name(), ledgerSuffix) {
			continue
		}
		l, err := readLedger(filepath.Join(box.Dir(), n.Name()))
		if err != nil {
			strange = append(strange, n.Name())
			continue
		}
		all = append(all, DrivenRun{l.Dir, l.Options})
	}
	return all, strange, err
}
