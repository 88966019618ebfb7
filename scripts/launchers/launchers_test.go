package launchers_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/internal/testing/babysitter"
)

// bin is a folder for the PATH that holds the shipped commands, and this test binary as the
// client.
var bin string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(client())
	}
	os.Exit(withCommands(m))
}

func withCommands(m *testing.M) int {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	return m.Run()
}

func build() (err error) {
	if bin, err = os.MkdirTemp("", "heartbeat-launchers-"); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", bin+string(filepath.Separator), "heartbeat/cmd/heartbeat", "heartbeat/cmd/heartbeat-stop", "heartbeat/cmd/heartbeat-launch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Symlink(self, filepath.Join(bin, "claude"))
}

// TestScripts runs the scripts in testdata/script. They call the launchers by name, and
// claude is a stand-in for the client:
//
//	status N COMMAND...     a command and its exact status
func TestScripts(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SCREENS", filepath.Join(here, "../../testdata/screens"))
			env.Setenv("PATH", strings.Join([]string{bin, here, os.Getenv("PATH")}, string(filepath.ListSeparator)))
			env.Setenv("LAUNCHERS", here)
			babysitter, sdk, _ := babysitter.Find() // see the condition
			env.Setenv("BABYSITTER", babysitter)
			env.Setenv("SDK", sdk)
			env.Setenv("HEARTBEAT_INBOX", filepath.Join(env.WorkDir, "queue", "inbox.jsonl"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			_, _, ok := babysitter.Find()
			return name == "root" && os.Geteuid() == 0 || name == "babysitter" && ok, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": cmdStatus},
	})
}

func cmdStatus(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case err == nil && want == 0:
	case err == nil:
		ts.Fatalf("exit status 0, want %d", want)
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case exit.ExitCode() != want:
		ts.Fatalf("exit status %d, want %d", exit.ExitCode(), want)
	}
}
