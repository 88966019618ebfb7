package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/internal/disk"
)

// madeFile is where init writes down what it makes, in the inbox's folder.
const (
	madeFile    = ".init.json"
	maxMadeFile = 64 << 10
)

// made is what init made, or was about to make when it was killed.
type made struct {
	Project      string `json:"project"`                 // where init ran
	Folder       bool   `json:"folder,omitempty"`        // the inbox's folder
	Ignore       string `json:"ignore,omitempty"`        // the .gitignore that Line was added to
	Line         string `json:"line,omitempty"`          // the folder's pattern
	IgnoreFile   bool   `json:"ignore_file,omitempty"`   // the whole .gitignore
	Newline      bool   `json:"newline,omitempty"`       // the line end before what was added to it
	Hook         bool   `json:"hook,omitempty"`          // the wiring in the project's settings
	ClaudeFolder bool   `json:"claude_folder,omitempty"` // the project's .claude
}

func (m made) nothing() bool {
	m.Project = ""
	return m == made{}
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

func (m made) write(dir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return disk.Publish(filepath.Join(dir, madeFile), append(text, '\n'), true)
}

// makeFolder makes dir together with what is written down: a kill leaves both or, under
// another name, what clearStaged removes.
func (m made) makeFolder(dir string) error {
	if err := clearStaged(dir); err != nil {
		return err
	}
	if err := disk.MakeDir(staged(dir)); err != nil {
		return err
	}
	if err := m.write(staged(dir)); err != nil {
		return err
	}
	return disk.Rename(staged(dir), dir)
}

// removeFolder removes dir if init wrote down what it made there and nothing else is in it.
func removeFolder(dir string) (removed bool, err error) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return false, err
	}
	names, more, err := disk.Names(dir, 2)
	if err != nil || more || len(names) != 1 || names[0] != madeFile {
		return false, err
	}
	if err := clearStaged(dir); err != nil {
		return false, err
	}
	if err := disk.Rename(dir, staged(dir)); err != nil {
		return false, err
	}
	if err := clearStaged(dir); err != nil {
		// Something came into the folder meanwhile.
		return false, errors.Join(err, disk.Rename(staged(dir), dir))
	}
	return true, nil
}

// staged is the folder's name while init makes or removes it.
func staged(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".heartbeat-init")
}

// clearStaged removes what a killed init left.
func clearStaged(dir string) error {
	left := staged(dir)
	info, err := os.Lstat(left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder of init's: move it away")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", left, err)
	}
	for _, name := range []string{madeFile + ".tmp", madeFile} {
		if err := disk.Remove(filepath.Join(left, name)); err != nil {
			return err
		}
	}
	if err := os.Remove(left); err != nil {
		return fmt.Errorf("remove what a killed init left: %w: look into it, and move away what is in it", err)
	}
	return nil
}
