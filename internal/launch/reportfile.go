package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"heartbeat/internal/disk"
	"heartbeat/internal/launch/managed"
	"heartbeat/internal/words"
)

// reportFile is where --report has the report written, "" for nowhere.
type reportFile string

// toStdout is the report file that stands for stdout.
const toStdout = "-"

// check says, before any work, what would keep the report from being written at its
// end.
func (f reportFile) check() error {
	if f == "" || f == toStdout {
		return nil
	}
	err := f.replaceable()
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(filepath.Dir(string(f)), ".report-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("report: %w: name another file with --report", err)
	}
	return nil
}

// replaceable refuses a name that something other than a file has, such as a device:
// the report would replace it.
func (f reportFile) replaceable() error {
	if info, err := os.Lstat(string(f)); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: string(f), Err: errors.New("it is not a regular file")}
	}
	return nil
}

func (f reportFile) write(r *managed.Report, stdout io.Writer) error {
	if f == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if f == toStdout {
		isTerminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
		_, err := words.OnScreen(stdout, isTerminal).Write(text)
		return err
	}
	if err := f.replaceable(); err != nil {
		return err
	}
	return disk.Publish(string(f), text, true)
}
