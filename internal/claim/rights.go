package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/host/rights"
)

// CheckRights refuses an inbox whose state others could replace. If they can only write
// to the inbox file, and so instruct the agent, warn says so.
func CheckRights(box *inbox.Inbox, warn func(string)) error {
	dir, err := disk.StatDir(box.Dir())
	if err != nil {
		return err
	}
	if me := uint32(os.Geteuid()); dir.UID != me && dir.UID != 0 {
		return fmt.Errorf("%s belongs to user %d, who can instruct the agent and forge its state, and this is user %d: "+
			"work as that user, or say with --shared that it is meant", box.Dir(), dir.UID, me)
	}
	if rights.Others(dir) {
		return fmt.Errorf("others may make and replace files in %s (mode %04o), and so instruct the agent and forge its state: "+
			"take the right away (chmod go-w), or say with --shared that it is meant", box.Dir(), dir.Mode)
	}
	file, err := disk.StatFile(box.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && rights.Others(file) {
		warn(fmt.Sprintf("others may write to %s (mode %04o), and so instruct the agent: take the right away (chmod go-w), or say with --shared that it is meant",
			box.Path(), file.Mode))
	}
	return err
}
