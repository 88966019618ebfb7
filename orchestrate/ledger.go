package orchestrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
	Over  string    `json:"over,omitempty"`  // why no more is made of it
	Since time.Time `json:"since,omitzero"`
}

// ledgerPath is where the ledger of a run is kept. A run's id is the name of a
// file, or babysitter could not have made it.
func ledgerPath(box *inbox.Inbox, r *run.Run) string {
	return filepath.Join(box.Dir(), ".run-"+filepath.Base(r.ID())+".json")
}

// cachePath is where what the journal came to is kept.
func cachePath(box *inbox.Inbox, r *run.Run) string { return ledgerPath(box, r) + ".state" }

// open reads the ledger. One that is not there, not ours, or of another run by the
// same id is begun anew: nothing depends on it but work that is done twice.
func (b *Bridge) open() (*ledger, error) {
	path := ledgerPath(b.Box, b.Run)
	f, err := disk.OpenRead(path)
	fresh := &ledger{Run: b.Run.ID(), Dir: b.Run.Dir(), Effects: map[string]asked{}}
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger of run %s: %w", b.Run.ID(), err)
	}
	defer func() { _ = f.Close() }() // only read
	text, err := f.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the ledger of run %s: %w", b.Run.ID(), err)
	}
	l := &ledger{kept: text}
	if json.Unmarshal(text, l) == nil && l.Dir != "" && l.Dir != b.Run.Dir() && !l.Done && isThere(filepath.Join(l.Dir, "run.json")) {
		return nil, fmt.Errorf("run %s: this inbox drives another run of that id, %s: use another inbox for one of them", b.Run.ID(), l.Dir)
	}
	if json.Unmarshal(text, l) != nil || l.Run != b.Run.ID() || l.Dir != b.Run.Dir() {
		return fresh, nil
	}
	if l.Effects == nil {
		l.Effects = map[string]asked{}
	}
	return l, nil
}

func (b *Bridge) save(l *ledger) error {
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

func (b *Bridge) lock(ctx context.Context) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(ctx, ledgerPath(b.Box, b.Run)+".lock", stepWait)
	if err != nil {
		return nil, fmt.Errorf("take a step of run %s: %w", b.Run.ID(), err)
	}
	return lock, nil
}
