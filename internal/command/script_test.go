package command_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/internal/testing/script"
)

// TestScripts runs the scripts in testdata/script. The first comment of each says
// what a user sees. Package script describes their commands.
func TestScripts(t *testing.T) { testscript.Run(t, script.Params(setUp)) }

func setUp(env *testscript.Env) error {
	launchers, err := filepath.Abs("testdata/launcher")
	if err != nil {
		return err
	}
	env.Setenv("INBOX", "inbox.jsonl")
	env.Setenv("LAUNCHER", launchers)
	if os.Geteuid() != 0 {
		return nil
	}
	// A script may continue as a plain user, who must be able to reach its files.
	dir := env.WorkDir
	bin, err := exec.LookPath("heartbeat-stop")
	for _, path := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(bin))} {
		err = errors.Join(err, os.Chmod(path, 0o755))
	}
	return err
}
