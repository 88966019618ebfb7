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
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
)

// ErrDraining means that another process drains these reports.
var ErrDraining = errors.New("another process drains these unsent reports: its result counts, so try again later")

// DrainOptions say which reports are sent, and where to.
type DrainOptions struct {
	DB string // the guild's database with the reports beside it

	// GuildURL returns the guild of a session whose report has none, "" if unknown. An address in a file is not used.
	GuildURL func(session string) string
	Busy     func(session string) bool // whether the session's host lives, which sends its own reports
	Refused  bool                      // also send reports that the guild has refused

	Clock Clock // for tests; nil is the machine's
}

// DrainRefusal is how a guild refused a report.
type DrainRefusal struct {
	At     time.Time `json:"at"`
	Status int       `json:"status"` // the HTTP status
	Body   string    `json:"body"`   // at most 500 characters of the answer
}

// What became of a report.
const (
	ReportSent    = "sent"    // the guild has it
	ReportRefused = "refused" // the guild refuses it; it stays
	ReportLeft    = "left"    // it stays for the next drain
	ReportBad     = "bad"     // it cannot be sent; it stays
)

// DrainOutcome is what became of one report, or of a file that is not a report.
type DrainOutcome struct {
	Kind      store.Kind    `json:"kind,omitempty"`
	SessionID string        `json:"sessionId,omitempty"`
	Status    folder.Status `json:"status,omitempty"` // of a record
	Path      string        `json:"path,omitempty"`   // its file, if there is one
	Since     time.Time     `json:"since,omitzero"`
	Problem   string        `json:"problem,omitempty"` // why a file is never sent; "" for a report
	Refused   *DrainRefusal `json:"refused,omitempty"` // nil if the guild has not refused it
	What      string        `json:"what"`              // such as [ReportSent]
	Why       string        `json:"why,omitempty"`     // empty if it was sent
	As        folder.Status `json:"as,omitempty"`      // see [Answer.As]
}

// Drain sends the reports, running reports before records. Once a guild cannot be reached, its other reports are left;
// once it fails at a report, its others are tried once each.
//
// The error is [ErrDraining], the context's, or is about what could not be read. The outcomes until then are returned too.
func Drain(ctx context.Context, o DrainOptions) (outcomes []DrainOutcome, err error) {
	box := OutboxBeside(o.DB)
	defer box.Close()
	root, err := disk.Exists(folder.Root(o.DB))
	files, filesErr := disk.Exists(box.dir)
	if err = errors.Join(err, filesErr); err != nil || !root && !files {
		return nil, err
	}
	if err := folder.MakeRoot(o.DB); err != nil {
		return nil, err
	}
	lock, err := disk.AcquireLock(ctx, filepath.Join(folder.Root(o.DB), "drain-lock"), time.Millisecond)
	if errors.Is(err, disk.ErrLocked) {
		return nil, ErrDraining
	}
	if err != nil {
		return nil, err
	}
	defer lock.Release() // its error changes nothing
	d := drain{DrainOptions: o, box: box, down: map[string]error{}, tired: map[string]bool{}}
	outcomes, badErr := box.Adopt(ctx)
	reports, err := box.db.Unsent(ctx)
	for _, r := range reports {
		if stopped := context.Cause(ctx); stopped != nil {
			return outcomes, errors.Join(err, badErr, stopped)
		}
		one := DrainOutcome{Kind: r.Kind, SessionID: r.Session, Status: folder.Status(r.Status), Since: r.At}
		if r.File {
			one.Path = box.Path(r.Session)
		}
		if r.State == store.Refused {
			one.Refused = &DrainRefusal{At: r.Tried, Status: r.Code, Body: r.Reason}
		}
		switch {
		case o.Busy != nil && o.Busy(r.Session):
			one.What, one.Why = ReportLeft, "the session's host runs and reports for itself"
		case one.Refused != nil && !o.Refused && !box.isTaken(r):
			one.What, one.Why = ReportRefused, fmt.Sprintf("the guild refused it at %s, and --refused sends it again: HTTP %d: %s", r.Tried.Format(time.RFC3339), r.Code, r.Reason)
		default:
			as, unsent := d.send(ctx, r)
			if one.What, one.As = ReportSent, as; unsent != nil {
				one.What, one.Why = ReportLeft, unsent.Error()
			}
			if refused, away := refusal(unsent); refused != nil && !away {
				one.What = ReportRefused
			}
		}
		outcomes = append(outcomes, one)
	}
	return outcomes, errors.Join(err, badErr)
}

