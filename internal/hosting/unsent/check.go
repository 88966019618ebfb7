package unsent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
)

// Check refuses a folder of reports that others could have put there, or could change: they
// would read what sessions said, and say what guilds are told. A folder that is missing is
// made when it is needed.
func (b Box) Check() error {
	for _, dir := range []string{b.dir, filepath.Join(b.dir, "running"), filepath.Join(b.dir, "refused")} {
		if err := check(dir); err != nil {
			return err
		}
	}
	return nil
}

func check(dir string) error {
	info, err := disk.StatName(dir)
	me := uint32(os.Geteuid())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), err == nil && !info.IsDir && !info.IsLink: // whoever writes there says so
		return nil
	case err != nil:
		return fmt.Errorf("look at the folder of unsent reports: %w", err)
	case info.IsLink:
		return fmt.Errorf("%s is a symbolic link, which is never followed for unsent reports: put a folder in its place: %w", dir, disk.ErrForeign)
	case info.UID != me && info.UID != 0 && (me != 0 || !folder.OwnsParent(dir, info.UID)):
		return fmt.Errorf("%s, the folder of unsent reports, belongs to user %d, and this is user %d: move it away, or work as that user: %w", dir, info.UID, me, disk.ErrForeign)
	case info.Mode&0o002 != 0:
		return fmt.Errorf("everybody may write to %s, the folder of unsent reports (mode %04o): take that right away (chmod o-w %[1]s): %[3]w", dir, info.Mode, disk.ErrForeign)
	}
	return nil
}
