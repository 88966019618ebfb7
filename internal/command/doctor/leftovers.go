package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/rights"
)

// fresh is how long a temporary file may belong to a running hook.
const fresh = time.Minute

// checkLeftovers looks for files that a killed command left behind.
func checkLeftovers(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	dir := filepath.Dir(e.inbox)
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // checkDirectory reports it
		}
		return []Check{unseen("leftovers", "let this user read the directory", err)}
	}
	all := e.temporary(entries)
	all = append(all, e.forgotten()...)
	raw, err := e.unnamedCopies(entries)
	if err != nil {
		all = append(all, unseen("leftovers", "see the line about that file", err))
	}
	for _, path := range raw {
		all = append(all, warn("leftovers", "look into it, then remove it: "+quote(path),
			"%s is the copy of a line that was too long, and no line of %s names it", path, deadLettersFile))
	}
	if len(all) == 0 {
		all = append(all, ok("leftovers", "none in %s", dir))
	}
	return all
}

func (e *examination) temporary(entries []fs.DirEntry) []Check {
	var all []Check
	for _, entry := range entries {
		name, cut := strings.CutSuffix(entry.Name(), ".tmp")
		name = strings.TrimSuffix(name, ".trim")
		if !cut || !slices.Contains(append(stateFiles(), eventsFile, scheduledFile), name) {
			continue
		}
		if info, err := entry.Info(); err != nil || e.Now.Sub(info.ModTime()) < fresh {
			continue
		}
		path := e.beside(entry.Name())
		all = append(all, warn("leftovers", quote("rm", path),
			"%s was left by a command that was killed: nothing is lost with it, and the next such write removes it", path))
	}
	return all
}

// forgotten returns the files that nothing refers to any more.
func (e *examination) forgotten() []Check {
	box, err := inbox.Open(e.inbox, inbox.Options{})
	var names []string
	if err == nil {
		names, err = box.Leftovers()
	}
	switch {
	case err != nil && rights.CheckRoot(e.inbox) != nil:
		return nil // checkDirectory reports it
	case err != nil:
		return []Check{unseen("leftovers", "see the line about that file", err)}
	}
	var all []Check
	for _, name := range names {
		path := e.beside(name)
		if info, err := os.Lstat(path); err != nil || e.Now.Sub(info.ModTime()) < fresh {
			continue
		}
		all = append(all, warn("leftovers", quote("heartbeat", "compact", "--inbox", e.inbox),
			"%s was left by a command that was killed, or of an entry that was requeued: nothing refers to it", path).mendedBy(forgetting))
	}
	return all
}

// unnamedCopies returns the raw files that no dead letter names.
func (e *examination) unnamedCopies(entries []fs.DirEntry) ([]string, error) {
	unnamed := map[string]bool{}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, ".dead-letter-") && strings.HasSuffix(name, ".raw") {
			unnamed[name] = true
		}
	}
	if len(unnamed) == 0 {
		return nil, nil
	}
	_, err := e.each("leftovers", e.beside(deadLettersFile), func(_ int64, _ []byte, m gjson.Result) bool {
		delete(unnamed, m.Get("raw_file").String())
		return true
	})
	if err != nil {
		return nil, err
	}
	var paths []string
	for name := range unnamed {
		paths = append(paths, e.beside(name))
	}
	slices.Sort(paths)
	return paths, nil
}

// checkState looks for state that the hook would refuse.
func checkState(e *examination) []Check {
	if e.inbox == "" || rights.CheckRoot(e.inbox) != nil {
		return nil // checkDirectory reports it
	}
	dir := filepath.Dir(e.inbox)
	if _, err := disk.StatDir(dir); err != nil {
		return nil // likewise
	}
	box, err := inbox.Open(e.inbox, inbox.Options{})
	if err == nil {
		var v *inbox.View
		if v, err = box.View(); err == nil {
			err = v.Close()
		}
	}
	switch {
	case errors.Is(err, inbox.ErrOtherInbox):
		name, _ := inbox.Named(dir) // it was read just now
		return []Check{fail("state", "give each inbox a directory of its own", "the state in %s: it belongs to another inbox, %s, and is refused to %s", dir, name, filepath.Base(e.inbox))}
	case err != nil:
		return []Check{fail("state", "correct that file, or move it away: the state goes on from the others, and without .inbox-offset the inbox is read from its start", "%v", err)}
	}
	var read []string
	for _, name := range []string{offsetFile, inFlightFile, journalFile} {
		if there, err := disk.Exists(e.beside(name)); err == nil && there {
			read = append(read, name)
		}
	}
	if len(read) == 0 {
		return []Check{ok("state", "valid: there is none yet")}
	}
	return []Check{ok("state", "valid: %s", quote(read...))}
}
