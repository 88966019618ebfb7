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

// ErrDraining says that another process drains these reports.
var ErrDraining = errors.New("another process drains these unsent reports: its result counts, so try again later")

// DrainOptions say which reports are drained, and where to.
type DrainOptions struct {
	DB string // the guild's database with the reports beside it

	// GuildURL returns the address of a session's guild if the report has none, "" if unknown. An
	// address in a file is not read.
	GuildURL func(session string) string
	// Busy reports whether the session's host lives, which reports for itself.
	Busy func(session string) bool
	// Refused also sends reports that the guild refused before.
	Refused bool

	// Clock is for tests; nil is the machine's.
	Clock Clock
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

// DrainOutcome is what became of one report, or of a file that is none.
type DrainOutcome struct {
	Kind      store.Kind    `json:"kind,omitempty"`
	SessionID string        `json:"sessionId,omitempty"`
	Status    folder.Status `json:"status,omitempty"` // of a record
	Path      string        `json:"path,omitempty"`   // the file that also holds it
	Since     time.Time     `json:"since,omitzero"`
	// Problem is why a file is never sent; empty for a complete report.
	Problem string `json:"problem,omitempty"`
	// Refused is how the guild refused the report before; nil if it did not.
	Refused *DrainRefusal `json:"refused,omitempty"`
	What    string        `json:"what"`
	Why     string        `json:"why,omitempty"` // empty if it was sent
	// As is the status that a record was taken with; "failed" for a cancelled session if the guild
	// takes no "cancelled".
	As folder.Status `json:"as,omitempty"`
}

// Drain sends the reports, running reports before records, and does not stop at one that cannot be sent. Once a guild
// cannot be reached, its other reports are left; once it fails at a report, its others are tried once each.
//
// The error is [ErrDraining], the context's, or says what could not be read. The outcomes so far come with it.
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
	defer lock.Release() // the kernel would release it as well
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
			one.What, one.Why, one.As = d.send(ctx, r)
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

func (d *drain) send(ctx context.Context, r store.Report) (what, why string, as folder.Status) {
	if d.box.isTaken(r) {
		if _, err := d.box.Deliver(ctx, nil, r.Kind, r.Session); err != nil { // asks no guild
			return ReportLeft, err.Error(), ""
		}
		return ReportSent, "", ""
	}
	url := r.Guild
	if url == "" && d.GuildURL != nil {
		url = d.GuildURL(r.Session)
	}
	if url == "" {
		return ReportLeft, "the address of the session's guild is not known", ""
	}
	if err := d.down[url]; err != nil {
		return ReportLeft, err.Error(), ""
	}
	client, err := New(Options{URL: url, SessionID: r.Session, Once: d.tired[url], Clock: d.Clock})
	if err != nil {
		return ReportLeft, err.Error(), ""
	}
	answer, err := d.box.Deliver(ctx, client, r.Kind, r.Session)
	if err == nil {
		return ReportSent, "", answer.As
	}
	switch refused, away := refusal(err); {
	case away && refused != nil:
		d.tired[url] = true
	case away:
		d.down[url] = err
	case refused != nil:
		return ReportRefused, err.Error(), ""
	}
	return ReportLeft, err.Error(), ""
}

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
		names, more, namesErr := disk.Names(dir, maxReports)
		if errors.Is(namesErr, fs.ErrNotExist) {
			continue
		}
		if more {
			namesErr = fmt.Errorf("%s holds more than %d files, and the rest was not looked at: run heartbeat-host drain-dlq --once until it is", dir, maxReports)
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
	return b.db.SetReportState(ctx, r)
}

// Check refuses a folder of reports that others could have put there or could change: they could read what
// sessions said, and forge what guilds are told. A missing folder is made when it is needed.
func (b Outbox) Check() error {
	me := uint32(os.Geteuid())
	for _, dir := range []string{b.dir, filepath.Join(b.dir, "running"), filepath.Join(b.dir, "refused")} {
		info, err := disk.StatName(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), err == nil && !info.IsDir && !info.IsLink: // writers say so
		case err != nil:
			return fmt.Errorf("look at the folder of unsent reports: %w", err)
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
