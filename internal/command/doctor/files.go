package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/rights"
	"heartbeat/internal/words"
)

// Files beside the inbox.
const (
	offsetFile      = ".inbox-offset"
	inFlightFile    = ".in-flight"
	respondedFile   = ".responded"
	resultsFile     = ".results.jsonl"
	deadLettersFile = ".dead-letter.jsonl"
	eventsFile      = ".events.jsonl"
	scheduledFile   = ".scheduled.jsonl"
	journalFile     = ".inbox-journal"
	lockFile        = ".inbox-lock"
)

func stateFiles() []string {
	return []string{offsetFile, inFlightFile, respondedFile, resultsFile, deadLettersFile, journalFile, lockFile}
}

func (e *examination) beside(name string) string { return filepath.Join(filepath.Dir(e.inbox), name) }

// checkFiles looks at type, owner and mode of the inbox and its state files.
func checkFiles(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	all := []Check{e.inboxFile()}
	found, bad := 0, 0
	for _, name := range stateFiles() {
		info, err := os.Lstat(e.beside(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found++
		if c, wrong := e.stateFile(name, info, err); wrong {
			bad++
			all = append(all, c)
		}
	}
	if bad == 0 && found > 0 {
		all = append(all, ok("state-files", "%d in %s: regular files, mode 0600, of the right user", found, filepath.Dir(e.inbox)))
	}
	return all
}

func (e *examination) inboxFile() Check {
	info, err := os.Stat(e.inbox)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, err := os.Readlink(e.inbox); err == nil {
			return fail("inbox", quote("rm", e.inbox), "%s is a symbolic link to %s, which is not there", e.inbox, target)
		}
		return ok("inbox", "%s is not there yet: the first entry creates it", e.inbox)
	case err != nil:
		return unseen("inbox", "let this user search the folders above it", err)
	case !info.Mode().IsRegular():
		return fail("inbox", "name a file as the inbox", "%s is not a regular file (%s)", e.inbox, info.Mode().Type())
	}
	if err := unix.Access(e.inbox, unix.R_OK); err != nil {
		return fail("inbox", quote("chmod", "u+r", e.inbox), "user %d may not read %s (mode %04o, owner %d): %v",
			e.UID, e.inbox, info.Mode().Perm(), cli.OwnerOf(info), err)
	}
	if of, err := disk.StatFile(e.inbox); err == nil && rights.Others(of) {
		return warn("inbox", quote("chmod", "go-w", e.inbox), "others may write to %s (mode %04o): whoever can write to the inbox can instruct the agent",
			e.inbox, of.Mode)
	}
	return ok("inbox", "%s is a regular file of %s, mode %04o", e.inbox, words.Size(info.Size()), info.Mode().Perm())
}

// stateFile returns what is wrong with an existing state file.
func (e *examination) stateFile(name string, info fs.FileInfo, err error) (c Check, wrong bool) {
	path := e.beside(name)
	if err != nil {
		return unseen("state-files", "let this user search the directory", err), true
	}
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return fail("state-files", quote("rm", path), "%s is a symbolic link, which the hook refuses", path), true
	case !mode.IsRegular():
		return fail("state-files", "take it away: "+path, "%s is not a regular file (%s), and the hook refuses it", path, mode.Type()), true
	case e.UID != 0 && cli.OwnerOf(info) != e.UID && cli.OwnerOf(info) != 0:
		return fail("state-files", "see who made it, then take it away: "+path, "%s belongs to user %d and this is user %d: the hook refuses it", path, cli.OwnerOf(info), e.UID), true
	case links(info) > 1 && !disk.OursAlone(filepath.Dir(path)):
		return fail("state-files", quote("cp", "-p", path, path+".new")+" && "+quote("mv", path+".new", path),
			"%s has %d names, others can make names in its directory, and the hook refuses it: what it writes would be in the other file as well", path, links(info)), true
	case links(info) > 1:
		return warn("state-files", quote("cp", "-p", path, path+".new")+" && "+quote("mv", path+".new", path)+", while no session runs",
			"%s has %d names: what is written to it is in the other file as well, so that a backup with cp -al is none of it", path, links(info)), true
	}
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return fail("state-files", quote("chmod", "600", path), "user %d may not read and write %s (mode %04o, owner %d): %v",
			e.UID, path, mode.Perm(), cli.OwnerOf(info), err), true
	}
	if mode.Perm() != 0o600 {
		return warn("state-files", quote("chmod", "600", path), "%s has mode %04o: it holds prompts and replies, and is made with 0600", path, mode.Perm()), true
	}
	return Check{}, false
}

// checkDirectory looks at the inbox's directory.
func checkDirectory(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	dir := filepath.Dir(e.inbox)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Check{fail("directory", quote("mkdir", "-p", "-m", "700", dir), "%s does not exist", dir)}
	case err != nil:
		return []Check{unseen("directory", "let this user search the folders above it", err)}
	case !info.IsDir():
		return []Check{fail("directory", "name an inbox in a directory", "%s is not a directory", dir)}
	}
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return []Check{fail("directory", fmt.Sprintf("as its owner: %s, or choose another directory", quote("chmod", "u+rwx", dir)),
			"user %d may not make files in %s (mode %04o, owner %d): %v", e.UID, dir, info.Mode().Perm(), cli.OwnerOf(info), err)}
	}
	if of, err := disk.StatDir(dir); err == nil && rights.Others(of) {
		return []Check{warn("directory", quote("chmod", "go-w", dir),
			"others may make and replace files in %s (mode %04o): whoever can do that instructs the agent and forges its state, "+
				"and heartbeat-launch refuses it without --shared", dir, of.Mode)}
	}
	return []Check{ok("directory", "%s belongs to user %d, mode %04o", dir, cli.OwnerOf(info), info.Mode().Perm())}
}

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
