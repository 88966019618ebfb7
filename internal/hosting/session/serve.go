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

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine"
	"heartbeat/internal/supervise/client"
	recovery "heartbeat/recover"
)

// serve opens what a client needs: the store, the guild's tools, the socket, the queue.
func (h *host) serve() (err error) {
	f := h.lock.Folder
	o := transcriptOf(h.lock.DB, f, h.log.line)
	o.After = h.state.Messages
	if h.store, err = stream.OpenTranscript(context.Background(), o); err != nil {
		return fmt.Errorf("open the session's transcript: %w", err)
	}
	tools := proxy.Options{Tools: h.Config.Tools, Call: h.guild.Tool, Log: h.log.line}
	if h.proxy, err = proxy.Start(tools); err != nil {
		return fmt.Errorf("serve the guild's tools: %w", err)
	}
	if err := disk.Publish(h.mcpConfig(), h.proxy.Config(), false); err != nil {
		return fmt.Errorf("write the client's configuration of the guild's tools: %w", err)
	}
	h.note(h.fillTools)
	server, err := attach.Serve(f.Dir(), h, attach.Options{Log: h.log.linef})
	if err != nil {
		return fmt.Errorf("serve the session's socket: %w", err)
	}
	h.server = server
	step("serving")
	return h.openQueue()
}

func transcriptOf(db *store.Store, f folder.Folder, log func(string)) stream.TranscriptOptions {
	return stream.TranscriptOptions{DB: db, Guild: f.DB, SessionID: f.ID, Log: log}
}

// closeTools records what the client did with the tools, and ends the proxy.
func (h *host) closeTools() {
	if h.proxy == nil {
		return
	}
	h.change(func(s *folder.State) {
		h.fillLive(s)
		if s.Result != nil {
			s.Warn(proxy.Warning(h.proxy.Stats()))
		}
	})
	h.proxy.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proxy = nil
}

func (h *host) mcpConfig() string { return filepath.Join(h.lock.Folder.TempDir(), "mcp-config.json") }

// Status returns the session's state for its socket: see [attach.Backend].
func (h *host) Status() any {
	s := h.snapshot()
	h.fillLive(&s)
	_ = s.LoadReports(h.lock.DB) // the rest is worth showing without them
	return s
}

// Cancel ends the session: see [attach.Backend].
func (h *host) Cancel(ctx context.Context, e attach.End) error {
	if h.snapshot().EndedAt != nil {
		return attach.ErrEnded
	}
	if e.Grace < 0 {
		e.Grace = h.Grace
	}
	if e.Warm {
		return h.cancelWarm(ctx, e.Most, e.Grace)
	}
	h.cancelNow("heartbeat-host cancel", e.Grace)
	return nil
}

// Send appends an entry to the session's inbox: see [attach.Backend].
func (h *host) Send(ctx context.Context, m inbox.Message) (inbox.Receipt, error) {
	h.sending.Lock()
	defer h.sending.Unlock()
	if h.closed || h.queue == nil {
		return inbox.Receipt{}, attach.ErrEnded
	}
	r, put, err := h.queue.Put(ctx, m.ID, m.Text)
	if err == nil && !put {
		err = errors.New("the text is blank")
	}
	return r, err
}

// fillLive fills in the facts that the record gets only now and then.
func (h *host) fillLive(s *folder.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	applyTally(s, &h.tally)
	h.fillTools(s)
	if h.store != nil {
		health := h.store.Health()
		s.Messages, s.Lost, s.Store = health.Last, health.Lost, health.Trouble
	}
}

// background is how long a round waits for tasks that an entry's turn left running.
const background = 30 * time.Minute

// queueOptions returns how a host or finisher opens the session's inbox.
func queueOptions(f folder.Folder, s folder.State, warn func(string)) queue.Options {
	return queue.Options{
		Inbox: s.Inbox, Own: s.OwnInbox, Before: s.Before, Dir: f.TempDir(),
		Settings: settingsOf(s), Cwd: s.Cwd, Background: background, Warn: warn,
	}
}

// settingsOf returns the settings with which the session's host was started. The host wrote them, so flags that
// cannot be parsed are a later release's.
func settingsOf(s folder.State) recovery.Settings {
	all := recovery.Settings{Policy: recovery.Policy(s.OnOrphan), Chosen: true, MaxAttempts: s.MaxAttempts}
	f := cli.NewFlags("limits")
	cli.AddLimits(f, &all.Limits)
	cli.AddChecks(f, &all)
	_ = f.Parse(s.Limits)
	return all
}

