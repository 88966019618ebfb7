package hook

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/disk"
)

// notifier starts the process that tells a person. It remembers only what this hook has done so far.
type notifier struct {
	drained bool   // this Stop settled an entry and found nothing more
	asked   string // the questions of runs that were told last
}

// tellOf has a person told what a transaction brought, once it is committed and the decision is printed. What a killed
// hook left untold is told at the next session's start, or by the next hook that finds dead letters newer than
// .notified.json.
func (h *hook) tellOf(tx *inbox.Tx) {
	if h.Notify.Command == "" {
		return
	}
	begins := h.input != nil && h.input.Event == claude.EventSessionStart
	if tx.NeedsPerson() || begins || h.notifier.drained && h.Notify.Drained || h.lettersUntold() {
		h.notifier.drained = false
		h.startNotifier()
	}
}

// lettersUntold compares two file times and reads nothing, because each turn asks.
func (h *hook) lettersUntold() bool {
	letters, err := disk.StatName(h.box.DeadLetterPath())
	if err != nil {
		return false
	}
	told, err := disk.StatName(filepath.Join(h.box.Dir(), ".notified.json"))
	return err == nil && told.Mtime < letters.Mtime
}

// runsAsk has a person told which effects wait for one.
func (h *hook) runsAsk(effects []string) {
	if asked := strings.Join(effects, " "); h.Notify.Command != "" && asked != h.notifier.asked {
		if h.notifier.asked = asked; asked != "" {
			h.startNotifier()
		}
	}
}

// startNotifier starts heartbeat notify in a session of its own, and does not wait for it: that may take a while. None
// of the client's files are open in it.
func (h *hook) startNotifier() {
	program, err := findFull()
	if err == nil {
		args := []string{"notify", "--linger", "--inbox", h.box.Path(), "--notify", h.Notify.Command}
		if h.Notify.Drained {
			args = append(args, "--notify-drained")
		}
		c := exec.Command(program, args...)
		c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
		if err = c.Start(); err == nil {
			go func() { _ = c.Wait() }() // a hook that waits for weeks leaves no zombies
		}
	}
	if err != nil {
		h.complainOnce(fmt.Errorf("start %s notify, which tells a person: %w", FullCommand, err))
	}
}
