package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/machine"
)

// conclude commits the session's end, frees everything, and sends the report to the guild.
func (h *host) conclude() Outcome {
	h.undrain()
	hurry := h.asked.next()
	h.sending.Lock()
	h.over = true // nobody would answer later entries
	h.sending.Unlock()
	h.closeTools()
	d, kept := h.decide(hurry)
	if h.queue != nil {
		if err := h.queue.Close(); err != nil {
			h.warn(err.Error())
		}
	}
	if h.store != nil {
		h.store.Close()
	}
	if h.server != nil {
		_ = h.server.Close(closeWait) // the socket's folder is about to go as well
	}
	if !kept {
		return h.leave(d)
	}
	ctx, cancel := withinUnless(hurry, terminalWait) // the report is kept: others may send it
	defer cancel()
	h.endRunning(ctx)
	delivered := h.deliver(ctx)
	h.tellEnd(hurry, d)
	left := h.left(hurry)
	h.cleanUp(left)
	return Outcome{Decision: d, Delivered: delivered, Left: left}
}

// keepEvery is the pause between tries to commit the session's end.
const keepEvery = time.Second

// decide commits the session's end with all messages. While the disk does not take them the host stays,
// since only it has them, and tells the guild nothing: another end might follow one that is not kept.
func (h *host) decide(hurry <-chan struct{}) (d Decision, kept bool) {
	for tries := 1; ; tries++ {
		d, err := h.tryToDecide(tries == 1)
		if err == nil {
			return d, true
		}
		if tries == 1 {
			h.log.linef("the session's end cannot be kept, which is tried until it can, and nobody is told of it before: %v", err)
		}
		select {
		case <-hurry:
			return d, false
		case <-time.After(keepEvery):
		}
	}
}

func (h *host) tryToDecide(show bool) (d Decision, err error) {
	ctx, cancel := within(terminalWait)
	defer cancel()
	if h.store != nil {
		if err := h.store.Flush(ctx); err != nil {
			return d, err
		}
	}
	if h.unsettled != nil {
		err := h.unsettled()
		if machine.OutOfSpace(err) {
			return d, err
		}
		h.unsettled = nil
		h.change(func(s *folder.State) {
			s.Warn(s.Broken)
			if s.Broken = ""; err != nil {
				s.Broken = err.Error()
			}
		})
	}
	waiting := int64(0)
	if h.store != nil {
		if show { // the guild may look for the row once it has the report, which says if the row cannot be written
			short, cancel := within(showWait)
			defer cancel()
			_ = h.store.Show(short) // Health shows the error
		}
		waiting, _ = h.db.Waiting(ctx, h.lock.Folder().ID) // Show has just asked the database
	}
	h.change(func(s *folder.State) {
		h.watchLive(s)
		s.Waiting, s.Stderr = waiting, h.log.stderr()
	})
	if h.queue != nil {
		if err := h.count(h.queue); err != nil {
			h.warn(err.Error())
		}
	}
	return h.conclusion.keep(ctx, Decide(Facts{State: h.snapshot(), MemoryMax: h.MemoryMax}))
}

// leave ends the host of a session whose end could not be kept. Its guardian finishes the session
// once that is possible.
func (h *host) leave(d Decision) Outcome {
	h.log.line("the host ends before the session's end could be kept: whoever finishes the session decides it from what is on the disk")
	if h.guard != nil {
		defer h.guard.Leave()
	}
	h.log.close()
	_ = h.lock.Release() // the process's end would release it as well
	return Outcome{Decision: d, Left: true}
}

// cleanUp leaves nothing but the record; another process may take the session from then on. If
// something is left for the guild, the guardian stays and sends it.
func (h *host) cleanUp(left bool) {
	h.leaveRecord(left)
	if h.guard != nil && (left || h.failure() != nil) {
		defer h.guard.Leave()
	} else {
		h.guard.Dismiss()
	}
	h.log.close()
	_ = h.lock.Release() // the process's end would release it as well
}

// removePromptDir removes the folder of the system prompt, which the guild made for this session.
// The session's tools may have forged the record, so only a folder that the host has marked goes. A
// folder with other contents was named by mistake and stays.
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
	if err := removeMarkLast(dir, promptMark(s)); err != nil {
		return fmt.Errorf("remove systemPromptTmpDir: %w", err)
	}
	return nil
}

// removeMarkLast removes a folder, its mark last, so that a kill leaves the mark.
func removeMarkLast(dir, mark string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if path := filepath.Join(dir, name.Name()); path != mark {
			if err := os.RemoveAll(path); err != nil { // RemoveAll follows no links
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}

// promptMark is the file by which a host marks the folder of the system prompt.
func promptMark(s folder.State) string {
	return filepath.Join(s.SystemPromptTmpDir, ".heartbeat-"+s.SessionID)
}

// markPromptDir marks the folder of the system prompt for removal.
func markPromptDir(s folder.State) error {
	if info, err := os.Lstat(s.SystemPromptTmpDir); s.SystemPromptTmpDir == "" || err != nil || !info.IsDir() {
		return nil // there is nothing to remove
	}
	if err := disk.Touch(promptMark(s)); err != nil {
		return fmt.Errorf("systemPromptTmpDir cannot be marked as the session's own, and stays: %w", err)
	}
	return nil
}

// clean removes the temporary files of a session, and the socket of a dead host.
func clean(f folder.Folder) error {
	if err := errors.Join(os.RemoveAll(f.TempDir()), disk.Remove(f.SocketPath())); err != nil { // follows no links
		return fmt.Errorf("remove the session's temporary files: %w", err)
	}
	return nil
}
