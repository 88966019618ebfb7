package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
)

const maxMadeFile = 64 << 10

// made is what init made, or was about to make when it was killed.
type made struct {
	Project string `json:"project"`          // where init ran
	Folder  bool   `json:"folder,omitempty"` // the inbox's folder
	Hook    bool   `json:"hook,omitempty"`   // the wiring in the project's settings
}

// madeFile returns where init records what it makes, in the inbox's folder.
func (o *initFlags) madeFile() string { return filepath.Join(o.dir, cli.InitFile) }

func (o *initFlags) readMade() (m made, err error) {
	text, err := disk.ReadState(o.madeFile(), maxMadeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read what init made, in %s: %w: remove the file, then take back by hand what is not wanted", o.madeFile(), err)
	}
	return m, nil
}

// takeBack undoes init. It removes the record last, so that a killed undo can be run again.
func (o *initFlags) takeBack(s cli.Streams) error {
	m, err := o.readMade()
	if err != nil {
		return err
	}
	if m == (made{Project: m.Project}) {
		if err := disk.Remove(o.madeFile()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.Out, "init made nothing for %s: nothing was changed\n", o.inbox)
		return err
	}
	if m.Project != o.project {
		return fmt.Errorf("init was run in %s: run --undo there", m.Project)
	}
	if m.Hook {
		path, w, err := o.wiring()
		if err != nil {
			return err
		}
		changed, err := settings.UninstallFile(path, w, settings.RefuseLinks).Write()
		if err == nil && changed {
			endWait(o.inbox, w, s)
			_, err = fmt.Fprintf(s.Out, "took the hook out of %s\n", path)
		}
		if err != nil {
			return err
		}
	}
	return o.removeFolder(m, s)
}

// removeFolder removes the folder, unless somebody has put anything into it.
func (o *initFlags) removeFolder(m made, s cli.Streams) error {
	names, _, err := disk.Names(o.dir, 3)
	if err != nil {
		return err
	}
	ignored := filepath.Join(o.dir, ".gitignore")
	text, err := disk.ReadFile(ignored, maxMadeFile)
	others := slices.ContainsFunc(names, func(name string) bool {
		return name != cli.InitFile && name != filepath.Base(ignored)
	})
	if m.Folder && err == nil && string(text) == ignoring && !others {
		if err := disk.Remove(ignored); err != nil {
			return err
		}
	}
	if err := disk.Remove(o.madeFile()); err != nil || !m.Folder {
		return err
	}
	if err := syscall.Rmdir(o.dir); err == nil { // a link in its place stays
		_, err = fmt.Fprintf(s.Out, "removed the folder %s\n", o.dir)
		return err
	}
	stays := "it is not empty"
	if info, err := disk.StatFile(o.path); err == nil && info.Size > 0 {
		stays = "its inbox has entries"
	}
	s.Note("the folder %s stays: %s", o.dir, stays)
	return nil
}
