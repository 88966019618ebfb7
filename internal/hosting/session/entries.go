package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine"
	"heartbeat/internal/supervise/client"
)

// background is how long a round waits for tasks that an entry's turn left running.
const background = 30 * time.Minute

// queueOptions are how the session's inbox is opened, by its host or a finisher.
func queueOptions(f folder.Folder, s folder.State, warn func(string)) queue.Options {
	return queue.Options{
		Inbox: s.Inbox, Own: s.OwnInbox, Mark: filepath.Join(f.Dir(), "inbox-mark.json"), Dir: f.TempDir(),
		Settings: settingsOf(s),
		Cwd:      s.Cwd, Background: background, Warn: warn,
	}
}

// settingsOf are what the session's host was started with. It wrote the state itself, so
// that flags which cannot be read are those of a later release.
func settingsOf(s folder.State) recovery.Settings {
	all := recovery.Settings{Policy: recovery.Policy(s.OnOrphan), Chosen: true, MaxAttempts: s.MaxAttempts}
	f := cli.NewFlags("limits")
	cli.AddLimits(f, &all.Limits)
	cli.AddChecks(f, &all)
	_ = f.Parse(s.Limits)
	return all
}

// openQueue makes the config's prompt an entry of the session's inbox.
func (h *host) openQueue() (err error) {
	s := h.snapshot()
	o := queueOptions(h.lock.Folder(), s, h.warn)
	o.Hook, o.Env = h.Hook, environment(os.Environ(), h.Config.Env)
	q, err := queue.Open(o)
	if err != nil {
		return fmt.Errorf("open the session's inbox: %w", err)
	}
	ctx := context.Background()
	if err := q.Claim(ctx); err != nil {
		return fmt.Errorf("take the session's inbox: %w", err)
	}
	h.sending.Lock()
	h.queue = q
	h.sending.Unlock()
	h.follow(q.Path())
	if _, _, err := q.Put(ctx, h.promptID(s), h.Config.Prompt); err != nil {
		return fmt.Errorf("put the prompt into the session's inbox: %w", err)
	}
	step(stepQueued)
	if err := h.settleEntries(queue.Exit{}); err != nil {
		return err
	}
	next, err := q.Waiting(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("look into the session's inbox: %w", err)
	case next.Owner != nil: // a session that came just now
		return fmt.Errorf("take the session's inbox: %s", next.Owner)
	case next.Paused != nil:
		err := fmt.Errorf("the session's inbox is %s: nothing is delivered until %s", next.Paused.String(), next.Paused.Ends())
		if next.Paused.Until != nil {
			return &pausedError{err}
		}
		return err
	case next.Any():
		return errors.New("delivery from the session's inbox is paused: see heartbeat status")
	case !next.Waits:
		return config.NothingToDo()
	}
	return nil
}

// checkWork returns a problem if there is nothing to host a session for.
func checkWork(o Options, f folder.Folder) error {
	switch {
	case o.Config.HasPrompt():
		return nil
	case o.Inbox == "":
		if there, err := disk.Exists(f.InboxPath()); err != nil || !there {
			return errors.Join(config.NothingToDo(), err)
		}
	}
	s := folder.State{Config: folder.Config{Inbox: o.Inbox}}
	if s.Inbox == "" {
		s.Inbox = f.InboxPath()
	}
	box, err := queue.Open(queueOptions(f, s, nil))
	if err != nil {
		return &config.Problem{Reason: "the session's inbox cannot be used: " + err.Error(), Cause: err}
	}
	if next, err := box.Waiting(context.Background()); err != nil || !next.Waits {
		return errors.Join(config.NothingToDo(), err)
	}
	return nil
}

// promptID names the entry of the config's prompt, so that it is appended once. Each
// life of a session has a prompt of its own.
func (h *host) promptID(s folder.State) string {
	return fmt.Sprintf("%s-%d", s.SessionID, s.HostedAt.UnixMilli())
}

// round is what a client is started with.
type round struct {
	command []string
	text    string
}

