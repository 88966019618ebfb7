package orchestrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// ledger is what a bridge remembers of a run, to save work in the next step.
type ledger struct {
	Run     string  `json:"run_id"`
	Dir     string  `json:"run_dir"`
	Made    string  `json:"made,omitempty"` // see [Bridge.incarnation]; "" in the ledger of an older release
	Options Options `json:"options"`
	// Lock is the identity of the lock's file beside the ledger. Nobody can know that in advance, so a ledger that
	// came with a repository or a copy has another identity.
	Lock string `json:"lock,omitempty"`
	// Head is the last event of the journal when the process last ran, and Wants are the effects that the process
	// then waited for. Until the journal grows, the process can want nothing else.
	Head    int                  `json:"head_seq"`
	Wants   []want               `json:"wants,omitempty"`
	Effects map[string]madeEntry `json:"effects,omitempty"`
	Failure madeEntry            `json:"failure"`            // entry about the last failure, and the event of that failure
	Past    int                  `json:"past_seq,omitempty"` // event of a failure from which the process recovered
	Finish  madeEntry            `json:"finish"`
	Done    bool                 `json:"done,omitempty"`
	Steps   int                  `json:"steps"`
	// Guard is why the last step stopped the run, or "".
	Guard string     `json:"guard,omitempty"`
	Rests standstill `json:"rests,omitzero"`
	// Stuck is why the last step failed.
	Stuck standstill `json:"stuck,omitzero"`

	kept []byte // the content of the file
}

func (l *ledger) outOfSteps() bool {
	return l.Guard != "" && l.Options.MaxSteps > 0 && l.Steps >= l.Options.MaxSteps
}

// dropped reports whether the process is known to wait for a pending effect no more: it ended, or took another branch.
func (l *ledger) dropped(st run.State, effect string) bool {
	wanted := slices.ContainsFunc(l.Wants, func(w want) bool { return w.Effect == effect })
	return st.Status == run.Completed || st.Moved == l.Head && len(l.Wants) > 0 && !wanted
}

// wakes returns when a sleep ends, zero if no step has asked that yet.
func (l *ledger) wakes(effect string) (until time.Time) {
	for _, w := range l.Wants {
		if w.Effect == effect {
			until = w.Until
		}
	}
	return until
}

// want is an effect that the process waits for.
type want = babysitter.Action

// madeEntry is the entry that was made for an effect, or about the run.
type madeEntry struct {
	Entry string    `json:"entry,omitempty"` // the entry's id
	Nth   int       `json:"nth,omitempty"`   // which attempt, from 1
	Seq   int       `json:"seq,omitempty"`   // event of the failure that it is about
	Over  string    `json:"over,omitempty"`  // why it waits for a person
	Since time.Time `json:"since,omitzero"`
}

const (
	ledgerPrefix, ledgerSuffix = ".run-", ".json"

	// maxLedger is more than any ledger needs: each effect takes a hundred bytes.
	maxLedger = 16 << 20
)

// ledgerPath returns the path of a run's ledger. A run's id is a valid file name: babysitter named a folder after it.
func ledgerPath(box *inbox.Inbox, r *run.Run) string {
	return filepath.Join(box.Dir(), ledgerPrefix+filepath.Base(r.ID())+ledgerSuffix)
}

// Stepping reports whether somebody is taking a step of one of these runs.
func Stepping(box *inbox.Inbox, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return machine.LockHolder(lockPath(filepath.Join(box.Dir(), ledgerPrefix+filepath.Base(dir)+ledgerSuffix))) != 0
	})
}

func lockPath(ledger string) string { return ledger + ".lock" }

// readLedger reads a ledger that was made here. The error matches [fs.ErrNotExist] if there is none, and
// [errForeign] if the file was made elsewhere or is not a ledger.
func readLedger(path string) (*ledger, error) {
	text, err := disk.ReadState(path, maxLedger)
	if err != nil {
		return nil, err
	}
	l := &ledger{kept: text}
	if json.Unmarshal(text, l) != nil || l.Dir == "" || l.Lock == "" {
		return nil, errForeign
	}
	f, err := disk.OpenRead(lockPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errForeign
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if f.Identity() != l.Lock {
		return nil, errForeign
	}
	if l.Effects == nil {
		l.Effects = map[string]madeEntry{}
	}
	return l, nil
}

// errForeign says that a ledger was not made where it stands.
var errForeign = errors.New("it was not made here")

// incarnation tells a run from a removed one of the same id: each has a proof of its own.
func (b *Bridge) incarnation() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(b.Run.Proof())))[:8]
}

