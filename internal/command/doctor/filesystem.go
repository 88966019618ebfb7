package doctor

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"heartbeat/internal/words"
)

const (
	littleSpace = 64 << 20
	noSpace     = 1 << 20
)

// fileSystem is what the kernel says about the file system of a directory.
type fileSystem struct {
	kind     string // such as nfs; "" for an ordinary one
	why      string // why that kind does not fit
	readOnly bool
	free     uint64 // bytes for a plain user
	// nodes is how many files there can be, 0 without such a limit.
	nodes, freeNodes uint64
}

// errNoStatfs says that this system's file systems cannot be examined.
var errNoStatfs = errors.New("file systems are only looked at on Linux")

// checkFileSystem looks at the file system of the inbox's directory.
func checkFileSystem(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	dir := filepath.Dir(e.inbox)
	f, err := statFileSystem(dir)
	if errors.Is(err, errNoStatfs) {
		return []Check{warn("file-system", "see yourself that it is a local disk with space left", "%s was not looked at: %v", dir, err)}
	}
	if err != nil {
		return []Check{unseen("file-system", "see the line about the directory", fmt.Errorf("statfs %s: %w", dir, err))}
	}
	return f.judge(dir)
}

func (f fileSystem) judge(dir string) []Check {
	const elsewhere = "choose an inbox on a local disk"
	var all []Check
	if f.kind != "" {
		all = append(all, warn("file-system", elsewhere, "%s is on %s, %s", dir, f.kind, f.why))
	}
	if f.readOnly {
		all = append(all, fail("file-system", elsewhere+", or mount this one writable", "%s is mounted read-only", dir))
	}
	left := words.Size(int64(min(f.free, math.MaxInt64)))
	switch {
	case f.free < noSpace:
		all = append(all, fail("file-system", "make space", "%s has %s left: nothing can be committed", dir, left))
	case f.free < littleSpace:
		all = append(all, warn("file-system", "make space", "%s has %s left", dir, left))
	}
	if f.nodes > 0 && f.freeNodes == 0 {
		all = append(all, fail("file-system", "remove files", "%s has no inode left: no file can be made", dir))
	}
	if len(all) == 0 {
		all = append(all, ok("file-system", "%s is on a local file system with %s left", dir, left))
	}
	return all
}
