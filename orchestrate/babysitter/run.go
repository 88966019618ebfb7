package babysitter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"heartbeat/internal/disk"
)

// run is a run's folder, checked before the CLI is called.
type run struct {
	dir string // absolute; links are not resolved
	id  string // empty if run.json has none
}

// runIn refuses paths that the CLI would read differently, and a folder without a run: the
// CLI has many messages for that, and with some commands none.
func runIn(dir string) (run, error) {
	abs, err := absolute("run", dir)
	if err != nil {
		return run{}, err
	}
	metadata, err := disk.ReadFile(filepath.Join(abs, "run.json"), maxMetadata)
	if errors.Is(err, fs.ErrNotExist) || isNotFolder(abs) {
		return run{}, &problem{ErrNoRun, fmt.Sprintf("there is no run in %s: it has no run.json", abs), err}
	}
	if err != nil {
		return run{}, fmt.Errorf("look at the run %s: %w", abs, err)
	}
	var named struct{ RunID text }
	_ = json.Unmarshal(metadata, &named) // the CLI will say what is wrong with it
	return run{abs, string(named.RunID)}, nil
}

// maxMetadata is more than any run.json needs.
const maxMetadata = 64 << 20

// lookAt is runIn for a call that changes nothing.
func lookAt(dir string) (run, error) {
	r, err := runIn(dir)
	if err == nil {
		err = r.mustHaveJournal()
	}
	return r, err
}

func isNotFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// absolute makes a path absolute, so that the CLI does not interpret it.
func absolute(what, path string) (string, error) {
	switch {
	case path == "":
		return "", invalid("the folder of the %s is empty", what)
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", invalid("the path %q of the %s has control characters", path, what)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the %s %s: %w", what, path, err)
	}
	if strings.Contains(abs+"/", "/.a5c/runs/.a5c/runs/") {
		return "", invalid("the %s %s has .a5c/runs twice in a row, which the CLI takes for a mistake and works elsewhere", what, abs)
	}
	return abs, nil
}

func invalid(format string, args ...any) error {
	return &problem{kind: ErrInvalid, sentence: fmt.Sprintf(format, args...)}
}

var effectIDs = lazily(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

func checkEffectID(id string) error {
	if !effectIDs().MatchString(id) {
		return invalid("%.200q is no effect id: those are letters and digits", id)
	}
	return nil
}

// projectOf is the folder that process code expects to run in; empty if the run does not
// lie in a project.
func (r run) projectOf() string { return Project(r.dir) }

// Project is P for a run in P/.a5c/runs, and empty for a run anywhere else.
func Project(runDir string) string {
	runs := filepath.Dir(runDir)
	dot := filepath.Dir(runs)
	if filepath.Base(runs) == "runs" && filepath.Base(dot) == ".a5c" {
		return filepath.Dir(dot)
	}
	return ""
}
