package guild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
)

// Outbox is the reports of hosted sessions beside one database of a guild.
//
// A report is stored in the host's database before it is first sent, so no kill loses it. A
// session has one report of each kind, so the guild gets one version. A report may be sent
// twice; the guild applies it once. A refused report is sent again only on request.
//
// A record that the guild did not take in time is also written to the folder dlq beside the
// guild's database, as SESSIONID.json: the babysitter's guild drains it from there, and a
// person can send it. Once the file is gone, its report counts as delivered.
type Outbox struct {
	db  *store.Store
	dir string // the folder dlq
}

// OutboxOf returns the reports in the host's database beside a guild's.
func OutboxOf(db *store.Store, guildDB string) Outbox {
	return Outbox{db: db, dir: filepath.Join(filepath.Dir(guildDB), "dlq")}
}

// OutboxBeside is [OutboxOf] with a connection of its own, which [Outbox.Close] closes.
func OutboxBeside(guildDB string) Outbox {
	return OutboxOf(store.In(folder.Root(guildDB), ""), guildDB)
}

// Close closes the database of a box from [OutboxBeside].
func (b Outbox) Close() { _ = b.db.Close() } // everything was committed

// Path returns the path of the file of a session's record.
func (b Outbox) Path(session string) string { return filepath.Join(b.dir, session+".json") }

// Decide commits the record of a session, whose transcript ends with message last, together with parts of the
// host's own record. It returns the status and error of an existing record, if there is one: a session has one end.
func (b Outbox) Decide(ctx context.Context, r *Record, url string, last int64, parts store.Parts) (as folder.Status, reason string, err error) {
	head, err := r.Encode()
	if err != nil {
		return "", "", err
	}
	counts, err := b.db.Decide(ctx, store.Report{
		Session: r.SessionID, Kind: store.Record, Guild: url, Status: string(r.Status), Error: r.Error, Head: head, Last: last,
	}, parts)
	if err != nil {
		return "", "", fmt.Errorf("keep the report of session %s: %w", r.SessionID, err)
	}
	return folder.Status(counts.Status), counts.Error, nil
}

// Report returns the stored record of a session, if there is one.
func (b Outbox) Report(ctx context.Context, session string) (r store.Report, found bool, err error) {
	return b.db.Report(ctx, session, store.Record)
}

// ReportRunning commits the report that a session runs, then delivers it.
func (b Outbox) ReportRunning(ctx context.Context, client *Client, r Running, url string) error {
	head, err := r.Encode()
	if err != nil {
		return err
	}
	report := store.Report{Session: r.SessionID, Kind: store.Running, Guild: url, Head: head}
	if _, err := b.db.Decide(context.WithoutCancel(ctx), report, nil); err != nil {
		if _, sendErr := b.send(ctx, client, report); sendErr != nil { // the guild gets it in spite of a full disk
			return errors.Join(sendErr, err)
		}
		return nil
	}
	_, err = b.Deliver(ctx, client, store.Running, r.SessionID)
	return err
}

// Deliver sends a report to the guild and records the result. The error is a [*Refused] or an
// [*Unreachable], matches [fs.ErrNotExist] if there is no such report, or is about the report.
func (b Outbox) Deliver(ctx context.Context, client *Client, kind store.Kind, session string) (Answer, error) {
	keep := context.WithoutCancel(ctx) // ctx may cut only the call to the guild short
	r, found, err := b.db.Report(keep, session, kind)
	switch {
	case err != nil:
		return Answer{}, err
	case !found:
		return Answer{}, fmt.Errorf("send the report of session %s: %w", session, fs.ErrNotExist)
	case r.State == store.Sent:
		return Answer{}, nil
	case b.isTaken(r):
		r.State, r.Reason, r.Tried = store.Sent, "", time.Now()
		return Answer{}, b.db.SetReportState(keep, r)
	}
	answer, err := b.send(ctx, client, r)
	return answer, errors.Join(err, b.recordResult(keep, r, answer.As, err))
}

// SendUnkept sends a record that is not stored and has no transcript.
func (b Outbox) SendUnkept(ctx context.Context, client *Client, r *Record) error {
	head, err := r.Encode()
	if err == nil {
		_, err = b.send(ctx, client, store.Report{Session: r.SessionID, Kind: store.Record, Status: string(r.Status), Error: r.Error, Head: head})
	}
	return err
}

