package doctor

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckBabysitter(t *testing.T) {
	w := newWorld(t)
	var asked []string
	version, said := "0.0.187", ""
	var failure error
	w.Babysitter = func(_ context.Context, command string) (string, string, error) {
		asked = append(asked, command)
		return version, said, failure
	}
	w.says(checkBabysitter)
	assert.Empty(t, asked, "no hook drives a run")

	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--run", "/runs/r1", "--babysitter", "/opt/babysitter"))
	w.says(checkBabysitter, "ok /opt/babysitter is version 0.0.187")
	said = "it is version 0.0.174, with which runs fail"
	w.says(checkBabysitter, "warn it is version 0.0.174")
	failure = errors.New("there is no command /opt/babysitter")
	w.says(checkBabysitter, "fail there is no command /opt/babysitter")
	assert.Subset(t, []string{"/opt/babysitter"}, asked)

	asked = nil
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox))
	w.Runs = func(string) []DrivenRun { return []DrivenRun{{Dir: "/runs/r1"}} }
	w.says(checkBabysitter, "fail there is no command")
	assert.Equal(t, []string{"babysitter"}, asked, "the usual one drives it from elsewhere")
}

// A hook that drives runs has heartbeat take over.
func TestCheckBinaryOfRuns(t *testing.T) {
	w := newWorld(t)
	w.says(checkBinary, "ok belongs to this command")
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--run", "/runs/r1"))
	w.says(checkBinary, "ok belongs to this command", "warn /bin/heartbeat cannot be started, which takes over from the hook")
	w.write(filepath.Join(w.bin, "heartbeat"), "#!/bin/sh\n", 0o755)
	w.says(checkBinary, "ok belongs to this command")
}
