package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	inboxclaim "heartbeat/internal/claim"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/terminal"
)

// FinishCommand is the verb by which a guardian finishes the session of a dead host:
// `heartbeat-host __finish DIR EVERY`, which calls [FinishAll].
const FinishCommand = "__finish"

// ErrUsed means that the session's ID was used before or is in use. Nothing of that session was touched.
var ErrUsed = errors.New("the session's id is used")

func used(reason string) error {
	return &config.Problem{Path: "sessionId", Reason: reason, Cause: ErrUsed}
}

// leastSpace is the room that a session needs to begin, in bytes: for its messages, inbox and end.
const leastSpace = 64 << 20

// begin claims the session's folder, posts the guardian and writes the first state, or leaves nothing behind.
func begin(o Options) (h *host, err error) {
	h = &host{Options: o, drained: drain{begun: make(chan struct{})}}
	h.endRequest = &request{made: make(chan struct{}), again: make(chan struct{}, 1)}
	if h.claude, err = findClaude(cmp.Or(o.Claude, "claude"), o.Config); err != nil {
		return nil, err
	}
	f, err := folder.At(o.Config.DBPath, o.Config.SessionID)
	if err != nil {
		return nil, &config.Problem{Path: "sessionId", Reason: err.Error()}
	}
	if h.guild, err = guild.New(guild.Options{URL: o.Config.GuildToolURL, SessionID: f.ID}); err != nil {
		return nil, &config.Problem{Path: "guildToolUrl", Reason: err.Error()}
	}
	if err := checkWork(o, f); err != nil {
		return nil, err
	}
	if free, err := disk.Free(filepath.Dir(f.DB)); err == nil && free < leastSpace { // on an error there may be room
		return nil, &config.Problem{Path: "dbPath", Reason: fmt.Sprintf("is on a disk with %d MiB of room, and a session needs %d: make some", free>>20, leastSpace>>20), Cause: unix.ENOSPC}
	}
	if err := guild.OutboxOf(nil, f.DB).Check(); err != nil {
		return nil, &config.Problem{Path: "dbPath", Reason: "has reports beside it that are not safe there: " + err.Error()}
	}
	existed, err := f.Exists()
	if err = errors.Join(err, usable(f)); err != nil {
		return nil, err
	}
	if h.record, err = claim(f, o.Resume); err != nil {
		return nil, err
	}
	h.box = guild.OutboxOf(h.lock.DB, f.DB)
	step("claimed")
	if err := h.prepare(f); err != nil {
		h.guard.Dismiss()
		err = errors.Join(err, h.lock.Release())
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		h.notifier.Stop(ctx)
		if !existed {
			_ = f.Purge(ctx, time.Now().Add(time.Hour), true) // it holds nothing
		}
		return nil, err
	}
	return h, nil
}

// checkFree returns an error if another process works on a given inbox. Nothing has begun, so the start can be repeated.
func checkFree(path string) error {
	box, err := inbox.Open(path, inbox.Options{})
	if path == "" || err != nil {
		return nil // openQueue returns the error
	}
	lock, err := inboxclaim.Take(box)
	_ = lock.Release() // openQueue takes it again
	if errors.As(err, new(inboxclaim.BusyError)) {
		return fmt.Errorf("take the session's inbox: %w", err)
	}
	return nil
}

// usable checks the host's database before there is a folder. A damaged database is replaced later.
func usable(f folder.Folder) error {
	box := guild.OutboxBeside(f.DB)
	defer box.Close()
	_, _, err := box.Report(context.Background(), f.ID)
	if err = placed(err); errors.As(err, new(*config.Problem)) || Passes(err) {
		return err
	}
	return nil
}

// placed makes an error that no later call changes a problem of the config.
func placed(err error) error {
	if errors.Is(err, disk.ErrForeign) || errors.Is(err, fs.ErrPermission) || errors.Is(err, store.ErrNewer) {
		return &config.Problem{Path: "dbPath", Reason: "cannot have this session beside it: " + err.Error(), Cause: err}
	}
	return err
}

// claim takes the session's lock, and reads the record of an earlier life.
func claim(f folder.Folder, resume bool) (*record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), terminalWait)
	defer cancel()
	lock, err := f.Claim(ctx)
	if busy, is := errors.AsType[*folder.BusyError](err); is {
		return nil, used("is that of a session that is hosted right now: " + busy.Error())
	}
	if err != nil {
		return nil, placed(err)
	}
	r := &record{lock: lock}
	old, err := lock.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && resume:
		return r, nil
	case errors.Is(err, fs.ErrNotExist):
		var count int64
		if _, count, err = lock.DB.Last(ctx, f.ID); count > 0 {
			err = used("was used before, for a session whose folder was removed and whose transcript stays: take another one")
			_ = lock.Purge(ctx, time.Now().Add(time.Hour), true) // the new folder would count as a dead session
		}
	case err != nil:
	case folder.IsHosted(old):
		err = used(fmt.Sprintf("is that of a session that is hosted right now by process %d, whose lock was removed", old.Host.PID))
	case !resume:
		state := "has no end: its host died"
		if old.Status.Ended() {
			state = "ended as " + string(old.Status)
		}
		err = used("was used before, for a session that " + state + ": take another one, or continue that session (--resume)")
	default:
		if _, err = finishLocked(ctx, lock, false); err == nil || errors.Is(err, ErrFinished) {
			old, err = lock.Read()
		}
		if err != nil {
			break
		}
		r.state = *old
		var report store.Report
		var kept bool
		if report, kept, err = guild.OutboxOf(lock.DB, f.DB).Report(ctx, f.ID); kept && report.State != store.Sent {
			err = used("is that of a session whose last report the guild does not have yet: run heartbeat-host drain-dlq first")
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return r, nil
}

