package hook

import (
	"os"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
)

// standsBack reports whether a launcher gave the session a hook of its own. A hook from
// the project's settings then leaves every event to that one. If it has another inbox,
// it would deliver into a session that works for this one, and keep it from ending.
func (h *hook) standsBack() bool {
	of := os.Getenv(cli.LaunchedVariable)
	if of == "" || h.Launched {
		return false
	}
	if !inbox.SameInbox(of, h.box.Path()) {
		h.Note("this session works for %s, by way of heartbeat-launch: the hook of %s does nothing in it", of, h.box.Path())
	}
	return true
}
