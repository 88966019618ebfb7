package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/host/rights"
)

// makeFolder makes the inbox's folder with mode 0700, and says so, if the folder above
// exists. A dangling symbolic link does not count as a missing folder. Root first becomes
// the owner of the folder above, for good: the new folder then belongs to that user, and
// nothing the user put there can lead root elsewhere.
func makeFolder(inbox string, s cli.Streams) error {
	if strings.HasSuffix(inbox, string(filepath.Separator)) {
		return fmt.Errorf("%s is a folder: name the inbox's file in it", inbox)
	}
	dir, err := filepath.Abs(filepath.Dir(inbox))
	if err != nil {
		return err
	}
	if there, err := disk.Exists(dir); err != nil || there {
		return nil // opening the inbox reports what is wrong with the path
	}
	if _, err := disk.StatDir(filepath.Dir(dir)); err != nil {
		return nil // opening the inbox reports this as well
	}
	if strings.HasPrefix(filepath.Base(dir), "~") {
		return fmt.Errorf("the inbox's folder would be %s: only a shell turns ~ into your home directory, and none does in --inbox=~/...: write the path out, as $HOME/..., or make that folder first", dir)
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
	case errors.Is(err, fs.ErrExist): // another process made it first
		return nil
	case err != nil:
		return fmt.Errorf("make the inbox's folder: %w", err)
	}
	s.Note("made the folder %s for the inbox", dir)
	return nil
}