func (h *host) prepare(f folder.Folder) error {
	if err := checkFree(h.Inbox); err != nil {
		return err
	}
	var logErr error
	h.log, logErr = openLog(h.Config.LogDir, f.ID)
	if h.Detached {
		if logErr == nil {
			logErr = h.log.file.RedirectOutput()
		}
		if logErr != nil {
			return &config.Problem{Path: "logDir", Reason: "cannot be used: " + logErr.Error(), Cause: logErr}
		}
	}
	h.lock.DB.SetLog(h.log.line)
	mark, err := newMark(f.ID)
	if err != nil {
		return err
	}
	if h.notifier, err = notify.StartHelper(h.Notify, h.log.line); err != nil { // before there is any child
		h.log.line(err.Error())
	}
	started := time.Now().UTC()
	h.log.linef("session=%s pid=%d pgid=%d log=%s started at %s", f.ID, os.Getpid(), unix.Getpgrp(), h.log.path, started.Format("2006-01-02T15:04:05.000Z"))
	command := []string{"heartbeat-host", FinishCommand, f.Dir(), h.Again.String()}
	h.guard, err = guardian.Post(mark, nil, guardian.Then{Command: command, Env: finisherEnvironment(os.Environ())})
	if err != nil {
		h.log.linef("%v: if this host is killed, the next one beside the database finishes the session", err)
	}
	step("guarded")
	h.state = h.firstState(f, mark, started)
	h.state.Host = new(folder.ProcessOf(os.Getpid()))
	if h.guard != nil {
		h.state.Guardian = new(folder.ProcessOf(h.guard.PID))
	}
	unmarked := markPromptDir(h.state) // before the record: a finisher relies on the mark
	parts, err := h.lock.Parts(&h.state)
	if err == nil {
		err = h.lock.DB.Begin(context.Background(), f.ID, f.DB, parts)
	}
	if err != nil {
		_ = os.Remove(promptMark(h.state)) // there may be none
		return fmt.Errorf("note the session in the host's database: %w", err)
	}
	h.saved = time.Now()
	step("recorded")
	if logErr != nil {
		h.warn(logErr.Error())
	}
	if err := folder.Remember(f.DB); err != nil {
		h.warn("the session is found only with --db: " + err.Error())
	}
	if unmarked != nil {
		h.warn(unmarked.Error())
	}
	return nil
}

// firstState returns the state at the beginning. A resumed session keeps some of its earlier one.
func (h *host) firstState(f folder.Folder, mark string, now time.Time) folder.State {
	c, old := h.Config, h.state
	s := folder.State{
		Config: folder.Config{
			Version: folder.Version, Release: cli.ReadBuild().Version, SessionID: f.ID, GuildToolURL: c.GuildToolURL,
			DB: f.DB, LogPath: h.log.path, Cwd: c.Cwd, Provider: c.Provider,
			StartedAt: c.StartedAt, Metadata: c.Metadata, SystemPromptTmpDir: c.SystemPromptTmpDir, Extra: c.Extra,
			Inbox: h.Inbox, OnOrphan: string(h.Policy), MaxAttempts: h.MaxAttempts, Limits: slices.Concat(cli.LimitArguments(h.Limits), cli.CheckArguments(h.Checks)),
			PTY: h.PTY, HostedAt: now,
		},
		Facts: folder.Facts{
			Mark: mark, PGID: unix.Getpgrp(), Socket: f.SocketPath(), Opened: old.Opened,
			Messages: old.Messages,
		},
		Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Pending, ProviderSessionID: old.ProviderSessionID}},
	}
	if s.Inbox == "" {
		s.Inbox, s.OwnInbox = f.InboxPath(), true
	}
	if s.Inbox == old.Inbox {
		s.Before = old.Before
	}
	return s
}

// finisherEnvironment returns the variables that a finisher needs: they lead to its user's and temporary files, and to
// the authorities of a guild behind https. Proxy variables are left out, since no guild is called through a proxy.
func finisherEnvironment(environ []string) []string {
	return slices.DeleteFunc(environ, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "XDG_STATE_HOME", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}, name)
	})
}

// findClaude searches for the client as a shell in the session's environment does, but not in relative folders of PATH.
func findClaude(name string, c *config.Config) (string, error) {
	list, given := c.Env["PATH"]
	if !given {
		list = os.Getenv("PATH")
	}
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
	path := "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))
	found, err := terminal.Find(terminal.Options{Command: []string{name}, Dir: c.Cwd, Env: []string{path}})
	if err != nil {
		return "", &config.Problem{Path: "", Reason: "cannot be carried out, since the client cannot be run: " + err.Error() + " (" + path + ")"}
	}
	if !filepath.IsAbs(found) {
		found = filepath.Join(c.Cwd, found)
	}
	return found, nil
}

// newMark returns a mark for the environment of a session's processes. It begins with the session's ID: a finisher,
// which reads it in a record that tools may have forged, must not kill another session's processes.
func newMark(id string) (string, error) {
	name, err := machine.RandomName()
	return id + "." + name, err
}

func isMarkOf(mark, id string) bool {
	at := strings.LastIndexByte(mark, '.')
	return at >= 0 && mark[:at] == id && mark[at+1:] != ""
}