type drain struct {
	DrainOptions
	box   Outbox
	down  map[string]error // guilds that cannot be reached
	tired map[string]bool  // guilds that failed at a report
}

// send returns the status with which the guild took a record.
func (d *drain) send(ctx context.Context, r store.Report) (folder.Status, error) {
	if d.box.isTaken(r) {
		_, err := d.box.Deliver(ctx, nil, r.Kind, r.Session) // calls no guild
		return "", err
	}
	url := r.Guild
	if url == "" && d.GuildURL != nil {
		url = d.GuildURL(r.Session)
	}
	if url == "" {
		return "", errors.New("the address of the session's guild is not known")
	}
	if err := d.down[url]; err != nil {
		return "", err
	}
	client, err := New(Options{URL: url, SessionID: r.Session, Once: d.tired[url], Clock: d.Clock})
	if err != nil {
		return "", err
	}
	answer, err := d.box.Deliver(ctx, client, r.Kind, r.Session)
	if err == nil {
		return answer.As, nil
	}
	if refused, away := refusal(err); away && refused != nil {
		d.tired[url] = true
	} else if away {
		d.down[url] = err
	}
	return "", err
}

const (
	maxReports = 10_000    // files of one folder
	maxAdopted = 256 << 20 // bytes of one file
)

// Adopt imports the reports that the babysitter or an older release has left in the folder dlq. A record
// also stays in its file until it is sent. bad lists files that are not reports; they stay.
func (b Outbox) Adopt(ctx context.Context) (bad []DrainOutcome, err error) {
	if there, err := disk.Exists(b.dir); err != nil || !there {
		return nil, err
	}
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("read the unsent reports: %w", err)
	}
	for _, dir := range []string{filepath.Join(b.dir, "running"), b.dir} {
		names, more, namesErr := disk.Names(dir, maxReports)
		if errors.Is(namesErr, fs.ErrNotExist) {
			continue
		}
		if more {
			namesErr = fmt.Errorf("%s holds more than %d files, and the rest was not read: run heartbeat-host drain-dlq --once until it is", dir, maxReports)
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
	// Its marks meant refusals. Without them such a report is sent once more, which does no harm.
	return bad, errors.Join(err, os.RemoveAll(filepath.Join(b.dir, "refused")))
}

// adopt imports one file, unless it was written for a known report.
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
	if report.Status == "" { // a running report: as a record it would end the session without a status
		r.Kind, session = store.Running, strings.TrimSuffix(session, "-running")
	}
	if folder.CheckID(r.Session) != nil || r.Session != session {
		return fmt.Errorf("the file is about session %q, and its name is not that session's", r.Session)
	}
	if r, err = b.db.Decide(ctx, r, nil); err != nil {
		return err
	}
	if r.Kind == store.Running {
		return disk.Remove(path)
	}
	r.File = true
	return b.db.SetReportState(ctx, r)
}

// Check refuses a folder of reports that other users have made or can change: they could read what sessions
// wrote, and forge reports. A missing folder is made when it is needed.
func (b Outbox) Check() error {
	me := uint32(os.Geteuid())
	for _, dir := range []string{b.dir, filepath.Join(b.dir, "running"), filepath.Join(b.dir, "refused")} {
		info, err := disk.StatName(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), err == nil && !info.IsDir && !info.IsLink: // writing fails
		case err != nil:
			return fmt.Errorf("check the folder of unsent reports: %w", err)
		case info.IsLink:
			return fmt.Errorf("%s is a symbolic link, which is never followed for unsent reports: put a folder in its place: %w", dir, disk.ErrForeign)
		case info.UID != me && info.UID != 0 && (me != 0 || !folder.OwnsParent(dir, info.UID)):
			return fmt.Errorf("%s, the folder of unsent reports, belongs to user %d, and this is user %d: move it away, or work as that user: %w", dir, info.UID, me, disk.ErrForeign)
		case info.Mode&0o002 != 0:
			return fmt.Errorf("everybody may write to %s, the folder of unsent reports (mode %04o): take that right away (chmod o-w %[1]s): %[3]w", dir, info.Mode, disk.ErrForeign)
		}
	}
	return nil
}
