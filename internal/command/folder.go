package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/host/rights"
)

// makeFolder makes the inbox's folder, for its owner alone, where only that is missing,
// and says so. A symbolic link that leads nowhere is no missing folder. Root becomes the
// owner of the folder above first, for good, so that the new one belongs to that user and
// nothing there can lead root elsewhere.
func makeFolder(inbox string, s cli.Streams) error {
	dir, err := filepath.Abs(filepath.Dir(inbox))
	if err != nil {
		return err
	}
	if there, err := disk.Exists(dir); err != nil || there {
		return nil // opening the inbox says what is wrong with the path
	}
	if _, err := disk.StatDir(filepath.Dir(dir)); err != nil {
		return nil // opening the inbox says that as well
	}
	if _, err := rights.BecomeOwner(filepath.Dir(dir)); err != nil {
		return err
	}
	above, err := disk.StatDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 && above.UID != 0 {
		return fmt.Errorf("the inbox's folder %s is missing, and root may not become user %d, whose it would be: make it as that user", dir, above.UID)
	}
	switch err := disk.MakeDir(dir); {
	case errors.Is(err, fs.ErrExist): // somebody else was faster
		return nil
	case err != nil:
		return fmt.Errorf("make the inbox's folder: %w", err)
	}
	s.Note("made the folder %s for the inbox", dir)
	return nil
}
