package doctor

import (
	"testing"

	"golang.org/x/sys/unix"
)

// An access list may let another user write to an inbox whose group is its owner's own.
func TestInboxThatAListGrants(t *testing.T) {
	w := newWorld(t)
	w.write(w.Inbox, "one\n", 0o600)
	list := "\x02\x00\x00\x00" +
		"\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\x92\x10\x00\x00" + // its owner, and user 4242
		"\x04\x00\x00\x00\xff\xff\xff\xff" + "\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
	if err := unix.Setxattr(w.Inbox, "system.posix_acl_access", []byte(list), 0); err != nil {
		t.Skipf("no access lists here: %v", err)
	}
	w.says("inbox", "warn others may write")
}
