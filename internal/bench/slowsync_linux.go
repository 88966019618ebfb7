package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slowSyncs has every sync of the programs that this goroutine starts from now on take
// that much longer, as on a disk where a sync costs something. A seccomp filter, which
// children inherit, hands each fsync and fdatasync to this process, which waits and then
// lets the kernel do it. No other call of theirs is touched.
func slowSyncs(by time.Duration) error {
	runtime.LockOSThread() // the filter is that of one thread, from which the children are forked
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("slow syncs down: %w", err)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FSYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("slow syncs down: install a seccomp filter: %w", errno)
	}
	go delaySyncs(listener, by)
	return nil
}

func delaySyncs(listener uintptr, by time.Duration) {
	for {
		// struct seccomp_notif and, below, struct seccomp_notif_resp
		var call struct {
			id   uint64
			rest [72]byte
		}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call)))
		if errors.Is(errno, unix.EINTR) || errors.Is(errno, unix.ENOENT) { // the program is gone again
			continue
		}
		if errno != 0 {
			panic(fmt.Sprintf("slow syncs down: %v", errno)) // the children would hang
		}
		time.AfterFunc(by, func() {
			answer := struct {
				id    uint64
				value int64
				errno int32
				flags uint32
			}{id: call.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			// It fails where the program is gone.
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
		})
	}
}
