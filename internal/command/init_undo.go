package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
)

// madeFile is where init writes down what it makes, in the inbox's folder.
const (
	madeFile    = cli.InitFile
	maxMadeFile = 64 << 10
)

// made is what init made, or was about to make when it was killed.
type made struct {
	Project    string `json:"project"`               // where init ran
	Folder     bool   `json:"folder,omitempty"`      // the inbox's folder
	Ignore     string `json:"ignore,omitempty"`      // the .gitignore that Line was added to
	Line       string `json:"line,omitempty"`        // the folder's pattern
	IgnoreFile bool   `json:"ignore_file,omitempty"` // the whole .gitignore
	Newline    bool   `json:"newline,omitempty"`     // the line end before what was added to it
	Hook       bool   `json:"hook,omitempty"`        // the wiring in the project's settings
}

func readMade(dir string) (m made, err error) {
	path := filepath.Join(dir, madeFile)
	text, err := disk.ReadState(path, maxMadeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read what init made, in %s: %w: remove the file, then take back by hand what is not wanted", path, err)
	}
	return m, nil
}

// takeBack undoes init. What was written down goes last: a killed undo can be run again.
func (o *initFlags) takeBack(s cli.Streams) error {
	m, err := readMade(o.dir)
	if err != nil {
		return err
	}
	if m == (made{Project: m.Project}) {
		if err := disk.Remove(filepath.Join(o.dir, madeFile)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.Out, "init made nothing for %s: nothing was changed\n", o.inbox)
		return err
	}
	if m.Project != o.project {
		return fmt.Errorf("init was run in %s: run --undo there", m.Project)
	}
	if err := o.unwire(m, s); err != nil {
		return err
	}
	if err := o.unignore(m, s); err != nil {
		return err
	}
	return o.removeFolder(m, s)
}

func (o *initFlags) unwire(m made, s cli.Streams) error {
	if !m.Hook {
		return nil
	}
	path, w, err := o.wiring()
	if err != nil {
		return err
	}
	changed, err := settings.UninstallFile(path, w, settings.RefuseLinks).Write()
	if err != nil {
		return err
	}
	if changed {
		_, err = fmt.Fprintf(s.Out, "took the hook out of %s\n", path)
	}
	return err
}

func (o *initFlags) unignore(m made, s cli.Streams) error {
	if m.Ignore == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(o.dir)
	if err != nil {
		return err
	}
	// The agent's tools can write what was written down.
	if filepath.Base(m.Ignore) != ".gitignore" || !strings.HasPrefix(real+"/", filepath.Clean(filepath.Dir(m.Ignore))+"/") {
		return fmt.Errorf("%s names %q, which is no .gitignore above the inbox: init did not write that", filepath.Join(o.dir, madeFile), m.Ignore)
	}
	content, there, err := readIgnored(m.Ignore)
	if err != nil || !there {
		return err
	}
	left, had := withoutIgnored(content, m.Line, m.Newline)
	if !had {
		return nil // a person has taken it out, or changed it
	}
	if len(left) == 0 && m.IgnoreFile {
		left = nil
	}
	if _, err = settings.Replace(m.Ignore, content, left, 0o644); err != nil {
		return fmt.Errorf("take %s out of %s: %w", m.Line, m.Ignore, err)
	}
	_, err = fmt.Fprintf(s.Out, "took %s out of %s\n", m.Line, m.Ignore)
	return err
}

func (o *initFlags) removeFolder(m made, s cli.Streams) error {
	if err := disk.Remove(filepath.Join(o.dir, madeFile)); err != nil || !m.Folder {
		return err
	}
	if err := syscall.Rmdir(o.dir); err == nil { // a link that was put there stays
		_, err = fmt.Fprintf(s.Out, "removed the folder %s\n", o.dir)
		return err
	}
	stays := "it is not empty"
	info, err := disk.StatFile(filepath.Join(o.dir, filepath.Base(o.inbox)))
	if err == nil && info.Size > 0 {
		stays = "its inbox has entries"
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if m.Ignore != "" {
		stays += ", which git sees from now on"
	}
	s.Note("the folder %s stays: %s", o.dir, stays)
	return nil
}
