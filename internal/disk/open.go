package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const stateFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// OpenRead opens a state file for reading. The error matches [fs.ErrNotExist] if there is no file,
// and [ErrForeign] if it is not one of ours.
func OpenRead(path string) (*File, error) {
	return openState(path, unix.O_RDONLY)
}

// OpenExisting is [OpenRead] for reading and writing. It narrows the file's mode to 0600.
func OpenExisting(path string) (*File, error) {
	f, err := openState(path, unix.O_RDWR)
	if err != nil || f.info.Mode&0o077 == 0 || f.info.UID != uint32(os.Geteuid()) {
		return f, err
	}
	return f.narrow()
}

// narrow gives the file the mode 0600, or closes it.
func (f *File) narrow() (*File, error) {
	if err := f.change("chmod", Op{Kind: OpNarrow}, func() error { return unix.Fchmod(f.fd, 0o600) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.info.Mode = 0o600
	return f, nil
}

// OpenWrite is [OpenExisting], but creates a missing file with mode 0600 and reports that in created. A name is durable
// only after [SyncDir]. Even an existing name may not be: its creator may have been killed before that call.
func OpenWrite(path string) (f *File, created bool, err error) {
	return openOrCreate(path, OpenExisting)
}

// OpenAppend opens a user's file (see [OpenForeign]) for reading and [File.Append]. It creates a
// missing file with mode 0600.
func OpenAppend(path string) (f *File, created bool, err error) {
	return openOrCreate(path, func(path string) (*File, error) { return OpenForeign(path, unix.O_RDWR|unix.O_APPEND) })
}

func openOrCreate(path string, open func(path string) (*File, error)) (f *File, created bool, err error) {
	for {
		f, err = open(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, created, err
		}
		if f, err = create(path); err == nil {
			created, err = true, f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, created, err
		}
	}
}

// OpenForeign opens a regular file that belongs to the user and not to heartbeat. It follows links
// and accepts any owner. flags are those of open(2); O_NONBLOCK is always added. A link that leads
// nowhere does not count as a missing file: its disk may not be mounted.
//
// In a directory where others can create names, root follows no link and refuses a file with a
// second name: others could point either at any file.
//
// Reading leaves the file's atime alone if the system allows that, so that the atime shows when others read the file.
func OpenForeign(path string, flags int) (*File, error) {
	f, err := openForeign(path, flags)
	if errors.Is(err, fs.ErrNotExist) {
		if target, none := os.Readlink(path); none == nil {
			err = fmt.Errorf("open %s: it is a symbolic link to %s, which is not there: bring that back, or remove the link", path, target)
		}
	}
	return f, err
}

func openForeign(path string, flags int) (*File, error) {
	if os.Geteuid() != 0 {
		return openAny(path, flags)
	}
	f, err := openAny(path, flags|unix.O_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ELOOP) && OursAlone(filepath.Dir(path)):
		return openAny(path, flags)
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("open %s: it is a symbolic link where others may make one, and root follows none there: %w", path, ErrForeign)
	case err == nil && f.info.Links > 1 && !OursAlone(filepath.Dir(path)):
		return nil, errors.Join(fmt.Errorf("open %s: the file has %d names, and may be another user's own in a directory that is not root's: "+
			"work as the directory's owner, or put a copy in its place: %w", path, f.info.Links, ErrForeign), f.Close())
	}
	return f, err
}

// OursAlone reports whether only this user and root can create names in a directory. They made any
// second name of a file there, for example for a backup of hard links.
func OursAlone(dir string) bool {
	info, err := StatDir(dir)
	return err == nil && (info.UID == 0 || info.UID == uint32(os.Geteuid())) && info.Mode&0o022 == 0
}

// openAny opens a regular file of any owner.
func openAny(path string, flags int) (*File, error) {
	flags |= unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := open(path, flags|quietly, 0o600)
	if errors.Is(err, unix.EPERM) {
		fd, err = open(path, flags, 0o600)
	}
	if err != nil {
		return nil, err
	}
	f := &File{fd: fd, path: path}
	if _, err := f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case f.info.IsDir:
		return nil, errors.Join(fmt.Errorf("open %s: it is a directory, not a file", path), f.Close())
	case !f.info.IsRegular:
		return nil, errors.Join(fmt.Errorf("open %s: it is not a regular file", path), f.Close())
	}
	return f, nil
}

