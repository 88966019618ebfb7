package babysitter

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

type run struct {
	dir string // absolute; links are not resolved
	id  string
}

// absolute makes a path absolute, so that the CLI does not interpret it.
func absolute(what, path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("the folder of the %s is empty", what)
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", fmt.Errorf("the path %q of the %s has control characters", path, what)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the %s %s: %w", what, path, err)
	}
	if strings.Contains(abs+"/", "/.a5c/runs/.a5c/runs/") {
		return "", fmt.Errorf("the %s %s has .a5c/runs twice in a row, which the CLI takes for a mistake and works elsewhere", what, abs)
	}
	return abs, nil
}

var effectIDs = lazily(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

func checkEffectID(id string) error {
	if !effectIDs().MatchString(id) {
		return fmt.Errorf("%.200q is no effect id: those are letters and digits", id)
	}
	return nil
}

// Project returns P for a run in P/.a5c/runs, where process code expects to run, and "" for a run anywhere else.
func Project(runDir string) string {
	all := filepath.Dir(runDir)
	dot := filepath.Dir(all)
	if filepath.Base(all) == "runs" && filepath.Base(dot) == ".a5c" {
		return filepath.Dir(dot)
	}
	return ""
}
