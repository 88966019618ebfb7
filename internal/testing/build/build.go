// Package build builds the commands for tests that need the real programs.
package build

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"heartbeat/internal/testing/script"
)

// Main runs the tests of a package with the commands in a folder, which it names in dir, and
// ends the process.
func Main(m interface{ Run() int }, dir *string) {
	built, remove, err := Commands()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*dir = built
	status := script.Run(m)
	remove()
	os.Exit(status)
}

// Commands puts all commands, or the programs of these folders of the repository, into a new
// temporary directory, which every user may enter. The caller removes it with remove. Whether they are built with cgo is up
// to the environment, as for the tests: otherwise everything is compiled twice. Without
// cgo, as .ci/run has it, they are what is shipped.
func Commands(folders ...string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "heartbeat-commands-"); err != nil {
		return "", nil, fmt.Errorf("build the commands: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // a temporary directory: what stays does no harm
	if err = errors.Join(into(dir, folders), os.Chmod(dir, 0o755)); err != nil {
		remove()
		return "", nil, fmt.Errorf("build the commands: %w", err)
	}
	return dir, remove, nil
}

// into builds the commands in a folder of the build cache, where the next package's tests
// find them up to date, and links them into dir: a later build puts new files there.
func into(dir string, folders []string) error {
	if len(folders) == 0 {
		folders = []string{"cmd/..."}
	}
	var packages []string
	for _, folder := range folders {
		packages = append(packages, "heartbeat/"+folder)
	}
	cache, err := run("go", "env", "GOCACHE")
	if err != nil {
		return err
	}
	shared := filepath.Join(cache, "heartbeat-commands")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(shared, ".lock"))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the lock goes with it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := run("go", slices.Concat([]string{"build", "-buildvcs=false", "-o", shared + string(filepath.Separator)}, packages)...); err != nil {
		return err
	}
	built, err := run("go", append([]string{"list", "-f", "{{.ImportPath}}"}, packages...)...)
	if err != nil {
		return err
	}
	for _, path := range strings.Fields(built) {
		name := filepath.Base(path)
		if err := link(filepath.Join(shared, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func run(name string, args ...string) (out string, err error) {
	raw, err := exec.Command(name, args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, failed.Stderr)
	}
	return strings.TrimSpace(string(raw)), err
}

// link makes to the same file as from, or a copy of it on another file system.
func link(from, to string) error {
	if err := os.Link(from, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
