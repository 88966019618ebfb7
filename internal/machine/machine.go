// Package machine identifies this boot, reads clocks that only go forward, inspects processes, and
// tells errors that pass from others.
package machine

import (
	"errors"
	"fmt"
	_ "heartbeat/internal/platform" // fails to compile on other systems
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// TestOnlyBootID replaces the kernel's boot ID. Only tests set it.
var TestOnlyBootID string

// TestOnlyUnread as [TestOnlyBootID] means a boot ID that cannot be read.
const TestOnlyUnread = "-"

// TestOnlyTrustAll makes every state file of an inbox count as written on this machine. Only tests set it,
// since their files are made by hand or by a model of a power loss.
var TestOnlyTrustAll bool

// unread begins a [BootID] that stands for an unreadable one.
const unread = "unread-"

var kernelBootID = sync.OnceValue(bootID)

// BootID identifies this boot of the machine and changes with a power loss. In place of an unreadable ID it
// returns one that no other process has: to take another boot for this one would vouch for what a power loss
// took, while the reverse costs only another check.
func BootID() string {
	switch TestOnlyBootID {
	case "":
		return kernelBootID()
	case TestOnlyUnread:
		return unreadBoot()
	}
	return TestOnlyBootID
}

func unreadBoot() string {
	return unread + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// KnownBoot returns id, or "" if id stands for a boot ID that could not be read.
func KnownBoot(id string) string {
	if strings.HasPrefix(id, unread) {
		return ""
	}
	return id
}

// OtherBoot reports whether id is certainly of another boot. Use it for processes: where the boot
// is unknown, their number and start still identify them.
func OtherBoot(id string) bool {
	now := KnownBoot(BootID())
	return KnownBoot(id) != "" && now != "" && id != now
}

// letters is the base32 alphabet in lower case.
const letters = "abcdefghijklmnopqrstuvwxyz234567"

// RandomName returns 26 random characters (130 bits), enough to be unique. It reads the kernel's
// source itself: linking crypto/rand or encoding/base32 would slow every start of the hook.
func RandomName() (string, error) {
	f, err := os.Open("/dev/urandom")
	if err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	defer f.Close() // read only: nothing to lose
	var b [26]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	for i := range b {
		b[i] = letters[b[i]%32]
	}
	return string(b[:]), nil
}

// passing lists the errors of a machine that is short of a resource or busy with a file.
var passing = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, // room
	syscall.EMFILE, syscall.ENFILE, // descriptors
	syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS, // processes, memory
	syscall.ETXTBSY, syscall.ESTALE, // a program or a file that is being replaced
}

// Passes reports whether an error comes from a shortage that may be over at the next try.
func Passes(err error) bool {
	return slices.ContainsFunc(passing, func(no syscall.Errno) bool { return errors.Is(err, no) })
}

// TakesNothing reports whether an error means a file system that is full or read-only, or a quota that is full.
func TakesNothing(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}
