package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

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

// BecomeOwner makes a root process the owner of a directory, for good and in all threads, so that nothing there can
// lead it to files that the owner may not touch. It does nothing unless this is root, for root's own directory, or if
// the system forbids the change; then [CheckRoot] and internal/disk are the guard. It returns the new user, or "".
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
	eachAccount("/etc/passwd", func(f [][]byte) bool {
		if len(f) < 6 || string(f[2]) != strconv.FormatUint(uint64(uid), 10) {
			return true
		}
		group, err := strconv.Atoi(string(f[3]))
		if err == nil {
			a = account{name: string(f[0]), group: group, home: string(f[5])}
		}
		return false
	})
	if a.name == "" {
		return a
	}
	eachAccount("/etc/group", func(f [][]byte) bool {
		id, err := strconv.Atoi(string(f[2]))
		for m := range bytes.SplitSeq(f[len(f)-1], []byte(",")) {
			if err == nil && string(m) == a.name {
				a.groups = append(a.groups, id)
			}
		}
		return true
	})
	return a
}
