package session

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/agent"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/lines"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/money/price"
	"heartbeat/internal/supervise"
	"heartbeat/internal/supervise/terminal"
)

// The size of the unseen terminal, and the launcher's settings.
const (
	rows, columns = 50, 200
	startTimeout  = time.Minute
	maxRestarts   = 5
)

// inTerminal works through the inbox by the launcher, and stores what interactive clients write into transcripts.
func (h *host) inTerminal() error {
	resume := ""
	if h.Resume {
		var err error
		if resume, err = h.queue.Resumable(context.Background()); err != nil {
			return err
		}
	}
	if err := h.queue.Close(); err != nil { // the launcher takes the inbox itself
		return err
	}
	f := h.followTranscripts()
	report := supervise.Run(h.managed(resume))
	h.stopDrainTimer()
	close(f.quit)
	f.over.Wait()
	lost := h.queue.Lost()
	if lost == nil {
		h.storeLastAnswer()
	}
	h.log.line("the launcher: " + report.String())
	h.change(func(s *folder.State) {
		h.fillLive(s)
		s.Client, s.Rounds, s.Ended = nil, report.Sessions, endedItself
		spentInTerminal(s, price.Of(report.Cost))
		switch {
		case h.stalled.Load():
			s.Ended, s.EndedAfter = endedByStall, h.Stall.String()
		case report.Reason == supervise.TimedOut:
			s.Ended, s.EndedAfter = endedByTimeout, h.Timeout.String()
		case lost != nil:
			s.Ended = endedByLoss
		case report.Reason == supervise.Signalled || report.Reason == supervise.Stopped:
			s.Ended = endedByCancel
		case report.Reason != supervise.Drained:
			s.Broken = report.String()
		}
	})
	step("ended")
	if err := h.count(h.queue); err != nil {
		return err
	}
	step("settled")
	return nil
}

// spentInTerminal records the launcher's sum of what the sessions cost: there is no result line.
func spentInTerminal(s *folder.State, p price.Price) {
	if p.Dollars && s.CostUSD == nil {
		s.CostUSD = new(p.USD())
	}
}

func (h *host) managed(resume string) supervise.Options {
	s := h.snapshot()
	command := slices.Concat([]string{h.claude, queue.KickOff}, h.Config.ClaudeArgs, []string{"--mcp-config", h.mcpConfig(), "--strict-mcp-config"})
	if resume != "" {
		command = append(command, "--resume", resume)
	}
	return supervise.Options{
		Inbox: s.Inbox, Mode: supervise.Drain, Settings: settingsOf(s), Background: background, StartTimeout: startTimeout,
		AskPatience: h.AskPatience, Resume: true, Line: func(_ time.Time, text string) { h.log.line(text) },
		Terminal: terminal.Options{
			Command: command, Dir: h.Config.Cwd, Env: guardian.Marked(environment(os.Environ(), h.Config.Env), s.Mark),
			Size: terminal.Size{Rows: rows, Cols: columns}, FixedSize: true, Guardian: h.guardPID(), Timeout: h.Timeout, Grace: h.Grace, Signals: h.signals,
			Watchers: terminal.Watchers{Started: h.startedInTerminal, Note: h.log.linef},
		},
		Stopping:  supervise.Stopping{Stop: h.drained.begun},
		Endurance: supervise.Endurance{UntilDrained: true, MaxRestarts: maxRestarts},
		Wiring:    supervise.Wiring{Hook: h.Hook, SettingsDir: h.lock.Folder.TempDir()},
	}
}

func (h *host) startedInTerminal(pid int) {
	step("started")
	first := false
	h.change(func(s *folder.State) {
		first = s.Rounds == 0
		s.Rounds++
		s.Status, s.Client, s.LastProgressAt = folder.Running, new(folder.ProcessOf(pid)), new(time.Now().UTC())
	})
	if first {
		h.up(h.snapshot())
	}
}

// endTerminal makes the launcher end its session, by the signal for which it waits.
func (h *host) endTerminal() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }

const (
	// followEvery is how often the transcripts are read. Each time wakes this process.
	followEvery = 500 * time.Millisecond
	// findEvery is how often new sessions are searched for where the system sends no events.
	findEvery = 5 * time.Second
)

// follower stores what interactive clients write into their transcripts.
type follower struct {
	h    *host
	box  *inbox.Inbox
	old  map[string]bool // sessions, with their starts, from before this host's
	quit chan struct{}
	over sync.WaitGroup
}

