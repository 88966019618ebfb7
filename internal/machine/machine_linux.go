package machine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// bootID asks the kernel (proc(5), random/boot_id).
func bootID() string {
	id := strings.TrimSpace(string(readPlain("/proc/sys/kernel/random/boot_id", 1)))
	if id == "" {
		return unreadBoot()
	}
	return id
}

// severalBoots reports whether one boot may have several IDs: some containers mount an ID over the kernel's, and a sandbox
// of systemd removes that mount for a service inside. Elsewhere a process of the same namespace, pid and start may be of
// another boot: virtual machines that hold one container start alike to the hundredth of a second.
func severalBoots() bool {
	return TestOnlyBootID == "" && bytes.Contains(readProcess(1, "mountinfo", 1<<20), []byte(" /proc/sys/kernel/random/boot_id "))
}

// readPlain reads a kernel file until it has at least least bytes; nil if it cannot. It uses plain system
// calls: os.ReadFile would start the runtime's poller, and the hook reads here at each delivery.
func readPlain(path string, least int) (all []byte) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for part := make([]byte, 4<<10); len(all) < least; {
		n, err := unix.Read(fd, part)
		if n <= 0 || err != nil {
			break
		}
		all = append(all, part[:n]...)
	}
	return all
}

func readProcess(pid int, name string, least int) []byte {
	return readPlain("/proc/"+strconv.Itoa(pid)+"/"+name, least)
}

// unreadable reports whether /proc cannot be read for the process, as without a free descriptor.
func unreadable(pid int) bool {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT && err != unix.ESRCH
	}
	_ = unix.Close(fd) // it was only opened
	return false
}

// SinceBoot is a clock in nanoseconds since boot that is never set back (clock_gettime(2),
// CLOCK_BOOTTIME). Compare its values only within one boot.
func SinceBoot() int64 { return clock(unix.CLOCK_BOOTTIME) }

// Awake is SinceBoot without the time that the machine slept (CLOCK_MONOTONIC).
func Awake() int64 { return clock(unix.CLOCK_MONOTONIC) }

// List returns all visible processes except zombies (proc(5)). Without /proc it is empty.
func List() (all []Entry) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if e, ok := entry(pid); ok {
				all = append(all, e)
			}
		}
	}
	return all
}

// entry reads a process from /proc. ok is false if the process has ended. While a process lives, its first thread is a
// zombie if another thread calls execve(2) or has yet to end; for a moment in between, the process has no thread at all.
func entry(pid int) (e Entry, ok bool) {
	for range 10 {
		stat := readProcess(pid, "stat", 1)
		// 42 (a name) S 1 42 42 ...: the name may contain anything, also parentheses
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		const threads, startTime = 20 - 3, 22 - 3 // the third field is the first here
		if len(f) <= startTime {
			return e, false
		}
		number := func(i int) int64 {
			n, _ := strconv.ParseInt(string(f[i]), 10, 64) // the kernel prints numbers
			return n
		}
		switch dead := f[0][0] == 'Z' || f[0][0] == 'X'; {
		case !dead || number(threads) > 1:
			return Entry{pid, int(number(1)), int(number(2)), number(startTime)}, true
		case number(threads) == 1:
			return e, false
		}
	}
	return e, false
}

// Stopped reports whether a signal has stopped the process.
func Stopped(pid int) bool {
	stat := readProcess(pid, "stat", 1)
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}

// Name returns what the process calls itself, at most 15 bytes (proc(5), comm), "" if it has ended.
func Name(pid int) string { return strings.TrimSuffix(string(readProcess(pid, "comm", 1)), "\n") }

// WorkingDir returns the directory that the process works in, "" if unknown.
func WorkingDir(pid int) string {
	dir, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") // "" with an error
	return dir
}

