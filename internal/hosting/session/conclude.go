package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/notify"
)

// How long each step may delay the host's end, or, for showWait, the report.
const (
	showWait  = 2 * time.Second  // to write the guild's table before the report
	closeWait = time.Second      // for open requests at the socket
	tellWait  = 45 * time.Second // to notify a person
	restWait  = 10 * time.Second // to write what the guild's table still lacks
)

// conclude commits the session's end, frees everything, and sends the report to the guild. If the end could
// not be committed, or the guild lacks something, the guardian stays and completes that.
func (h *host) conclude() Outcome {
	h.stopDrainTimer()
	patient, stop := h.endRequest.untilNext()
	defer stop()
	h.sending.Lock()
	h.closed = true // no client would answer later entries
	h.sending.Unlock()
	h.closeTools()
	d, kept := h.decide(patient)
	if h.queue != nil {
		if err := h.queue.Close(); err != nil {
			h.warn(err.Error())
		}
	}
	if h.store != nil {
		h.store.Close()
	}
	if h.server != nil {
		_ = h.server.Close(closeWait) // leaveRecord removes the socket too
	}
	o := Outcome{Decision: d, Left: true}
	if kept {
		ctx, cancel := context.WithTimeout(patient, terminalWait) // the report is committed: others may send it
		defer cancel()
		if h.stopBeats != nil {
			h.stopBeats(ctx)
		}
		o.Delivered = h.deliver(ctx)
		if d.State == folder.Failed {
			h.notifier.Say(notify.Words{Reason: "session failed", Sentence: "the session " + h.Config.SessionID + " failed: " + d.Error})
		}
		telling, stop := context.WithTimeout(patient, tellWait)
		defer stop()
		h.notifier.Stop(telling)
		o.Left = h.showRest(patient)
		h.leaveRecord(o.Left)
	} else {
		h.log.line("the host ends before the session's end could be kept: the process that finishes the session decides from what is on the disk")
	}
	if h.guard != nil && (o.Left || h.failure() != nil) {
		defer h.guard.Leave()
	} else {
		h.guard.Dismiss()
	}
	h.log.close()
	_ = h.lock.Release() // the process's end would release it as well
	return o
}

// keepEvery is the pause between tries to commit the session's end.
const keepEvery = time.Second

// decide commits the session's end with all messages. While the disk takes neither, the host stays, since the
// messages are in its memory alone, and reports nothing: a finisher may come to another end.
func (h *host) decide(patient context.Context) (d Decision, kept bool) {
	for tries := 1; ; tries++ {
		d, err := h.tryToDecide(tries == 1)
		if err == nil {
			return d, true
		}
		if tries == 1 {
			h.log.linef("the session's end cannot be kept yet: it is tried again, and not reported before: %v", err)
		}
		select {
		case <-patient.Done():
			return d, false
		case <-time.After(keepEvery):
		}
	}
}

func (h *host) tryToDecide(show bool) (d Decision, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), terminalWait)
	defer cancel()
	if h.store != nil {
		if err := h.store.Flush(ctx); err != nil {
			return d, err
		}
	}
	if h.unsettled != nil {
		err := h.settleEntries(*h.unsettled)
		if h.unsettled != nil {
			return d, err
		}
		h.change(func(s *folder.State) {
			s.Warn(s.Broken)
			if s.Broken = ""; err != nil {
				s.Broken = err.Error()
			}
		})
	}
	if h.store != nil && show { // the guild may read the row once it has the report
		short, cancel := context.WithTimeout(context.Background(), showWait)
		defer cancel()
		_ = h.store.Show(short) // the report has the error, by Health
	}
	h.change(func(s *folder.State) {
		h.fillLive(s)
		s.Stderr = h.log.stderr()
	})
	if h.queue != nil {
		if err := h.count(h.queue); err != nil {
			h.warn(err.Error())
		}
	}
	return h.conclusion.keep(ctx, Decide(Facts{State: h.snapshot(), MemoryMax: h.MemoryMax}))
}

// removePromptDir removes the folder of the system prompt, which the guild made for this session. It
// removes only a folder that the host has marked, since the session's tools may have forged the record.
// A folder that holds the session's other files was named by mistake and stays.
func removePromptDir(s folder.State) error {
	dir := s.SystemPromptTmpDir
	if there, err := disk.Exists(dir); dir == "" || err == nil && !there {
		return nil
	}
	if marked, err := disk.Exists(promptMark(s)); err != nil || !marked {
		return fmt.Errorf("systemPromptTmpDir %s was not marked by the session's host, and stays", dir)
	}
	home, _ := os.UserHomeDir()
	for _, kept := range []string{s.Cwd, s.DB, s.LogPath, s.Inbox, home} {
		if kept == dir || strings.HasPrefix(kept, strings.TrimSuffix(dir, "/")+"/") {
			return fmt.Errorf("systemPromptTmpDir %s holds %s, and stays", dir, kept)
		}
	}
	names, err := os.ReadDir(dir)
	for _, name := range names {
		if path := filepath.Join(dir, name.Name()); err == nil && path != promptMark(s) {
			err = os.RemoveAll(path) // follows no links
		}
	}
	if err == nil {
		err = os.RemoveAll(dir) // the mark goes last, so that a kill leaves it
	}
	if err != nil {
		return fmt.Errorf("remove systemPromptTmpDir: %w", err)
	}
	return nil
}

// promptMark returns the path of the file by which a host marks the folder of the system prompt.
func promptMark(s folder.State) string {
	return filepath.Join(s.SystemPromptTmpDir, ".heartbeat-"+s.SessionID)
}

func markPromptDir(s folder.State) error {
	if info, err := os.Lstat(s.SystemPromptTmpDir); s.SystemPromptTmpDir == "" || err != nil || !info.IsDir() {
		return nil // there is nothing to remove
	}
	if err := disk.Touch(promptMark(s)); err != nil {
		return fmt.Errorf("systemPromptTmpDir cannot be marked as the session's own, and stays: %w", err)
	}
	return nil
}
