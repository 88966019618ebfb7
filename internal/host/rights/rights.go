// Package rights tells who else may write to what heartbeat depends on, and has
// root act as the user whose directory it works in.
package rights

import (
	"bytes"
	"strconv"

	"heartbeat/internal/disk"
)

// Others reports whether more users than the owner (and root) may write: everybody,
// or the members of a group that is not the owner's very own. Such a group has its
// owner's name, as many systems make one for each user.
func Others(of disk.Info) bool {
	switch {
	case of.Mode&0o002 != 0:
		return true
	case of.Mode&0o020 == 0:
		return false
	}
	owner := nameOf("/etc/passwd", of.UID)
	group := nameOf("/etc/group", of.GID)
	if owner == "" && group == "" { // a user of another machine, as containers have them
		return of.UID != of.GID
	}
	return owner != group || hasMembers(owner)
}

// maxAccounts is the most that is read of the files of accounts.
const maxAccounts = 16 << 20

// nameOf is the name that a number has in a file of accounts, "" for none. The two
// files are read here: os/user would link the C library, and the hook start later.
func nameOf(file string, id uint32) (name string) {
	eachAccount(file, func(f [][]byte) bool {
		if string(f[2]) == strconv.FormatUint(uint64(id), 10) {
			name = string(f[0])
		}
		return name == ""
	})
	return name
}

// hasMembers reports whether a group has others than the user of its name.
func hasMembers(group string) (has bool) {
	eachAccount("/etc/group", func(f [][]byte) bool {
		if string(f[0]) != group || len(f) < 4 {
			return true
		}
		for m := range bytes.SplitSeq(f[3], []byte(",")) {
			has = has || len(m) > 0 && string(m) != group
		}
		return false
	})
	return has
}

func eachAccount(file string, f func(fields [][]byte) bool) {
	text, err := disk.ReadFile(file, maxAccounts)
	if err != nil {
		return // nobody is known then
	}
	for l := range bytes.Lines(text) {
		if fields := bytes.Split(bytes.TrimSpace(l), []byte(":")); len(fields) > 2 && !f(fields) {
			return
		}
	}
}