// WatchProcess follows the process until it is gone. pidfd_open(2) keeps a later process with the
// same pid from being mistaken for it.
func WatchProcess(pid int) *Process {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return pollProcess(pid)
	}
	file := os.NewFile(uintptr(fd), "pidfd") // closed once it is garbage
	p := &Process{died: make(chan struct{}), gone: func() bool { return ended(file, 0) }}
	go func() {
		defer close(p.died)
		for !ended(file, -1) {
		}
	}()
	return p
}

// ended waits at most wait milliseconds for the process to end; -1 means forever.
func ended(pidfd *os.File, wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}, wait)
	runtime.KeepAlive(pidfd)
	return err == nil && n > 0
}

// StartsPerSecond is the number of [ProcessStart] units per second.
const StartsPerSecond = 100

// Arguments returns the arguments that the process was started with (proc(5), cmdline), nil if unreadable.
func Arguments(pid int) []string { return wordsOf(pid, "cmdline") }

// Environ returns the environment that the process was started with, nil if unreadable.
func Environ(pid int) []string { return wordsOf(pid, "environ") }

func wordsOf(pid int, name string) []string {
	all := readProcess(pid, name, maxWords)
	if len(all) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00")
}

// maxWords bounds the reads of arguments and environments, in bytes.
const maxWords = 4 << 20

// PIDNamespace identifies the namespace of this process's pids (pid_namespaces(7)), "" if unknown. No process can leave
// its own.
var PIDNamespace = sync.OnceValue(func() string {
	name, _ := os.Readlink("/proc/self/ns/pid") // "" with an error
	return name
})

// LockHolder returns the pid of the process that holds a flock(2) on the file, -1 if the holder has no pid in this
// namespace, and 0 if nobody holds it. It reads proc_locks(5) and tries no lock.
func LockHolder(path string) int {
	list, _ := os.ReadFile("/proc/locks") // if unreadable, no holder is known
	var st unix.Stat_t
	if len(list) == 0 || unix.Lstat(path, &st) != nil {
		return 0
	}
	device, odd := deviceOf(path, st.Dev)
	file := fmt.Appendf(nil, "%02x:%02x:%d", unix.Major(device), unix.Minor(device), st.Ino)
	for line := range bytes.Lines(list) {
		f := bytes.Fields(line) // 1: FLOCK ADVISORY WRITE 708 08:01:131074 0 EOF
		if len(f) < 6 || !bytes.Equal(f[1], []byte("FLOCK")) || !bytes.Equal(f[5], file) {
			continue
		}
		pid, err := strconv.Atoi(string(f[4]))
		switch {
		case err != nil || pid <= 0:
			return -1
		case !odd:
			return pid
		}
		if open, known := HasOpen(pid, path); open || !known {
			return pid
		}
	}
	return 0
}

// deviceOf returns the device of a file's mount, by which the kernel lists locks. odd says that stat(2) names another
// device: each subvolume of btrfs has its own, with the same inode numbers as its neighbours, and so has each layer of an
// overlay.
func deviceOf(path string, named uint64) (device uint64, odd bool) {
	var st unix.Statx_t
	if unix.Major(named) != 0 || unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st) != nil {
		return named, false
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // if unreadable, the named device has to do
	for line := range bytes.Lines(mounts) {
		var id, parent uint64
		var major, minor uint32
		if n, _ := fmt.Sscanf(string(line), "%d %d %d:%d ", &id, &parent, &major, &minor); n == 4 && id == st.Mnt_id {
			device = unix.Mkdev(major, minor)
			return device, device != named
		}
	}
	return named, false
}

// HasOpen reports whether the process has the file open, as a lock's holder has. known is false if that cannot be seen,
// as for another user's process.
func HasOpen(pid int, path string) (open, known bool) {
	var file, st unix.Stat_t
	if unix.Lstat(path, &file) != nil {
		return false, true
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	all, err := os.ReadDir(dir)
	for _, fd := range all {
		if unix.Stat(dir+fd.Name(), &st) == nil && st.Dev == file.Dev && st.Ino == file.Ino {
			return true, true
		}
	}
	return false, err == nil
}
