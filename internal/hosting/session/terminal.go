package session

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/money/price"
	"heartbeat/internal/supervise"
	"heartbeat/internal/supervise/terminal"
)

// The screen of a session that nobody sees, and the launcher's settings for it.
const (
	rows, columns = 50, 200
	startTimeout  = time.Minute
	maxRestarts   = 5
)

// inTerminal works through the inbox with interactive sessions, as the launcher does, and stores
// what their clients write into their transcripts.
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
	h.undrain()
	f.stop()
	h.lastWord()
	h.log.line("the launcher: " + report.String())
	h.change(func(s *folder.State) {
		h.watchLive(s)
		s.Client, s.Rounds, s.Ended = nil, report.Sessions, endedItself
		spentInTerminal(s, report.Price())
		switch {
		case h.stalled.Load():
			s.Ended, s.EndedAfter = endedByStall, h.Stall.String()
		case report.Reason == supervise.TimedOut:
			s.Ended, s.EndedAfter = endedByTimeout, h.Timeout.String()
		case report.Reason == supervise.Signalled || report.Reason == supervise.Stopped:
			s.Ended = endedByCancel
		case report.Reason != supervise.Drained:
			s.Broken = report.String()
		}
	})
	step(stepEnded)
	if err := h.count(h.queue); err != nil {
		return err
	}
	step(stepSettled)
	return nil
}

// spentInTerminal records what the sessions cost: no result line says it.
func spentInTerminal(s *folder.State, p price.Price) {
	if p.Dollars && s.CostUSD == nil {
		usd := p.USD()
		s.CostUSD = &usd
	}
}

// managed returns the launcher's options for the work. The guardian is this host's.
func (h *host) managed(resume string) supervise.Options {
	s := h.snapshot()
	command := slices.Concat([]string{h.claude, queue.KickOff}, h.Config.ClaudeArgs, []string{"--mcp-config", h.mcpConfig(), "--strict-mcp-config"})
	if resume != "" {
		command = append(command, "--resume", resume)
	}
	return supervise.Options{
		Inbox: s.Inbox, Mode: supervise.Drain, Settings: settingsOf(s), Background: background, StartTimeout: startTimeout, EndAsking: true,
		AskPatience: h.AskPatience, Resume: true, Line: func(_ time.Time, text string) { h.log.line(text) },
		Terminal: terminal.Options{
			Command: command, Dir: h.Config.Cwd, Env: guardian.Marked(environment(os.Environ(), h.Config.Env), s.Mark),
			Size: terminal.Size{Rows: rows, Cols: columns}, FixedSize: true, Timeout: h.Timeout, Grace: h.Grace, Signals: h.signals,
			Watchers: terminal.Watchers{Started: h.startedInTerminal, Note: h.log.linef},
		},
		Stopping:  supervise.Stopping{Stop: h.drained.begun},
		Endurance: supervise.Endurance{UntilDrained: true, MaxRestarts: maxRestarts},
		Wiring:    supervise.Wiring{Hook: h.Hook, SettingsDir: h.lock.Folder().TempDir()},
	}
}

// startedInTerminal records the process of a session, and tells guild and caller of the first one.
func (h *host) startedInTerminal(pid int) {
	step(stepStarted)
	its := folder.ProcessOf(pid)
	now := time.Now().UTC()
	first := false
	h.change(func(s *folder.State) {
		first = s.Rounds == 0
		s.Rounds++
		s.Status, s.Client, s.LastProgressAt = folder.Running, &its, &now
	})
	if first {
		h.up(h.snapshot())
	}
}

// endTerminal makes the launcher end its session, by a signal, for a reason that is not a signal.
func (h *host) endTerminal() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }
