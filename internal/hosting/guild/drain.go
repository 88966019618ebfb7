package guild

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

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

// Drain sends the reports, running reports before records, and does not stop at one that cannot be
// sent. Once a guild cannot be reached, its other reports are left; once it fails at a report, its
// others are tried once each.
//
// The error is [ErrDraining], the context's, or says what could not be read. The outcomes so far
// come with it.
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
	var badErr error
	d.outcomes, badErr = box.Adopt(ctx)
	reports, err := box.db.Unsent(ctx)
	for _, r := range reports {
		if stopped := context.Cause(ctx); stopped != nil {
			return d.outcomes, errors.Join(err, badErr, stopped)
		}
		d.one(ctx, r)
	}
	return d.outcomes, errors.Join(err, badErr)
}

type drain struct {
	DrainOptions
	box      Outbox
	down     map[string]error // guilds that cannot be reached
	tired    map[string]bool  // guilds that failed at a report
	outcomes []DrainOutcome
}

func (d *drain) one(ctx context.Context, r store.Report) {
	o := DrainOutcome{Kind: r.Kind, SessionID: r.Session, Status: folder.Status(r.Status), Since: r.At}
	if r.File {
		o.Path = d.box.Path(r.Session)
	}
	if r.State == store.Refused {
		o.Refused = &DrainRefusal{At: r.Tried, Status: r.Code, Body: r.Reason}
	}
	switch {
	case d.Busy != nil && d.Busy(r.Session):
		o.What, o.Why = ReportLeft, "the session's host runs and reports for itself"
	case o.Refused != nil && !d.Refused && !d.box.taken(r):
		o.What, o.Why = ReportRefused, fmt.Sprintf("the guild refused it at %s: HTTP %d: %s", r.Tried.Format(time.RFC3339), r.Code, r.Reason)
	default:
		o.What, o.Why, o.As = d.send(ctx, r)
	}
	d.outcomes = append(d.outcomes, o)
}

func (d *drain) send(ctx context.Context, r store.Report) (what, why string, as folder.Status) {
	if d.box.taken(r) {
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
