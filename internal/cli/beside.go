package cli

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"heartbeat/internal/disk"
)

// Beside returns the path of another heartbeat command. It prefers the running command's own
// folder, so that both come from the same release, and then looks on PATH.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this command's own path: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := exec.LookPath(path); err == nil {
		path = linked(path)
		return path, checkOwner(path, self)
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither in %s, beside this command, nor on PATH: install all of heartbeat's commands into one folder", name, filepath.Dir(self))
	}
	return filepath.Abs(found)
}

// Become replaces this process with the program at path. It returns only on failure.
func Become(path string, args []string) error {
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, slices.Concat([]string{path}, args), os.Environ()))
}

// linked returns the name of the same file in the folder that this command was called in. Where a package manager keeps
// links, that name is also the next release's, and the folder that they lead to goes away.
func linked(path string) string {
	called, err := exec.LookPath(os.Args[0])
	if err != nil { // not found, or found in the current folder by a relative PATH, where anybody may make a link
		return path
	}
	link, _ := filepath.Abs(filepath.Join(filepath.Dir(called), filepath.Base(path)))
	its, _ := os.Stat(link)
	own, _ := os.Stat(path)
	if os.SameFile(its, own) { // not if one is missing
		return link
	}
	return path
}

// checkOwner refuses a sibling program that a stranger may have put into a sticky folder such as
// /tmp. The program must belong to root, to this user or to the owner of the running command. In
// any other folder that strangers can write, they could replace the running command itself.
func checkOwner(path, self string) error {
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil || folder.Mode()&fs.ModeSticky == 0 {
		return err
	}
	its, err := disk.StatName(path) // the owner of a link chose its target
	if err != nil || its.UID == 0 || int(its.UID) == os.Geteuid() {
		return err
	}
	if own, err := disk.StatFile(self); err == nil && own.UID == its.UID {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d, and is not run: install heartbeat's commands into a folder of your own", path, its.UID)
}
