package main

import (
	"os"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
)

// standsBack reports whether a launcher gave the session a hook of its own for
// this very inbox: then one that is wired in the project's settings leaves every
// event to that.
func (h *hook) standsBack() bool {
	of := os.Getenv(cli.LaunchedVariable)
	return of != "" && !h.launched && inbox.Same(of, h.box.Path())
}
