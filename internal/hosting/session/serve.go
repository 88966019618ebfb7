package session

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
)

// showWait bounds how long writing the guild's table may delay the report. restWait and closeWait
// bound how long that and open requests may delay the host's end.
const (
	showWait  = 2 * time.Second
	restWait  = 10 * time.Second
	closeWait = time.Second
)

// serve opens what a client needs: the store, the guild's tools, the socket, the queue.
func (h *host) serve() (err error) {
	f := h.lock.Folder()
	o := transcriptOf(h.db, f, h.log.line)
	o.After = h.state.Messages
	if h.store, err = stream.OpenTranscript(context.Background(), o); err != nil {
		return fmt.Errorf("open the session's transcript: %w", err)
	}
	if err := h.serveTools(); err != nil {
		return err
	}
	server, err := attach.Serve(f.Dir(), backend{h}, attach.Options{Log: h.log.linef})
	if err != nil {
		return fmt.Errorf("serve the session's socket: %w", err)
	}
	h.server = server
	step(stepServing)
	return h.openQueue()
}

// transcriptOf says where a session's messages are.
func transcriptOf(db *store.Store, f folder.Folder, log func(string)) stream.TranscriptOptions {
	return stream.TranscriptOptions{DB: db, Guild: f.DB, SessionID: f.ID, Log: log}
}

// serveTools starts the proxy, and writes the client's configuration for it.
func (h *host) serveTools() (err error) {
	o := proxy.Options{Tools: h.Config.Tools, Call: h.guild.Tool, Log: h.log.line}
	if h.proxy, err = proxy.Start(o); err != nil {
		return fmt.Errorf("serve the guild's tools: %w", err)
	}
	if err := disk.Publish(h.mcpConfig(), h.proxy.Config(), false); err != nil {
		return fmt.Errorf("write the client's configuration of the guild's tools: %w", err)
	}
	h.note(h.toolsUsed)
	return nil
}

// closeTools ends the proxy. The record keeps what the client did with the tools.
func (h *host) closeTools() {
	if h.proxy == nil {
		return
	}
	h.change(func(s *folder.State) {
		h.watchLive(s)
		if s.Result != nil {
			addWarning(s, proxy.Warning(h.proxy.Stats()))
		}
	})
	h.proxy.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proxy = nil
}

func (h *host) mcpConfig() string { return filepath.Join(h.lock.Folder().TempDir(), "mcp-config.json") }

// backend is the session as its socket shows it.
type backend struct{ h *host }

func (b backend) Status() any {
	s := b.h.snapshot()
	b.h.watchLive(&s)
	_ = s.Look(b.h.db) // the rest is worth showing without it
	return s
}

func (b backend) Cancel(ctx context.Context, e attach.End) error {
	if b.h.snapshot().EndedAt != nil {
		return attach.ErrEnded
	}
	if e.Grace < 0 {
		e.Grace = b.h.Grace
	}
	if e.Warm {
		return b.h.cancelWarm(ctx, e.Most, e.Grace)
	}
	b.h.cancelNow("heartbeat-host cancel", e.Grace)
	return nil
}

func (b backend) Send(ctx context.Context, m inbox.Message) (inbox.Receipt, error) {
	return b.h.send(ctx, m)
}

// watchLive fills in what the record gets only now and then.
func (h *host) watchLive(s *folder.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tallied(s, &h.tally)
	h.toolsUsed(s)
	if h.store != nil {
		health := h.store.Health()
		s.Messages, s.Lost, s.Store = health.Last, health.Lost, health.Trouble
	}
}
