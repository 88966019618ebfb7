package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/process"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// mostStopped is how many rounds in a row may end at a limit without an answer. After one more, no client is started.
const mostStopped = maxRestarts

// rounds runs one client after another while entries wait. Each continues the conversation of the previous
// one, unless that reached a limit. The error is the host's own, not the client's.
func (h *host) rounds() error {
	deadline := time.Time{}
	if h.Timeout > 0 {
		deadline = time.Now().Add(h.Timeout)
	}
	anew := false // the last client has reached a limit
	for n, stopped := 1, 0; !h.endRequest.isMade(); n++ {
		resume := ""
		if !anew && (n > 1 || h.Resume) {
			var err error
			if resume, err = h.queue.Resumable(context.Background()); err != nil {
				return err
			}
			if resume == "" && h.store.Health().Last > 0 {
				h.warn("the conversation has no transcript, so another one begins")
			}
		}
		before := repliedTo(h.snapshot())
		command, prompt, waits, err := h.nextClient(resume, anew)
		if err != nil || !waits {
			return err
		}
		step("taken")
		p, err := h.start(command, prompt, n)
		if err != nil {
			return errors.Join(err, h.queue.NotStarted(context.Background()))
		}
		w := h.watch(p, deadline)
		h.recordExit(p, w)
		if err := h.settleEntries(h.exitOf(w)); err != nil {
			return err
		}
		step("settled")
		s := h.snapshot()
		if stopped++; repliedTo(s) > before {
			stopped = 0
		}
		limit, err := h.limitOf(w)
		switch {
		case err != nil:
			return err
		case limit != "" && stopped > mostStopped:
			h.warn(fmt.Sprintf("%d clients in a row reached a limit without an answer: no other one is started", stopped))
			return nil
		case limit == "" && !orderly(w, s, before):
			return nil
		}
		more, err := h.hasWork(deadline)
		if err != nil || !more {
			return err
		}
		anew = limit != ""
		h.log.linef("%s: claude is started again", words.Count(s.Entries.Queued, "entry waits", "entries wait"))
	}
	return nil
}

// orderly reports whether a client ended in a way that lets another continue.
func orderly(w *watching, s folder.State, before int) bool {
	exited := w.reason == endedLingering || w.reason == "" && s.Exit.Code == 0
	return exited && s.Result != nil && !s.Result.IsError && repliedTo(s) > before
}

func repliedTo(s folder.State) int { return s.Entries.Answered + s.Entries.Unread }

// limitOf returns the limit that ended a client, "" if none did.
func (h *host) limitOf(w *watching) (string, error) {
	switch w.reason {
	case "", endedLingering, endedByLimit:
	default:
		return "", nil
	}
	limit, err := h.queue.Limit(context.Background())
	if limit != "" {
		h.log.line(limit)
	}
	return limit, err
}

// hasWork reports whether another client has work. If not, the session takes no more entries: none would be answered.
func (h *host) hasWork(deadline time.Time) (bool, error) {
	h.sending.Lock()
	defer h.sending.Unlock()
	next, err := h.queue.Waiting(context.Background())
	more := err == nil && next.Waits && !next.Any()
	if next.Owner != nil {
		h.warn(next.Owner.String() + ": what waits is left to that one")
	}
	if next.Waits && next.Paused != nil {
		h.warn("delivery is " + next.Paused.String())
	}
	if more && !deadline.IsZero() && !time.Now().Before(deadline) {
		more = false
		h.change(func(s *folder.State) { s.Ended, s.EndedAfter = endedByTimeout, h.Timeout.String() })
	}
	h.closed = !more
	return more, err
}

// guardPID is the pid of the guardian, 0 for none.
func (h *host) guardPID() int {
	if h.guard == nil {
		return 0
	}
	return h.guard.PID
}

func (h *host) start(command []string, prompt string, n int) (*process.Process, error) {
	s := h.snapshot()
	env := guardian.Marked(proxy.Environment(h.queue.Environ(environment(os.Environ(), h.Config.Env))), s.Mark)
	o := process.Options{
		Path: h.claude, Command: command, Dir: h.Config.Cwd,
		Env: env, Mark: s.Mark, Stdin: []byte(prompt), Stderr: h.log, MemoryMax: h.MemoryMax, Guard: h.guardPID(),
	}
	p, err := process.Start(o)
	if err != nil {
		//lint:ignore ST1005 guilds know this sentence
		return nil, fmt.Errorf("Failed to spawn claude: %w", err)
	}
	if n > 1 {
		h.mu.Lock()
		h.tally.NextClient()
		h.mu.Unlock()
	}
	step("started")
	h.change(func(s *folder.State) {
		s.Status, s.Client, s.Rounds = folder.Running, new(folder.ProcessOf(p.Leader)), n
		s.LastProgressAt = new(time.Now().UTC())
		s.Exit, s.Ended, s.Result, s.ErrorText = nil, "", nil, ""
	})
	if err := h.queue.Started(context.Background(), p.Leader); err != nil {
		h.log.linef("note who has the prompt: %v", err)
	}
	if n == 1 {
		h.up(s)
	}
	return p, nil
}

func (h *host) up(s folder.State) {
	h.stopBeats = h.reportRunning()
	if h.Started != nil {
		h.Started(Up{SessionID: s.SessionID, PID: os.Getpid(), PGID: s.PGID, Socket: s.Socket})
	}
	step("up") // the caller knows; the running report is on its way
}

// environment returns the host's environment without the identity of a session around it, and with the config's.
func environment(environ []string, given map[string]string) []string {
	env := claude.WithoutIdentity(environ)
	for name, value := range given {
		env = terminal.SetVariable(env, name+"="+value)
	}
	return env
}

// recordExit records how a client ended, once its processes are gone and its messages stored.
func (h *host) recordExit(p *process.Process, w *watching) {
	<-p.Gone()
	if killed := p.EndRest(); killed > 0 {
		h.log.linef("%s that claude had left behind had to be killed", words.Count(killed, "process", "processes"))
	}
	<-w.read
	if err := p.Finish(); err != nil {
		h.log.linef("claude did not take its whole prompt: %v", err)
	}
	exit := p.Exit()
	h.change(func(s *folder.State) {
		h.fillLive(s)
		s.Client = nil
		s.Exit = &folder.Exit{Code: exit.Code, Signal: exit.Signal, At: time.Now().UTC(), Forced: w.reason == endedLingering}
		if exit.Signal != "" {
			s.Exit.Code = 1
		}
		s.Stderr = h.log.stderr()
		s.Ended, s.EndedAfter = endedItself, ""
		if w.reason != "" {
			s.Ended, s.EndedAfter = w.reason, w.after.String()
		}
	})
	if exit.Signal == "" {
		h.log.linef("claude exited with code %d", exit.Code)
	} else {
		h.log.linef("claude was ended by %s", exit.Signal)
	}
	step("ended")
}
