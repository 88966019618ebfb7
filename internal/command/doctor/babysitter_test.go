package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/effect"
)

func TestCheckBabysitter(t *testing.T) {
	w := newWorld(t)
	w.program("babysitter", ": > '"+w.Home+"/asked'; echo "+effect.MeasuredVersion)
	w.says("babysitter")
	assert.NoFileExists(t, filepath.Join(w.Home, "asked"), "no hook drives a run")

	bs := filepath.Join(w.bin, "bs")
	w.program("bs", "echo "+effect.MeasuredVersion)
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--run", "/runs/r1", "--babysitter", bs))
	w.says("babysitter", "ok "+bs+" is version "+effect.MeasuredVersion)
	w.program("bs", "echo 0.0.174")
	w.says("babysitter", "warn is version 0.0.174")
	assert.NoError(t, os.Remove(bs))
	w.says("babysitter", "fail "+bs)
	assert.NoFileExists(t, filepath.Join(w.Home, "asked"))

	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox))
	w.Driven = func(*inbox.Inbox) ([]orchestrate.DrivenRun, []string, error) {
		return []orchestrate.DrivenRun{{Dir: "/runs/r1"}}, []string{".run-x.json"}, nil
	}
	w.says("babysitter", "ok babysitter is version")
	w.says("run", "warn .run-x.json was not made by way of this inbox", "fail /runs/r1")
}

// A hook that drives runs has heartbeat take over.
func TestCheckBinaryOfRuns(t *testing.T) {
	w := newWorld(t)
	w.says("binary", "ok belongs to this command")
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--run", "/runs/r1"))
	w.says("binary", "warn the heartbeat beside the hook cannot be started")
	w.write(filepath.Join(w.bin, "heartbeat"), "#!/bin/sh\n", 0o755)
	w.says("binary", "ok belongs to this command")
}
