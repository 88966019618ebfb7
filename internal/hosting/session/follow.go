package session

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/hosting/transcript"
	"heartbeat/internal/lines"
)

// followEvery is how often a transcript is read on.
const followEvery = 100 * time.Millisecond

// follower stores what interactive clients write into their transcripts.
type follower struct {
	h    *host
	box  *inbox.Inbox
	quit chan struct{}
	over sync.WaitGroup
}

// followTranscripts follows the transcript of each session that the inbox tells of,
// from where it was when that session started.
func (h *host) followTranscripts() *follower {
	f := &follower{h: h, quit: make(chan struct{})}
	box, err := inbox.Open(h.snapshot().Inbox, inbox.Options{})
	if err != nil {
		h.warn("the transcript cannot be followed: " + err.Error())
		return f
	}
	f.box = box
	f.over.Go(f.follow)
	return f
}

// stop returns once everything was read that is there.
func (f *follower) stop() {
	close(f.quit)
	f.over.Wait()
}

func (f *follower) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	read := map[string]int64{} // up to where each transcript was
	for last := false; !last; {
		select {
		case <-f.quit:
			last = true
		case <-tick.C:
		}
		f.find(read)
		for path, at := range read {
			read[path] = f.read(path, at, last)
		}
		if !last && f.h.stalls(time.Now().UTC()) && !f.h.stalled.Swap(true) {
			f.h.endTerminal()
		}
	}
}

// find looks for sessions that are new.
func (f *follower) find(read map[string]int64) {
	v, err := f.box.View()
	if err != nil {
		return // another look follows
	}
	sessions, err := v.Sessions()
	_ = v.Close() // it was only read
	if err != nil {
		return
	}
	since := f.h.snapshot().HostedAt
	for _, s := range sessions {
		path, size := agent.StartOf(s.StartNote)
		if _, known := read[path]; path != "" && !known && s.StartedAt != nil && !s.StartedAt.Before(since) {
			read[path] = max(0, size)
		}
	}
}

// read keeps what a transcript has got since, and returns up to where. A line without its end
// may still grow, unless this is the last look.
func (f *follower) read(path string, at int64, last bool) int64 {
	file, err := disk.OpenForeign(path, os.O_RDONLY)
	if err != nil {
		return at // the client writes it late
	}
	defer file.Close() // it was only read
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

// keep keeps a line of a transcript that is a message.
func (f *follower) keep(m stream.Message) {
	if m.Type != "assistant" && m.Type != "user" && m.Type != "system" {
		return // the client's own bookkeeping
	}
	var of struct{ SessionID string }
	_ = json.Unmarshal(m.Raw, &of) // it is JSON; a member of another kind names no session
	m.SessionID = of.SessionID
	f.h.keep(m)
	step(stepMessage)
	now := time.Now().UTC()
	f.h.note(func(s *folder.State) {
		f.h.watchLive(s)
		s.LastMessageAt, s.LastProgressAt, s.StalledSince = &now, &now, nil
	})
}

// lastWord keeps the answer to the last entry as a message if no message has it: a client
// writes its transcript late, and the launcher may have ended it before. The hook was told
// what it said.
func (h *host) lastWord() {
	s := h.snapshot()
	r, ok := lastResult(s.Inbox)
	if !ok || r.AcknowledgedAt.Before(s.HostedAt) || strings.TrimSpace(r.Reply) == "" || h.hasSaid(r.Reply) {
		return
	}
	raw, err := json.Marshal(map[string]any{
		"type": "assistant", "sessionId": r.SessionID, "timestamp": r.AcknowledgedAt,
		"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": r.Reply}}},
	})
	if err != nil {
		return // it has no value that could fail
	}
	m, ok := stream.Parse(raw)
	if !ok {
		return
	}
	m.SessionID = r.SessionID
	h.keep(m)
	h.change(func(s *folder.State) { h.watchLive(s) })
}

// lastResult is the newest line of an inbox's results.
func lastResult(path string) (r inbox.Result, ok bool) {
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil {
		return r, false
	}
	tail, err := box.TailResults(1)
	if err != nil {
		return r, false
	}
	defer tail.Close() // it was only read
	err = tail.Lines(func(line []byte) { ok = json.Unmarshal(line, &r) == nil })
	return r, ok && err == nil
}

// latest is among how many of the last messages an answer is looked for.
const latest = 32

// hasSaid reports whether one of the last messages is this answer. Blanks are left out: the
// client tells its hooks a text without those around it.
func (h *host) hasSaid(reply string) bool {
	bare := func(text string) string { return strings.Join(strings.Fields(text), "") }
	o := transcriptOf(h.db, h.lock.Folder(), nil)
	for m, err := range transcript.ReadEnded(context.Background(), o, h.store.Last()-latest) {
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
