package terminal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	// ErrNotFound says that there is no such command.
	ErrNotFound = errors.New("there is no such command")
	// ErrCannotRun says that the command exists and cannot be run.
	ErrCannotRun = errors.New("the command cannot be run")

	errClosed = os.ErrClosed
)

// Find is the path of the command, which may be relative to Options.Dir, or the error of [Run]
// for one that cannot be run, as far as that can be known without running it.
func Find(o Options) (path string, err error) { return (&session{Options: o}).find() }

// find looks for the command as a shell in Options.Dir would.
func (s *session) find() (path string, err error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	name := s.Command[0]
	if strings.Contains(name, "/") {
		return s.check(name)
	}
	denied := error(nil)
	for _, dir := range filepath.SplitList(variable(s.Env, "PATH")) {
		if dir == "" {
			dir = "."
		}
		path, err := s.check(filepath.Join(dir, name))
		switch {
		case err == nil && strings.Contains(path, "/"):
			return path, nil
		case err == nil:
			return "./" + path, nil
		case errors.Is(err, ErrCannotRun) && denied == nil:
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("%w: %s is in no directory of PATH", ErrNotFound, name)
}

// enter checks the working directory.
func (s *session) enter() error {
	info, err := os.Stat(s.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("working directory %s: it does not exist: make it, or name another one with --cwd", s.Dir)
	case err != nil:
		return fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("working directory %s: it is not a directory", s.Dir)
	}
	if err := unix.Access(s.Dir, unix.X_OK); err != nil {
		return fmt.Errorf("working directory %s: %w: its rights do not let you in", s.Dir, err)
	}
	return nil
}

// check returns the path, or an error if it is missing or not executable.
func (s *session) check(path string) (string, error) {
	file := path
	if !filepath.IsAbs(path) {
		file = filepath.Join(s.Dir, path)
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return "", fmt.Errorf("%w: %s is not there", ErrNotFound, path)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrCannotRun, err)
	case info.IsDir():
		return "", fmt.Errorf("%w: %s is a directory", ErrCannotRun, path)
	case unix.Access(file, unix.X_OK) != nil:
		return "", fmt.Errorf("%w: %s is not executable for you (chmod +x?)", ErrCannotRun, path)
	}
	return path, nil
}

// variable returns the value of a variable. The last one of that name counts.
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, found := strings.CutPrefix(kv, name+"="); found {
			return value
		}
	}
	return ""
}
