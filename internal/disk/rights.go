package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// OthersWrite reports whether anybody but the owner and root may write: everybody, somebody on an access list, or a
// group other than the owner's private one. Many systems give each user a private group of the user's name.
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

// nameOf returns the name of an ID in /etc/passwd or /etc/group, or "".
func nameOf(file string, id uint32) string {
	return string(accountIn(file, 2, strconv.FormatUint(uint64(id), 10), 3)[0])
}

// hasMembers reports whether the group has members besides the user of its name.
func hasMembers(group string) (has bool) {
	for m := range bytes.SplitSeq(accountIn("/etc/group", 0, group, 4)[3], []byte(",")) {
		has = has || len(m) > 0 && string(m) != group
	}
	return has
}

// accountIn returns the fields of the first line of /etc/passwd or /etc/group that has that value in a field and no
// fewer than least fields, or else empty fields. Package os/user links the C library, which would slow the hook's start.
func accountIn(file string, field int, value string, least int) [][]byte {
	for f := range accounts(file) {
		if len(f) >= least && string(f[field]) == value {
			return f
		}
	}
	return make([][]byte, least)
}

// accounts yields the fields of each line with at least three. If the file cannot be read, no account is known.
func accounts(file string) iter.Seq[[][]byte] {
	return func(yield func([][]byte) bool) {
		text, _ := ReadFile(file, maxAccounts)
		for l := range bytes.Lines(text) {
			if fields := bytes.Split(bytes.TrimSpace(l), []byte(":")); len(fields) > 2 && !yield(fields) {
				return
			}
		}
	}
}

// CheckRoot returns an error if this is root and somebody other than root and the owner of the inbox's
// directory could lead root to other files. Other users are safe by the system's own checks.
func CheckRoot(inbox string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := StatDir(filepath.Dir(inbox))
	if err != nil {
		return err
	}
	if OthersWrite(dir) && !dir.Sticky() {
		return fmt.Errorf("others may make and replace files in %s (mode %04o), and this is root: "+
			"take the right away (chmod go-w), or give the inbox a directory of its own", filepath.Dir(inbox), dir.Mode)
	}
	name, err := StatName(inbox)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !name.IsLink {
		return nil
	}
	if err == nil {
		err = checkLink(inbox, dir)
	}
	return err
}

// checkLink allows only a link that root alone can have made, to a directory where root alone can create files.
func checkLink(inbox string, dir Info) error {
	target, err := filepath.EvalSymlinks(inbox)
	if errors.Is(err, fs.ErrNotExist) && dir.UID == 0 && !OthersWrite(dir) {
		return nil // it leads nowhere, and nothing is created through it
	}
	if err != nil {
		return err
	}
	there, err := StatDir(filepath.Dir(target))
	switch {
	case err != nil:
		return err
	case dir.UID != 0 || OthersWrite(dir) || there.UID != 0 || OthersWrite(there):
		return fmt.Errorf("it is a symbolic link to %s, and others than root could lead it elsewhere: "+
			"name the file itself, or work as the user whose it is", target)
	}
	return nil
}

// BecomeOwner turns a root process into the owner of a directory, for good and in all threads, so that nothing there can
// lead it to files that the owner may not touch. It returns the new user. It does nothing and returns "" if the process
// is not root's, if the directory is root's, or if the system forbids the change: [CheckRoot] then guards the process.
func BecomeOwner(dir string) (who string, err error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	of, err := StatDir(dir)
	if err != nil || of.UID == 0 {
		return "", nil // opening the inbox reports the error
	}
	who = "user " + strconv.Itoa(int(of.UID))
	a := accountOf(of.UID)
	if a.name == "" {
		a.group = int(of.GID)
	}
	err = syscall.Setgroups(a.groups)
	if err == nil {
		err = syscall.Setgid(a.group)
	}
	if err != nil {
		return "", unableTo(of.UID, err)
	}
	if err := syscall.Setuid(int(of.UID)); err != nil {
		return "", unableTo(of.UID, err)
	}
	if a.name == "" {
		return who, nil
	}
	return who, errors.Join(os.Setenv("HOME", a.home), os.Setenv("USER", a.name), os.Setenv("LOGNAME", a.name))
}

// unableTo returns nil if root merely lacks the right, as in some containers.
func unableTo(uid uint32, err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return fmt.Errorf("become user %d, whose directory the inbox is in: %w", uid, err)
}

// account is a user of /etc/passwd. An empty name means no such user.
type account struct {
	name, home string
	group      int
	groups     []int
}

func accountOf(uid uint32) (a account) {
	f := accountIn("/etc/passwd", 2, strconv.FormatUint(uint64(uid), 10), 6)
	group, err := strconv.Atoi(string(f[3]))
	if err != nil || len(f[0]) == 0 {
		return a
	}
	a = account{name: string(f[0]), group: group, home: string(f[5])}
	for f := range accounts("/etc/group") {
		id, err := strconv.Atoi(string(f[2]))
		for m := range bytes.SplitSeq(f[len(f)-1], []byte(",")) {
			if err == nil && string(m) == a.name {
				a.groups = append(a.groups, id)
			}
		}
	}
	return a
}
