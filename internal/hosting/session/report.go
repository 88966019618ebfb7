package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/words"
)

// How long the reports may delay the end of a session. An unreachable guild gets them later.
const (
	runningWait  = 10 * time.Second // for the running report, once the terminal one is due
	terminalWait = 90 * time.Second
)

// reportRunning begins to report that the session runs, and then to beat, until end is called. end waits for
// the running report, for a limited time.
func (h *host) reportRunning() (end func(context.Context)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	reported, stopped := make(chan struct{}), make(chan struct{}) // the report is delivered or given up; no beat follows
	s := h.snapshot()
	go func() {
		err := h.box.ReportRunning(ctx, h.guild, guild.Running{
			SessionID: s.SessionID, StartedAt: s.StartedAt, Provider: s.Provider, Metadata: s.Metadata,
			Cancel: guild.CancelHandle{Kind: "local-pgid", PGID: s.PGID}, Socket: s.Socket, Extra: s.Extra,
		}, s.GuildToolURL)
		if err != nil {
			h.log.linef("Failed to report running: %v", err)
			h.warn("the guild was not told that the session runs: " + err.Error())
		}
		close(reported)
		h.beat(ctx)
		close(stopped)
	}()
	return func(within context.Context) {
		select {
		case <-reported:
		case <-time.After(runningWait):
		case <-within.Done():
		}
		cancel(errors.New("the session ended before the guild had answered"))
		<-stopped
	}
}

// beat reports now and then, until ctx ends, that the session lives, and records the answers. It repeats no beat.
func (h *host) beat(ctx context.Context) {
	missed, held := false, folder.Status("")
	for {
		select {
		case <-time.After(h.Beat):
		case <-ctx.Done():
			return
		}
		answer, err := h.guild.Beat(ctx)
		switch {
		case ctx.Err() != nil: // an interrupted beat shows nothing about the guild
			return
		case err != nil:
			if !missed {
				h.log.linef("the guild missed a heartbeat: %v", err)
			}
			missed = true
			continue
		}
		h.note(func(s *folder.State) { s.LastBeatAt = new(time.Now().UTC()) })
		if answer.Status.Ended() && answer.Status != held {
			h.warn("the guild holds the session as " + string(answer.Status) + " already, while it runs")
		}
		held = answer.Status
	}
}

// conclusion is the end of a session, first committed and then reported, by the host or a finisher.
type conclusion struct {
	*record
	box   guild.Outbox
	guild *guild.Client
	each  []folder.Entry
	again bool // not the first try: only success is worth a line
}

// claim takes the session's inbox, and records what a given one has counted before the session.
func (c *conclusion) claim(ctx context.Context, q *queue.Queue) error {
	err := q.Claim(ctx)
	if s := c.snapshot(); err != nil || s.OwnInbox || s.Before != nil {
		return err
	}
	before, err := q.CountBefore(ctx)
	if err == nil {
		c.change(func(s *folder.State) { s.Before = &before })
		err = c.failure()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("note what it has counted before: %w", err), q.Close())
	}
	return nil
}

// settle settles what a client left in flight, and records what became of the entries.
func (c *conclusion) settle(ctx context.Context, q *queue.Queue, x queue.Exit) error {
	if _, err := q.Settle(ctx, x); err != nil {
		return err
	}
	c.warn(q.Unreported())
	return c.count(q)
}

func (c *conclusion) count(q *queue.Queue) error {
	fates, err := q.Fates(c.snapshot().Opened)
	if err != nil {
		return fmt.Errorf("count the session's entries: %w", err)
	}
	c.change(func(s *folder.State) { s.Entries, c.each = fates.Entries, fates.Each })
	return nil
}

// leaveRecord removes the session's temporary files, and then the host from the record.
func (c *conclusion) leaveRecord(left bool) {
	f := c.lock.Folder
	err := errors.Join(os.RemoveAll(f.TempDir()), disk.Remove(f.SocketPath())) // follows no links
	if err != nil {
		err = fmt.Errorf("remove the session's temporary files: %w", err)
	}
	if err = errors.Join(err, removePromptDir(c.snapshot())); err != nil {
		c.warn(err.Error())
	}
	step("cleaned")
	c.change(func(s *folder.State) {
		s.Host, s.Mark = nil, ""
		if !left {
			s.Guardian = nil
		}
	})
	step("over") // the record says that nothing is left to do
}

// keep commits the session's end, as its record and the guild's report, unless an end was committed before.
func (c *conclusion) keep(ctx context.Context, d Decision) (Decision, error) {
	step("decided") // only this process knows the result
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Waiting, _ = c.lock.DB.Waiting(ctx, c.state.SessionID) // the attempt to show them has reported its error
	end := c.state
	noteEnd(&end, d)
	parts, err := c.lock.Parts(&end)
	if err == nil {
		d.State, d.Error, err = c.box.Decide(ctx, recordOf(end, d.Code, c.each), end.GuildToolURL, end.Messages, parts)
	}
	if err != nil {
		return d, err
	}
	step("kept") // record and terminal report have the result, in one commit
	noteEnd(&c.state, d)
	c.save()
	c.log.line(strings.TrimSuffix(fmt.Sprintf("session %s: %s", d.State, d.Error), ": "))
	return d, nil
}

