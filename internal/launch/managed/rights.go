package managed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/host/rights"
)

// checkRights refuses an inbox whose state others could replace, unless that is
// meant. That others can only write to the inbox is said: they instruct the agent.
func (r *run) checkRights() error {
	if r.Shared {
		return nil
	}
	dir, err := disk.StatDir(r.box.Dir())
	if err != nil {
		return err
	}
	if me := uint32(os.Geteuid()); dir.UID != me && dir.UID != 0 {
		return fmt.Errorf("%s belongs to user %d, who can instruct the agent and forge its state, and this is user %d: "+
			"work as that user, or say with --shared that it is meant", r.box.Dir(), dir.UID, me)
	}
	if rights.Others(dir) {
		return fmt.Errorf("others may make and replace files in %s (mode %04o), and so instruct the agent and forge its state: "+
			"take the right away (chmod go-w), or say with --shared that it is meant", r.box.Dir(), dir.Mode)
	}
	file, err := disk.StatFile(r.box.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && rights.Others(file) {
		r.Line(time.Now(), fmt.Sprintf("others may write to %s (mode %04o), and so instruct the agent: take the right away (chmod go-w), or say with --shared that it is meant",
			r.box.Path(), file.Mode))
	}
	return err
}
