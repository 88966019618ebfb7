package unsent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// Adopt takes over the reports that the babysitter or an older release has left in the
// folder dlq. A record stays in its file until it was sent. bad are files that are no
// report, which stay.
func (b Box) Adopt(ctx context.Context) (bad []Report, err error) {
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
			case errors.Is(wrong, fs.ErrNotExist): // another one was here
			case wrong != nil:
				bad = append(bad, Report{Path: path, Problem: wrong.Error()})
			}
		}
	}
	// Those marks said what was refused: such a report is sent once more, which does no harm.
	return bad, errors.Join(err, os.RemoveAll(filepath.Join(b.dir, "refused")))
}

// adopt takes one file over, unless it was written for a report that is known.
func (b Box) adopt(ctx context.Context, path string) error {
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
	if report.Status == "" { // a running report that was taken for a record would end the session without a status
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
