package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/transcript"
)

// storeWait bounds how long a database may hold the report of the session up, restWait
// and closeWait how long the guild's row and attached readers may the end of the host.
const (
	storeWait = 2 * time.Second
	restWait  = 30 * time.Second
	closeWait = 5 * time.Second
)

// serve opens what a client needs: the store, the guild's tools, the socket, the queue.
func (h *host) serve() error {
	f := h.lock.Folder()
	h.storing = transcript.Options{
		DB: f.DB, Spool: f.SpoolPath(), SessionID: f.ID, After: h.state.Messages, SpoolMax: h.SpoolMax, Log: h.log.line,
	}
	h.store = transcript.Open(h.storing)
	if err := h.serveTools(f); err != nil {
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

// serveTools starts the proxy, and writes the client's configuration for it.
func (h *host) serveTools(f folder.Folder) (err error) {
	o := proxy.Options{SessionID: f.ID, Call: h.callTool, Log: h.log.line}
	for _, t := range h.Config.Tools {
		o.Tools = append(o.Tools, proxy.Tool{Name: t.Name, Description: t.Description, Params: t.Params, Target: target(t.Name, t.Method)})
	}
	if h.proxy, err = proxy.Start(o); err != nil {
		return fmt.Errorf("serve the guild's tools: %w", err)
	}
	if err := disk.Publish(h.mcpConfig(), h.proxy.Config(), false); err != nil {
		return fmt.Errorf("write the client's configuration of the guild's tools: %w", err)
	}
	h.note(func(s *folder.State) { s.Tools = &folder.Tools{URL: h.proxy.URL()} })
	return nil
}

func (h *host) mcpConfig() string { return filepath.Join(h.lock.Folder().TempDir(), "mcp-config.json") }

func target(name, method string) string {
	route, err := guild.Route(name)
	if err != nil {
		return ""
	}
	return method + " " + route
}

// callTool forwards a call of the client to the guild.
func (h *host) callTool(ctx context.Context, name string, args json.RawMessage) (string, error) {
	for _, t := range h.Config.Tools {
		if t.Name == name {
			return h.guild.Tool(ctx, guild.Tool{Name: name, Method: t.Method, Idempotent: t.Idempotent}, args)
		}
	}
	return "", fmt.Errorf("the session has no tool %s", name)
}

// notStored says what the transcript store could not do at its end.
func notStored(err error) string {
	if errors.Is(err, transcript.ErrWaiting) || errors.Is(err, transcript.ErrLost) {
		return err.Error()
	}
	return "end the transcript: " + err.Error()
}

// stopServing closes what serve opened. The store comes first, since its end ends
// readers, who take the rest while the session is reported: the caller waits for them
// last.
func (h *host) stopServing() (readersGone <-chan struct{}) {
	if h.proxy != nil {
		h.proxy.Close()
	}
	if h.store != nil {
		ctx, cancel := within(storeWait)
		defer cancel()
		err := h.store.Close(ctx)
		h.unended = errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, transcript.ErrWaiting)
		if err != nil && !h.unended {
			h.warn(notStored(err))
		}
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if h.server != nil {
			_ = h.server.Close(closeWait) // readers that are left were told where to go on
		}
	}()
	return gone
}

// storeRest ends a transcript for which there was no time before the report: all
// messages are stored, and the guild's row of a large one takes longer.
func (h *host) storeRest(hurry <-chan struct{}) {
	if !h.unended {
		return
	}
	ctx, cancel := withinUnless(hurry, restWait)
	defer cancel()
	if err := transcript.Recover(ctx, h.storing); err != nil {
		h.warn(notStored(err))
	}
}
