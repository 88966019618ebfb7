package session

import (
	"encoding/json"
	"io"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/process"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/words"
)

// watching watches a client, stores its messages, and ends it if need be.
type watching struct {
	h      *host
	p      *process.Process
	reason string // why the host ended it, "" if it did not
	after  time.Duration

	read    chan struct{} // closed once all of the client's output was read
	idle    chan bool     // at each line: whether the client has nothing left to do
	tools   folder.Tools
	seen    queue.Exit // what the client has shown so far
	answers time.Time  // when the model first answered
	done    bool       // the last turn has its result
	tasks   int        // how many run in the background

	inFlight *inbox.Delivery // nil for none
	known    bool            // inFlight is as of the last commit
}

// pollEvery is how often progress that prints nothing is checked. toolsWait is how long a client whose model has
// answered may take to ask for its tools.
const (
	pollEvery = time.Second
	toolsWait = 10 * time.Second
)

// watch returns once the client has ended.
func (h *host) watch(p *process.Process, deadline time.Time) *watching {
	w := &watching{h: h, p: p, read: make(chan struct{}), idle: make(chan bool, 1)}
	go w.store()
	commits := h.queue.Watch()
	defer func() { _ = commits.Close() }()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timeout = time.After(time.Until(deadline))
	}
	asked := h.endRequest.made
	var exit <-chan time.Time
	for {
		select {
		case <-p.Gone():
			return w
		case <-asked:
			asked = nil
			w.end(endedByCancel, 0)
		case <-h.endRequest.again:
			w.end(endedByCancel, 0)
		case idle := <-w.idle:
			if exit = nil; idle {
				exit = time.After(h.ExitTimeout)
			}
		case <-exit:
			w.end(endedLingering, h.ExitTimeout)
		case <-timeout:
			w.end(endedByTimeout, h.Timeout)
		case <-commits.C:
			w.known = false
		case <-tick.C:
			if h.queue.Lost() != nil { // settling returns the error
				w.end(endedByLoss, 0)
			}
			w.checkProgress()
			w.checkTime()
		}
	}
}

func (w *watching) checkTime() {
	if w.seen.Over != nil {
		return
	}
	if !w.known {
		d, err := w.h.queue.InFlight()
		if err != nil {
			return // the next call may succeed
		}
		w.inFlight, w.known = d, true
	}
	if w.inFlight == nil {
		return
	}
	if over := w.h.queue.OverTime(w.inFlight); over != nil {
		w.seen.Over = over
		w.h.log.line("the entry in flight has reached its limit: " + over.Figures)
		w.end(endedByLimit, over.Took)
	}
}

// end begins to end the client. The first reason counts.
func (w *watching) end(reason string, after time.Duration) {
	if w.reason == "" {
		w.reason, w.after = reason, after
		w.h.log.linef("claude is asked to end: %s", reason)
	}
	grace := w.h.Grace
	if w.h.endRequest.isMade() {
		grace = w.h.endRequest.left()
	}
	w.p.End(grace)
}

func (w *watching) store() {
	defer close(w.read)
	skipped := w.h.read(w.p.Stdout(), func(m stream.Message) {
		w.h.keep(m)
		w.h.mu.Lock()
		w.learn(m)
		w.h.mu.Unlock()
		select {
		case <-w.idle: // it is out of date
		default:
		}
		w.idle <- w.done && w.tasks == 0
	})
	w.h.warn(skipped.String())
}

func (h *host) read(r io.Reader, visit func(stream.Message)) stream.Skipped {
	skipped, err := stream.Read(r, h.log.line, visit)
	if err != nil {
		h.warn("read what the client wrote: " + err.Error())
	}
	return skipped
}

// keep stores a message, and records it as progress. A result is recorded at once.
func (h *host) keep(m stream.Message) {
	h.store.Append(m)
	now := time.Now().UTC()
	h.mu.Lock()
	h.tally.Add(m, now)
	h.mu.Unlock()
	step("message")
	change := h.note
	if m.Type == "result" {
		change = h.change
	}
	change(func(s *folder.State) {
		if h.PTY || s.ProviderSessionID == "" || m.Type == "result" {
			h.fillLive(s)
		}
		s.LastMessageAt, s.LastProgressAt, s.StalledSince = &now, &now, nil
	})
	if m.Type == "result" {
		step("result")
	}
}

// learn records in seen, done and tasks what a message shows. The caller holds h.mu.
func (w *watching) learn(m stream.Message) {
	w.seen.Began = w.seen.Began || m.Type != "system" && m.Type != "result" || m.Subtype == "init"
	switch {
	case m.Type == "system" && m.Subtype == "init":
		w.done = false // also after a result: each background task that ends begins another turn
	case m.Type == "system" && m.Subtype == "background_tasks_changed":
		var changed struct {
			Tasks []json.RawMessage `json:"tasks"`
		}
		if json.Unmarshal(m.Raw, &changed) == nil {
			w.tasks = len(changed.Tasks)
		}
	case m.Type == "result":
		w.done = true
	case m.Type == "assistant":
		model, failure, text := m.Answer()
		if model != "<synthetic>" && !w.seen.Asked {
			w.seen.Asked, w.answers = true, time.Now()
		}
		if w.seen.Failure = nil; failure != "" {
			text, _ = folder.Cut(text, 4<<10)
			w.seen.Failure = &inbox.Failure{Error: failure, Message: text}
		}
	}
}

// checkProgress records tool calls as progress, and ends a client that stalls.
func (w *watching) checkProgress() {
	h := w.h
	stats := h.proxy.Stats()
	called := stats.Calls != w.tools.Calls || stats.LastAt != w.tools.LastAt || stats.Listed != w.tools.Listed
	w.tools = stats
	now := time.Now().UTC()
	h.note(func(s *folder.State) {
		h.fillLive(s)
		if called {
			s.LastProgressAt, s.StalledSince = &now, nil
		}
	})
	h.mu.Lock()
	late := w.seen.Asked && time.Since(w.answers) > toolsWait
	h.mu.Unlock()
	if late {
		h.warn(proxy.Warning(stats))
	}
	if h.stalls() {
		w.end(endedByStall, h.Stall)
	}
}

// stalls warns of a session without progress, and reports whether to end it.
func (h *host) stalls() bool {
	s, r := h.snapshot(), &h.progress
	if s.LastProgressAt != r.of {
		r.of, r.since = s.LastProgressAt, time.Now()
	}
	if h.Stall <= 0 || r.of == nil || time.Since(r.since) < h.Stall {
		return false
	}
	if s.StalledSince == nil {
		h.change(func(s *folder.State) { s.StalledSince = s.LastProgressAt })
		h.mu.Lock()
		open := h.tally.OpenTools()
		h.mu.Unlock()
		text := "the session has made no progress since " + s.LastProgressAt.Format(time.RFC3339)
		if len(open) > 0 {
			text += ": it waits for " + words.Line(open[0].Name) + ", called " + time.Since(open[0].Since).Round(time.Second).String() + " ago"
		}
		h.warn(text)
	}
	return h.StallAction == CancelStall
}
