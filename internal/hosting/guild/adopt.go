package guild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
)

const (
	// maxReports is how many files are listed in one folder.
	maxReports = 10_000
	// maxAdopted is the largest file that is taken over, in bytes.
	maxAdopted = 256 << 20
)

// Adopt takes over the reports that the babysitter or an older release has left in the folder dlq.
// A record stays in its file until it is sent. bad lists files that are no reports; they stay.
func (b Outbox) Adopt(ctx context.Context) (bad []DrainOutcome, err error) {
	if there, err := disk.Exists(b.dir); err != nil || !there {
		return nil, err
	}
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("read the unsent reports: %w", err)
	}
	for _, dir := range []string{filepath.Join(b.dir, "running"), b.dir} {
		names, _, namesErr := disk.Names(dir, maxReports)
		if errors.Is(namesErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, namesErr)
		for _, name := range names {
			if !strings.HasSuffix(name, ".json") {
				continue
			}
			path := filepath.Join(dir, name)
			switch wrong := b.adopt(ctx, path); {
			case errors.Is(wrong, fs.ErrNotExist): // another process took it
			case wrong != nil:
				bad = append(bad, DrainOutcome{Path: path, Problem: wrong.Error(), What: ReportBad, Why: wrong.Error()})
			}
		}
	}
	// Those marks meant refusals: such a report is sent once more, which does no harm.
	return bad, errors.Join(err, os.RemoveAll(filepath.Join(b.dir, "refused")))
}

// adopt takes one file over, unless it was written for a known report.
func (b Outbox) adopt(ctx context.Context, path string) error {
	session := strings.TrimSuffix(filepath.Base(path), ".json")
	if _, known, err := b.db.Report(ctx, session, store.Record); err != nil || known && path == b.Path(session) {
		return err
	}
	text, err := disk.ReadState(path, maxAdopted)
	if err != nil {
		return err
	}
	var report struct {
		SessionID string `json:"sessionId"`
		Status    string `json:"status"`
		Error     string `json:"error"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("it is no report: %w", err)
	}
	r := store.Report{Session: report.SessionID, Kind: store.Record, Status: report.Status, Error: report.Error, Head: string(text), Last: store.Whole}
	if report.Status == "" { // a running report taken for a record would end the session without a status
		r.Kind, session = store.Running, strings.TrimSuffix(session, "-running")
	}
	if folder.CheckID(r.Session) != nil || r.Session != session {
		return fmt.Errorf("the file is named after another session than %q, which it is about", r.Session)
	}
	if r, err = b.db.Decide(ctx, r, nil); err != nil {
		return err
	}
	if r.Kind == store.Running {
		return disk.Remove(path)
	}
	r.File = true
	return b.db.Fared(ctx, r)
}

// Check refuses a folder of reports that others could have put there or could change: they could read what
// sessions said, and forge what guilds are told. A missing folder is made when it is needed.
func (b Outbox) Check() error {
	for _, dir := range []string{b.dir, filepath.Join(b.dir, "running"), filepath.Join(b.dir, "refused")} {
		if err := check(dir); err != nil {
			return err
		}
	}
	return nil
}

func check(dir string) error {
	info, err := disk.StatName(dir)
	me := uint32(os.Geteuid())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), err == nil && !info.IsDir && !info.IsLink: // writers say so
		return nil
	case err != nil:
		return fmt.Errorf("look at the folder of unsent reports: %w", err)
	case info.IsLink:
		return fmt.Errorf("%s is a symbolic link, which is never followed for unsent reports: put a folder in its place: %w", dir, disk.ErrForeign)
	case info.UID != me && info.UID != 0 && (me != 0 || !folder.OwnsParent(dir, info.UID)):
		return fmt.Errorf("%s, the folder of unsent reports, belongs to user %d, and this is user %d: move it away, or work as that user: %w", dir, info.UID, me, disk.ErrForeign)
	case info.Mode&0o002 != 0:
		return fmt.Errorf("everybody may write to %s, the folder of unsent reports (mode %04o): take that right away (chmod o-w %[1]s): %[3]w", dir, info.Mode, disk.ErrForeign)
	}
	return nil
}
