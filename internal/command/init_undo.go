package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/command/gitignore"
	"heartbeat/internal/disk"
)

// takeBack undoes init. What was written down goes last: a killed undo can be run again.
func (o *initFlags) takeBack(s cli.Streams) error {
	if err := clearStaged(o.dir); err != nil {
		return err
	}
	m, err := readMade(o.dir)
	if err != nil {
		return err
	}
	if m == (made{}) {
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
	changed, err := settings.UninstallFile(path, w, settings.RefuseLinks)
	if err != nil {
		return err
	}
	if m.ClaudeFolder {
		_ = os.Remove(filepath.Dir(path)) // it stays if anything is in it
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
	content, there, err := gitignore.Read(m.Ignore)
	if err != nil || !there {
		return err
	}
	left, had := gitignore.Taken(content, m.Line, m.Newline)
	if !had {
		return nil // a person has taken it out, or changed it
	}
	if len(left) == 0 && m.IgnoreFile {
		err = disk.Remove(m.Ignore)
	} else {
		err = gitignore.Write(m.Ignore, left)
	}
	if err != nil {
		return fmt.Errorf("take %s out of %s: %w", m.Line, m.Ignore, err)
	}
	_, err = fmt.Fprintf(s.Out, "took %s out of %s\n", m.Line, m.Ignore)
	return err
}

func (o *initFlags) removeFolder(m made, s cli.Streams) error {
	if m.Folder {
		removed, err := removeFolder(o.dir)
		if err != nil {
			return err
		}
		if removed {
			_, err = fmt.Fprintf(s.Out, "removed the folder %s\n", o.dir)
			return err
		}
	}
	if err := disk.Remove(filepath.Join(o.dir, madeFile)); err != nil {
		return err
	}
	if !m.Folder {
		return nil
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