// loadLedger reads the ledger. It begins a new ledger if the file is missing, was made elsewhere, or belongs to another
// run of the same id. The loss of a ledger only makes work be done twice.
func (b *Bridge) loadLedger() (*ledger, error) {
	fresh := &ledger{Run: b.Run.ID(), Dir: b.Run.Dir(), Made: b.incarnation(), Effects: map[string]madeEntry{}}
	l, err := readLedger(ledgerPath(b.Box, b.Run))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errForeign), errors.Is(err, disk.ErrTooLarge):
		return fresh, nil
	case err != nil:
		return nil, fmt.Errorf("read the ledger of run %s: %w", b.Run.ID(), err)
	case l.Dir != b.Run.Dir() && !l.Done && exists(filepath.Join(l.Dir, "run.json")):
		return nil, fmt.Errorf("run %s: this inbox drives the run of that id in %s: name it by that path, or use another inbox for another run", b.Run.ID(), l.Dir)
	case l.Run != b.Run.ID() || l.Dir != b.Run.Dir() || l.Made != "" && l.Made != fresh.Made:
		return fresh, nil
	case l.Done: // unless the folder is that of an earlier day, or another run's
		if st, err := b.Run.State(); err == nil && (st.Status == run.Created || st.Status == run.Waiting) {
			return fresh, nil
		}
	}
	return l, nil
}

// save publishes the ledger of a step that holds the lock.
func (b *Bridge) save(l *ledger, lock *disk.Lock) error {
	l.Lock, l.Made = lock.Identity(), b.incarnation()
	text, err := json.Marshal(l)
	if text = append(text, '\n'); err == nil && !bytes.Equal(text, l.kept) {
		err = disk.Publish(ledgerPath(b.Box, b.Run), text, true)
	}
	if err != nil {
		return fmt.Errorf("write the ledger of run %s: %w", b.Run.ID(), err)
	}
	return nil
}

// stepWait is how long a step waits for another step of the same run, whose process may be running.
const stepWait = 2 * time.Minute

func (b *Bridge) lock(ctx context.Context, wait time.Duration) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(ctx, lockPath(ledgerPath(b.Box, b.Run)), wait)
	if err != nil {
		return nil, fmt.Errorf("take a step of run %s: %w", b.Run.ID(), err)
	}
	return lock, nil
}

// begin claims the run for this inbox and reads its ledger. Unless begin fails, the caller releases the lock.
func (b *Bridge) begin(ctx context.Context, wait time.Duration) (l *ledger, lock *disk.Lock, err error) {
	if lock, err = b.lock(ctx, wait); err != nil {
		return nil, nil, err
	}
	if err = b.claim(); err == nil {
		l, err = b.loadLedger()
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release())
	}
	return l, lock, nil
}

// DrivenRun is a run that was driven through an inbox, and how.
type DrivenRun struct {
	Dir  string
	Done bool // completed, and its proof was given or a person said so
	Options
	// Waits are the ids of the entries whose outcome the run waits for.
	Waits []string
}

// Driven returns the runs that were driven through an inbox. strange names the ledgers beside the inbox that were made
// elsewhere and so are ignored.
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
		driven := DrivenRun{Dir: l.Dir, Done: l.Done, Options: l.Options}
		for _, w := range l.Wants {
			if entry := l.Effects[w.Effect].Entry; entry != "" {
				driven.Waits = append(driven.Waits, entry)
			}
		}
		all = append(all, driven)
	}
	return all, strange, err
}

// claimName, in the run's directory, names the inbox driving the run. Two would give the same work to two agents.
const claimName = ".heartbeat-inbox"

// claim claims the run for this inbox, unless another inbox still drives it.
func (b *Bridge) claim() error {
	path := filepath.Join(b.Run.Dir(), claimName)
	by, err := b.claimedBy()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist): // returned below
	case err == nil && inbox.SameInbox(by, b.Box.Path()):
		return nil
	case b.drivenBy(by):
		return fmt.Errorf("run %s: another inbox drives it: %s: work on that one, or remove %s", b.Run.ID(), by, path)
	default:
		err = disk.Publish(path, []byte(b.Box.Path()+"\n"), true)
	}
	if err != nil {
		return fmt.Errorf("claim run %s: %w", b.Run.ID(), err)
	}
	return nil
}

// claimedBy returns the inbox that the run's directory names.
func (b *Bridge) claimedBy() (string, error) {
	text, err := disk.ReadState(filepath.Join(b.Run.Dir(), claimName), 64<<10)
	return strings.TrimSpace(string(text)), err
}

// drivenBy reports whether another inbox has a ledger of this run that is not done.
func (b *Bridge) drivenBy(other string) bool {
	if other == "" || inbox.SameInbox(other, b.Box.Path()) {
		return false
	}
	l, err := readLedger(filepath.Join(filepath.Dir(other), filepath.Base(ledgerPath(b.Box, b.Run))))
	return err == nil && l.Dir == b.Run.Dir() && !l.Done
}