// openQueue opens the session's inbox, and makes the config's prompt an entry.
func (h *host) openQueue() (err error) {
	s := h.snapshot()
	o := queueOptions(h.lock.Folder, s, h.warn)
	o.Hook, o.Env = h.Hook, environment(os.Environ(), h.Config.Env)
	q, err := queue.Open(o)
	if err != nil {
		return fmt.Errorf("open the session's inbox: %w", err)
	}
	ctx := context.Background()
	if err := h.claim(ctx, q); err != nil {
		return fmt.Errorf("take the session's inbox: %w", err)
	}
	h.sending.Lock()
	h.queue = q
	h.sending.Unlock()
	h.notifier.Follow(q.Path())
	// Each life of a session has its own prompt, which is appended only once.
	id := fmt.Sprintf("%s-%d", s.SessionID, s.HostedAt.UnixMilli())
	if _, _, err := q.Put(ctx, id, h.Config.Prompt); err != nil {
		return fmt.Errorf("put the prompt into the session's inbox: %w", err)
	}
	step("queued")
	if err := h.settleEntries(queue.Exit{}); err != nil {
		return err
	}
	next, err := q.Waiting(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the session's inbox: %w", err)
	case next.Owner != nil: // it has taken an entry just now
		return &laterError{fmt.Errorf("take the session's inbox: %s", next.Owner)}
	case next.Paused != nil:
		err := fmt.Errorf("the session's inbox is %s: nothing is delivered until %s", next.Paused.String(), next.Paused.Ends())
		if next.Paused.Until != nil {
			return &laterError{err}
		}
		return err
	case next.Any():
		return errors.New("delivery from the session's inbox is paused: see heartbeat status")
	case !next.Waits:
		return config.NothingToDo()
	}
	return nil
}

func checkWork(o Options, f folder.Folder) error {
	if o.Config.HasPrompt() {
		return nil
	}
	if o.Inbox == "" {
		if there, err := disk.Exists(f.InboxPath()); err != nil || !there {
			return errors.Join(config.NothingToDo(), err)
		}
	}
	s := folder.State{Config: folder.Config{Inbox: cmp.Or(o.Inbox, f.InboxPath())}}
	box, err := queue.Open(queueOptions(f, s, nil))
	if err != nil {
		return &config.Problem{Reason: "the session's inbox cannot be used: " + err.Error(), Cause: err}
	}
	if next, err := box.Waiting(context.Background()); err != nil || !next.Waits {
		return errors.Join(config.NothingToDo(), err)
	}
	return nil
}

// nextClient puts the next entry in flight, as the prompt of the next client, and returns that client's command. The
// command continues the session resume, "" for none; with anew it begins a conversation whatever the arguments name.
// waits is false if there is no entry.
func (h *host) nextClient(resume string, anew bool) (command []string, prompt string, waits bool, err error) {
	ctx, args := context.Background(), h.Config.ClaudeArgs
	if anew {
		args = client.Anew(args)
	}
	args = slices.Concat(args, []string{
		"--mcp-config", h.mcpConfig(), "--strict-mcp-config", "--print", "--output-format", "stream-json", "--verbose",
	})
	if command, err = h.queue.Command(args, resume); err != nil {
		return nil, "", false, err
	}
	if prompt, waits, err = h.queue.First(ctx); err != nil || !waits {
		return nil, "", false, err
	}
	return command, prompt, true, h.queue.Begin(ctx)
}

func (h *host) exitOf(w *watching) queue.Exit {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := w.seen
	x.Known, x.Session = true, h.tally.ClientSession()
	if r := h.tally.Result; r != nil {
		x.Succeeded, x.Turns = !r.IsError, r.NumTurns
		if !r.IsError && r.Subtype == "success" && w.done && w.tasks == 0 && x.Asked && x.Failure == nil {
			if x.Turn = (&queue.Turn{}); h.tally.Text != nil {
				x.Turn.Reply = *h.tally.Text
			}
		}
	}
	switch {
	case h.drained.asked.Load():
		x.Reason = inbox.ReasonStopped
	case h.endRequest.isMade():
		x.Reason = inbox.ReasonCanceled
	}
	return x
}

// settleEntries settles what a client left in flight, and counts the entries. While the disk takes nothing, conclude tries again.
func (h *host) settleEntries(x queue.Exit) error {
	err := h.settle(context.Background(), h.queue, x)
	if h.unsettled = nil; machine.TakesNothing(err) {
		h.unsettled = &x
	}
	if err != nil {
		err = fmt.Errorf("settle the session's entries: %w", err)
	}
	return err
}

// Entries counts a session's entries in its inbox. It takes no lock, and any process may call it.
func Entries(f folder.Folder, s folder.State) (folder.Entries, error) {
	q, err := queue.Open(queueOptions(f, s, nil))
	if err != nil {
		return folder.Entries{}, err
	}
	fates, err := q.Fates(s.Opened)
	return fates.Entries, errors.Join(err, q.Close())
}
