package disk

import (
	"bytes"
	"strconv"
)

// OthersWrite reports whether anybody but the owner and root may write: everybody, whom an access list names, or a
// group that is not the owner's private one. Many systems give each user a private group of the user's name.
func OthersWrite(of Info) bool {
	switch {
	case of.Mode&0o002 != 0, of.Mode&0o020 != 0 && of.Granted:
		return true
	case of.Mode&0o020 == 0:
		return false
	}
	owner := nameOf("/etc/passwd", of.UID)
	group := nameOf("/etc/group", of.GID)
	if owner == "" && group == "" { // a user of another machine, as in a container
		return of.UID != of.GID
	}
	return owner != group || hasMembers(owner)
}

// maxAccounts bounds how much of /etc/passwd and /etc/group is read, in bytes.
const maxAccounts = 16 << 20

// nameOf returns the name of an ID in /etc/passwd or /etc/group, or "". Package os/user links the C
// library, which would slow the hook's start.
func nameOf(file string, id uint32) (name string) {
	eachAccount(file, func(f [][]byte) bool {
		if string(f[2]) == strconv.FormatUint(uint64(id), 10) {
			name = string(f[0])
		}
		return name == ""
	})
	return name
}

// hasMembers reports whether the group has members besides the user of its name.
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
	text, err := ReadFile(file, maxAccounts)
	if err != nil {
		return // then no account is known
	}
	for l := range bytes.Lines(text) {
		if fields := bytes.Split(bytes.TrimSpace(l), []byte(":")); len(fields) > 2 && !f(fields) {
			return
		}
	}
}