// take puts the next entry in flight, as the prompt of the next client. waits is false
// if there is none.
func (h *host) take(f from) (r round, waits bool, err error) {
	ctx, args := context.Background(), h.Config.ClaudeArgs
	if f.anew {
		args = client.Anew(args)
	}
	if r.command, err = h.queue.Command(h.printing(args), f.resume); err != nil {
		return r, false, err
	}
	p, waits, err := h.queue.First(ctx)
	if err != nil || !waits {
		return r, false, err
	}
	r.text = p.Text
	return r, true, h.queue.Begin(ctx)
}

// exitOf is what was seen of a client's end.
func (h *host) exitOf(w *watching) queue.Exit {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := queue.Exit{Known: true, Session: h.tally.ClientSession(), Began: w.began, Asked: w.answered, Failure: w.failure, Over: w.over}
	if r := h.tally.Result; r != nil {
		x.Succeeded, x.Turns = !r.IsError, r.NumTurns
		if !r.IsError && r.Subtype == "success" && w.done && w.tasks == 0 && w.answered && w.failure == nil {
			if x.Turn = (&queue.Turn{}); h.tally.Text != nil {
				x.Turn.Reply = *h.tally.Text
			}
		}
	}
	switch {
	case h.drained.asked.Load():
		x.Reason = inbox.ReasonStopped
	case h.asked.isMade():
		x.Reason = inbox.ReasonCanceled
	}
	return x
}

// settleEntries settles what a client left in flight, and counts the entries. Where that
// fails for want of room it is tried again at the end.
func (h *host) settleEntries(x queue.Exit) error {
	settle := func() error {
		if err := h.settle(context.Background(), h.queue, x); err != nil {
			return fmt.Errorf("settle the session's entries: %w", err)
		}
		return nil
	}
	err := settle()
	if machine.OutOfSpace(err) {
		h.unsettled = settle
	}
	return err
}

// counted are the numbers of entries, and those that are named. One that was dropped is a dead
// letter that nobody wanted to see. One whose text was in a file counts as answered if the
// client has opened that.
func counted(f queue.Fates, opened []string) (n folder.Entries, each []guild.Entry) {
	unread := func(file string) bool {
		return file != "" && !slices.Contains(opened, file) && !slices.Contains(opened, stream.AnyTextFile)
	}
	for _, file := range f.Answered.Files {
		if unread(file) {
			n.Unread++
		}
	}
	n.Answered, n.Queued, n.InFlight, n.DeadLettered = f.Answered.Count-n.Unread, f.Queued.Count, f.InFlight.Count, f.DeadLettered.Count+f.Dropped.Count
	for _, g := range []struct {
		fate string
		queue.Group
	}{{"answered", f.Answered}, {"queued", f.Queued}, {"in flight", f.InFlight}, {"dead-lettered", f.DeadLettered}, {"dead-lettered", f.Dropped}} {
		for _, e := range g.Entries {
			entry := guild.Entry{ID: cmp.Or(e.ID, e.EntryID), Fate: g.fate, Why: e.Reason, File: e.File}
			if unread(e.File) {
				entry.Fate, entry.Why = "unread", "its text was handed over as a file, which no call of a tool opened"
			}
			each = append(each, entry)
		}
	}
	return n, each
}

// send appends an entry to the session's inbox.
func (h *host) send(ctx context.Context, m inbox.Message) (inbox.Receipt, error) {
	h.sending.Lock()
	defer h.sending.Unlock()
	if h.over || h.queue == nil {
		return inbox.Receipt{}, attach.ErrEnded
	}
	r, put, err := h.queue.Put(ctx, m.ID, m.Text)
	if err == nil && !put {
		err = errors.New("the text is blank")
	}
	return r, err
}

// Entries counts a session's entries as they are now, by its inbox. It takes no lock
// and may be called by any process.
func Entries(f folder.Folder, s folder.State) (folder.Entries, error) {
	q, err := queue.Open(queueOptions(f, s, nil))
	if err != nil {
		return folder.Entries{}, err
	}
	fates, err := q.Fates()
	n, _ := counted(fates, s.Opened)
	return n, errors.Join(err, q.Close())
}