// followTranscripts follows the transcript of each session that the inbox names, from its end at that session's start.
func (h *host) followTranscripts() *follower {
	f := &follower{h: h, old: map[string]bool{}, quit: make(chan struct{})}
	box, err := inbox.Open(h.snapshot().Inbox, inbox.Options{})
	if f.box = box; err != nil {
		h.warn("the transcript cannot be followed: " + err.Error())
		return f
	}
	f.find(nil)
	f.over.Go(f.follow)
	return f
}

func (f *follower) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	changes := f.box.WatchAll(findEvery)
	defer func() { _ = changes.Close() }() // nothing is read any more
	read := map[string]int64{}             // how far each transcript was read
	f.find(read)
	for last := false; !last; {
		select {
		case <-f.quit:
			last = true
			f.find(read)
		case <-changes.C:
			f.find(read)
		case <-tick.C:
		}
		for path, at := range read {
			read[path] = f.read(path, at, last)
		}
		if !last && f.h.stalls() && !f.h.stalled.Swap(true) {
			f.h.endTerminal()
		}
	}
}

// find adds the transcripts of new sessions to read. If read is nil, it records the present sessions as old.
func (f *follower) find(read map[string]int64) {
	v, err := f.box.View()
	if err != nil {
		return // the next call may succeed
	}
	sessions, _ := v.Sessions() // likewise
	_ = v.Close()               // only read
	for _, s := range sessions {
		path, size, outside := agent.StartOf(s.StartNote)
		if path == "" || s.StartedAt == nil || outside {
			continue
		}
		start := s.ID + s.StartedAt.String() // compared for identity: the clock may be set
		if _, known := read[path]; read == nil {
			f.old[start] = true
		} else if !known && !f.old[start] {
			read[path] = max(0, size)
		}
	}
}

// read stores the new part of a transcript and returns how far it read. Until the last call it leaves a line
// without its end, which may still grow.
func (f *follower) read(path string, at int64, last bool) int64 {
	file, err := disk.OpenForeign(path, os.O_RDONLY)
	if err != nil {
		return at // the client writes it late
	}
	defer file.Close() // only read
	end := file.Info().Size
	if !last && end > at {
		end, err = lines.Start(file, end)
	}
	if err != nil {
		f.h.warn("read the transcript: " + err.Error())
	}
	if err != nil || end <= at {
		return at
	}
	f.h.read(io.NewSectionReader(file, at, end-at), f.keep)
	return end
}

func (f *follower) keep(m stream.Message) {
	if m.Type != "assistant" && m.Type != "user" && m.Type != "system" {
		return // the client's own bookkeeping
	}
	var of struct{ SessionID string }
	_ = json.Unmarshal(m.Raw, &of) // it is JSON; a sessionId of another kind is no session
	m.SessionID = of.SessionID
	f.h.keep(m)
}

// storeLastAnswer stores the answer to the last entry as a message if no message has it: a client writes its
// transcript late, and the launcher may have ended it first. The hook got the answer.
func (h *host) storeLastAnswer() {
	s := h.snapshot()
	r, ok := lastResult(s.Inbox)
	if !ok || r.AcknowledgedAt.Before(s.HostedAt) || bare(r.Reply) == "" || bare(r.Reply) == bare(s.Output) || h.isStored(r.Reply) {
		return
	}
	raw, _ := json.Marshal(map[string]any{ // without a JSON form it is no message
		"type": "assistant", "sessionId": r.SessionID, "timestamp": r.AcknowledgedAt,
		"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": r.Reply}}},
	})
	if m, ok := stream.Parse(raw); ok {
		m.SessionID = r.SessionID
		h.keep(m)
	}
}

func lastResult(path string) (r inbox.Result, ok bool) {
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil {
		return r, false
	}
	tail, err := outcomes.OpenTail(box.ResultsPath(), 1)
	if err != nil {
		return r, false
	}
	defer tail.Close() // only read
	err = tail.Lines(func(line []byte) { ok = json.Unmarshal(line, &r) == nil })
	return r, ok && err == nil
}

// bare returns a text without its blanks: the client trims a text for its hooks.
func bare(text string) string { return strings.Join(strings.Fields(text), "") }

// latest is how many messages isStored reads: the client may have begun another entry since its answer.
const latest = 32

// isStored reports whether one of the latest messages is this answer.
func (h *host) isStored(reply string) bool {
	o := transcriptOf(h.lock.DB, h.lock.Folder, nil)
	for m, err := range stream.ReadEndedTranscript(context.Background(), o, h.store.Health().Last-latest) {
		var t stream.Tally
		if parsed, ok := stream.Parse(m.Content); err == nil && ok {
			t.Add(parsed, m.At)
		}
		if t.Text != nil && bare(*t.Text) == bare(reply) {
			return true
		}
	}
	return false
}