func noteEnd(s *folder.State, d Decision) {
	s.Status, s.Error, s.EndedAt, s.Client = d.State, d.Error, new(time.Now().UTC()), nil
}

// deliver sends the terminal report. One that the guild does not take stays in the database.
func (c *conclusion) deliver(ctx context.Context) (delivered bool) {
	id := c.snapshot().SessionID
	_, err := c.box.Deliver(ctx, c.guild, store.Record, id)
	switch {
	case err == nil && c.again:
		c.log.line("the guild has the terminal report")
	case err == nil || c.again:
	case errors.As(err, new(*guild.Refused)):
		c.log.linef("the guild refused the terminal report, which stays: %v", err)
	default:
		c.log.linef("Failed to report result, which is tried again: %v", err)
	}
	step("reported") // the guild has it, and the database knows
	return err == nil
}

// showRest brings the guild's table up to date, and reports whether something is left to send: rows, or
// a report that the guild has not refused.
func (c *conclusion) showRest(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, restWait)
	defer cancel()
	id := c.snapshot().SessionID
	err := showBehind(ctx, c.lock.DB, id, nil)
	if err != nil && !c.again {
		c.log.linef("the transcript cannot be written to the guild's table, which is tried again: %v", err)
	}
	r, kept, keptErr := c.box.Report(context.Background(), id)
	return err != nil || keptErr != nil || kept && r.State == store.Waiting
}

// recordOf is the report of a session's end, without its transcript.
func recordOf(s folder.State, code int, each []folder.Entry) *guild.Record {
	r := &guild.Record{
		SessionID: s.SessionID, Summary: s.Summary, ExitCode: code, Extra: s.Extra,
		Entries:               &guild.Entries{Entries: s.Entries, Each: each},
		TerminationDiagnostic: &guild.TerminationDiagnostic{ExitCode: code, StderrExcerpt: s.Stderr},
	}
	var more []string
	if t := s.Tools; t != nil {
		if more = append(more, failedCalls(t)); t.Open > 0 {
			more = append(more, words.Count(int(t.Open), "call", "calls")+" of the guild's tools had no answer when the session ended")
		}
		if t.Configured+int(t.Calls) > 0 {
			r.Tools = &t.ToolCounts
		}
	}
	if more = append(more, s.Store); s.Store == "" && s.Waiting > 0 {
		more = append(more, fmt.Sprintf("the guild's table does not have %s of the transcript yet", words.Count(int(s.Waiting), "message", "messages")))
	}
	more = slices.DeleteFunc(more, func(text string) bool { return text == "" })
	r.Warnings = slices.Concat(s.Warnings, more)
	if s.Result != nil {
		r.Result = &s.Result.ResultLine
	}
	if s.Exit != nil {
		r.Signal = s.Exit.Signal
	}
	if l := s.RateLimit; l != nil {
		r.TerminationTag = &guild.TerminationTag{Kind: "rate-limit", Source: l.Source, Detail: l.Detail}
		if l.ResetsAt != nil {
			r.ResetsAt = l.ResetsAt.UTC().Format("2006-01-02T15:04:05Z")
		}
	}
	return r
}

func applyTally(s *folder.State, t *stream.Tally) {
	s.ProviderSessionID = cmp.Or(t.SessionID, s.ProviderSessionID)
	s.CostUSD = cmp.Or(t.Cost, s.CostUSD)
	s.TokenUsage = cmp.Or(t.Usage, s.TokenUsage)
	for _, name := range t.Opened() {
		if !slices.Contains(s.Opened, name) {
			s.Opened = append(s.Opened, name)
		}
	}
	s.Output, s.OutputCut = "", false
	if t.Text != nil {
		s.Output, s.OutputCut = folder.Cut(*t.Text, folder.MaxOutput)
	}
	if t.Result != nil {
		s.Result, s.ErrorText = t.Result, t.ErrorText
	}
	if t.RateLimit != nil && (s.RateLimit == nil || s.RateLimit.ResetsAt == nil) {
		s.RateLimit = new(*t.RateLimit) // a copy: the tally may still add its end
	}
}

func (h *host) fillTools(s *folder.State) {
	if h.proxy == nil {
		return
	}
	stats := h.proxy.Stats()
	stats.Required = h.RequireTools || h.Config.RequireTools
	applyTools(s, stats)
}

// applyTools records what the client did with its tools, and withdraws the warning that it never asked for them.
func applyTools(s *folder.State, t folder.Tools) {
	s.Tools = &t
	if never := proxy.Unlisted(t); t.Listed {
		s.Warnings = slices.DeleteFunc(slices.Clone(s.Warnings), func(text string) bool { return text == never })
	}
}
