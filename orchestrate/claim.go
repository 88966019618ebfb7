package orchestrate

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

// ErrClaimed says that another inbox drives the run.
var ErrClaimed = errors.New("another inbox drives it")

// claimName is the file in the run's directory that names the inbox which drives the
// run. Two inboxes would give the same work to two agents.
const claimName = ".heartbeat-inbox"

// claim makes the run this inbox's, unless another inbox still drives it.
func (b *Bridge) claim() error {
	path := filepath.Join(b.Run.Dir(), claimName)
	text, err := disk.ReadState(path, 64<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b.writeClaim(path)
	case err != nil:
		return fmt.Errorf("claim run %s: %w", b.Run.ID(), err)
	}
	other := strings.TrimSpace(string(text))
	switch {
	case inbox.SameInbox(other, b.Box.Path()):
		return nil
	case b.drivenBy(other):
		return fmt.Errorf("run %s: %w: %s: work on that one, or remove %s", b.Run.ID(), ErrClaimed, other, path)
	}
	return b.writeClaim(path)
}

func (b *Bridge) writeClaim(path string) error {
	if err := disk.Publish(path, []byte(b.Box.Path()+"\n"), true); err != nil {
		return fmt.Errorf("claim run %s: %w", b.Run.ID(), err)
	}
	return nil
}

// drivenBy reports whether another inbox has a ledger of this run that is not done.
func (b *Bridge) drivenBy(other string) bool {
	l, err := readLedger(filepath.Join(filepath.Dir(other), filepath.Base(ledgerPath(b.Box, b.Run))))
	return err == nil && l.Dir == b.Run.Dir() && !l.Done
}