// Publish writes a waiting record to its file.
func (b Outbox) Publish(ctx context.Context, session string) error {
	r, found, err := b.db.Report(ctx, session, store.Record)
	if err != nil || !found {
		return err
	}
	if err := b.write(ctx, r); err != nil {
		return err
	}
	r.File = true
	return b.db.SetReportState(ctx, r)
}

// maxBuffered is the size in bytes up to which a record is read before it is sent. A guild that refuses a
// larger one unread may close the connection before its answer is seen.
const maxBuffered = 1 << 20

// minFreed is the size in bytes from which the memory of a record is freed at once.
const minFreed = 8 << 20

// isTaken reports whether the record's file is gone: the guild took it, or a person who sent it to the guild.
func (b Outbox) isTaken(r store.Report) bool {
	if !r.File || b.Check() != nil {
		return false
	}
	there, err := disk.Exists(b.Path(r.Session))
	return err == nil && !there
}

func (b Outbox) send(ctx context.Context, client *Client, r store.Report) (Answer, error) {
	if r.Kind == store.Running {
		return client.Running(ctx, BodyOf([]byte(r.Head)))
	}
	largest := int64(0)
	defer func() { giveBack(largest) }() // the messages were read one at a time and are no longer needed
	return client.Record(ctx, folder.Status(r.Status), func(as folder.Status) (Body, error) {
		head := ""
		if string(as) != r.Status {
			reason := r.Status
			if r.Error != "" {
				reason += ": " + r.Error
			}
			var err error
			if head, err = Restate(r.Head, as, reason); err != nil {
				return Body{}, err
			}
		}
		size, open, err := b.db.Body(context.WithoutCancel(ctx), r, head)
		largest = max(largest, size)
		if err != nil || size > maxBuffered {
			return Body{Open: open, Size: size}, err
		}
		text, err := io.ReadAll(open())
		return BodyOf(text), err
	})
}

// recordResult records what became of a sent report: the status with which the guild took it, or why not.
func (b Outbox) recordResult(ctx context.Context, r store.Report, as folder.Status, why error) error {
	refused, away := refusal(why)
	r.State, r.Code, r.Reason, r.Tried = store.Sent, 0, "", time.Now()
	var problem error
	switch {
	case why == nil:
		if r.Kind == store.Record {
			problem = b.remove(r)
		}
		if string(as) != r.Status {
			r.Reason = string(as)
		}
		r.File = problem != nil
	case refused != nil && !away:
		r.State, r.Code, r.Reason = store.Refused, refused.Status, refused.Body
	default:
		r.State, r.Reason = store.Waiting, why.Error()
	}
	if why != nil && r.Kind == store.Record && !r.File {
		problem = b.write(ctx, r)
		r.File = problem == nil
	}
	return errors.Join(problem, b.db.SetReportState(ctx, r))
}

// remove removes a record's file, and a temporary one that a kill has left.
func (b Outbox) remove(r store.Report) error {
	there, err := disk.Exists(b.dir)
	if err != nil || !there || !r.File && b.Check() != nil {
		return nil // nothing was written there
	}
	return errors.Join(disk.Remove(b.Path(r.Session)), disk.Remove(b.Path(r.Session)+".tmp"))
}

func (b Outbox) write(ctx context.Context, r store.Report) error {
	err := disk.MakeDir(b.dir)
	if errors.Is(err, fs.ErrExist) {
		err = b.Check()
	}
	var open func() io.Reader
	if err == nil {
		_, open, err = b.db.Body(ctx, r, "")
	}
	if err == nil {
		err = publish(b.Path(r.Session), open())
	}
	if err != nil {
		return fmt.Errorf("write the report of session %s to a file: %w", r.Session, err)
	}
	return nil
}

// publish is [disk.Publish] of what may be too large to be in memory.
func publish(path string, from io.Reader) error {
	if err := disk.Remove(path + ".tmp"); err != nil {
		return err
	}
	f, _, err := disk.OpenWrite(path + ".tmp")
	if err != nil {
		return err
	}
	if _, err = io.Copy(&disk.Writer{File: f}, from); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		return disk.Rename(path+".tmp", path)
	}
	return errors.Join(err, disk.Remove(path+".tmp"))
}

// giveBack returns the memory of a large report to the system.
func giveBack(size int64) {
	if size > minFreed {
		debug.FreeOSMemory()
	}
}
