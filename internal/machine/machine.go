// Package machine is what heartbeat needs to know about the machine: which boot this
// is, a clock that only goes forward, and which processes run.
package machine

import (
	"fmt"
	_ "heartbeat/internal/platform" // the systems that this is for
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TestOnlyBootID, when set, is what the kernel says of the boot. Only tests set it.
var TestOnlyBootID string

// TestOnlyUnread is for [TestOnlyBootID]: the kernel says nothing.
const TestOnlyUnread = "-"

// unread begins what [BootID] returns where the kernel does not say which boot this is.
const unread = "unread-"

var kernelSays = sync.OnceValue(bootID)

// BootID identifies this boot of the machine. It changes with a power loss. Where it cannot
// be read it is that of no other process, earlier or later: to take another boot for this one
// would vouch for what a power loss took, and the reverse costs a look.
func BootID() string {
	switch TestOnlyBootID {
	case "":
		return kernelSays()
	case TestOnlyUnread:
		return unreadBoot()
	}
	return TestOnlyBootID
}

func unreadBoot() string {
	return unread + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// KnownBoot is an id of [BootID], empty for one that could not be read.
func KnownBoot(id string) string {
	if strings.HasPrefix(id, unread) {
		return ""
	}
	return id
}

// OtherBoot reports whether it is certain that something was noted in another boot. Whether
// a process lives is asked this way: its number and start tell it where the boot does not.
func OtherBoot(id string) bool {
	now := KnownBoot(BootID())
	return KnownBoot(id) != "" && now != "" && id != now
}

// letters are those of base32, in lower case.
const letters = "abcdefghijklmnopqrstuvwxyz234567"

// RandomName returns 26 random characters (130 bits), so a name that is unique. It
// reads the kernel's source itself, since linking crypto/rand would slow down every
// start of the hook; so would encoding/base32.
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