func openState(path string, flags int) (*File, error) {
	fd, err := open(path, flags|stateFlags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("open %s: it is a symbolic link, which is never followed for a state file: remove it: %w", path, ErrForeign)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, notRegular(path)
	}
	if err != nil {
		return nil, err
	}
	f := &File{fd: fd, path: path}
	if err := f.mustBeOurs(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) mustBeOurs() error {
	if _, err := f.Stat(); err != nil {
		return err
	}
	if !f.info.IsRegular {
		return notRegular(f.path)
	}
	if f.info.UID != 0 {
		if me := uint32(os.Geteuid()); f.info.UID != me && !f.isForRoot(me) {
			return fmt.Errorf("open %s: it belongs to user %d, and this is user %d: %w", f.path, f.info.UID, me, ErrForeign)
		}
	}
	if dir := filepath.Dir(f.path); f.info.Links > 1 && !OursAlone(dir) {
		return fmt.Errorf("open %s: the file has %d names, and others can make names in its directory, so that it may be any file of yours: "+
			"take that right away if the names are your own, as of a backup with cp -al (chmod go-w %[3]s), "+
			"or put a copy in its place (cp -p %[1]s %[1]s.new, then mv %[1]s.new %[1]s) or remove it: %[4]w", f.path, f.info.Links, dir, ErrForeign)
	}
	return nil
}

// isForRoot reports whether this process is root and the file belongs to the owner of its directory.
func (f *File) isForRoot(me uint32) bool {
	if me != 0 {
		return false
	}
	dir, err := StatDir(filepath.Dir(f.path))
	return err == nil && dir.UID == f.info.UID
}

func notRegular(path string) error {
	return fmt.Errorf("open %s: it is not a regular file: remove it: %w", path, ErrForeign)
}

// create creates a file that must not exist yet. In another user's directory, root gives the file
// to that user, who could not read it otherwise.
func create(path string) (*File, error) {
	if err := announce(Op{Kind: OpCreate, Path: path}); err != nil {
		return nil, err
	}
	fd, err := open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|stateFlags, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{fd: fd, path: path}
	if os.Geteuid() == 0 {
		var dir unix.Stat_t
		if unix.Stat(filepath.Dir(path), &dir) == nil && dir.Uid != 0 {
			if err := unix.Fchown(fd, int(dir.Uid), int(dir.Gid)); err != nil {
				return nil, errors.Join(&fs.PathError{Op: "chown", Path: path, Err: err}, f.Close())
			}
		}
	}
	switch _, err := f.Stat(); {
	case err != nil:
		return nil, errors.Join(err, f.Close())
	case f.info.Mode&0o600 != 0o600: // the umask took the owner's rights, too
		return f.narrow()
	}
	return f, nil
}

func open(path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Open(path, flags, mode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// MayWrite returns why this user cannot change anything in a directory. A file system that an error made read-only may
// reveal that only when a file is opened for writing, so MayWrite also opens the named one, if it exists.
func MayWrite(dir, name string) error {
	err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) // a folder that cannot be read cannot be synced
	f, refused := OpenForeign(filepath.Join(dir, name), unix.O_WRONLY)
	if _ = f.Close(); err == nil && errors.Is(refused, unix.EROFS) { // nothing was written
		return unix.EROFS
	}
	return err
}

// StatDir returns a directory's inode. It follows links.
func StatDir(path string) (Info, error) {
	info, err := statAt(path, unix.Stat)
	if err == nil && !info.IsDir {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return info, err
}

// StatFile returns the inode of any kind of file. It follows links.
func StatFile(path string) (Info, error) { return statAt(path, unix.Stat) }

// StatName is [StatFile] without following links.
func StatName(path string) (Info, error) { return statAt(path, unix.Lstat) }

func statAt(path string, stat func(string, *unix.Stat_t) error) (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return stat(path, &st) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	info := infoOf(&st)
	info.Granted = info.Mode&0o020 != 0 && !info.IsLink && grantsWrite(path, info.UID) // the group's bits are that list's mask
	return info, nil
}

func infoOf(st *unix.Stat_t) Info {
	kind := st.Mode & unix.S_IFMT
	return Info{
		Size: st.Size, Space: st.Blocks * 512, Block: max(1, int64(st.Blksize)),
		Mtime: st.Mtim.Nano(), Atime: st.Atim.Nano(), Ctime: st.Ctim.Nano(),
		Dev: uint64(st.Dev), Ino: st.Ino, UID: st.Uid, GID: st.Gid, Mode: uint32(st.Mode) & 0o7777, Links: uint64(st.Nlink),
		IsRegular: kind == unix.S_IFREG, IsDir: kind == unix.S_IFDIR, IsLink: kind == unix.S_IFLNK,
	}
}

// Free returns how many bytes this process may still write to new files in a folder. Some file systems do not tell.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	switch err := unix.Statfs(dir, &st); {
	case err != nil || st.Files > 0 && st.Ffree == 0 && TakesFile(dir, 1) != nil: // some count inodes, and never say that one is free
		return 0, err
	case st.Blocks == 0:
		return 0, fmt.Errorf("the space in %s: %w", dir, errors.ErrUnsupported)
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), nil //nolint:unconvert // they have other types elsewhere
}

// Sticky reports whether only a file's owner can change its name in this directory.
func (i Info) Sticky() bool { return i.Mode&unix.S_ISVTX != 0 }
