package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// Exit statuses of a command alone, besides its own and those of package cli.
const (
	exitGaveUp    = 125
	exitCannotRun = 126 // as a shell does
	exitNotFound  = 127
)

func statusOfError(err error) int {
	switch {
	case errors.Is(err, terminal.ErrNotFound):
		return exitNotFound
	case errors.Is(err, terminal.ErrCannotRun):
		return exitCannotRun
	}
	return cli.ExitError
}

func statusOfOutcome(o terminal.Outcome) int {
	switch {
	case o.Cause == terminal.TimedOut:
		return cli.ExitTimedOut
	case o.Cause == terminal.GaveUp:
		return exitGaveUp
	case o.Cause == terminal.Asked:
		return cli.ExitOK
	case o.Cause == terminal.Signalled:
		return 128 + int(o.Signal)
	case o.Status.Signaled():
		return 128 + int(o.Status.Signal())
	}
	return o.Status.ExitStatus()
}

func statusOfReport(r *supervise.Report) int {
	status := r.Reason.Status()
	switch {
	case r.Reason == supervise.Signalled:
		return 128 + int(r.Signal)
	case r.Reason == supervise.Stopped || status != cli.ExitOK:
		return status
	case r.Queued > 0:
		return cli.ExitLater
	case r.DeadLettered > 0:
		return cli.ExitDeadLettered
	}
	return status
}

// reportFile is the file that --report writes, "" for none, [toStdout] for stdout.
type reportFile string

const toStdout = "-"

// check reports, before any work, what would prevent writing the report at the end.
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

// replaceable refuses what is no regular file, such as a device: the report would replace it.
func (f reportFile) replaceable() error {
	if info, err := os.Lstat(string(f)); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: string(f), Err: errors.New("it is not a regular file")}
	}
	return nil
}

func (f reportFile) write(r *supervise.Report, stdout io.Writer) error {
	if f == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if f == toStdout {
		_, err := words.OnScreen(stdout, cli.IsTerminal).Write(text)
		return err
	}
	if err := f.replaceable(); err != nil {
		return err
	}
	return disk.Publish(string(f), text, true)
}

// mail keeps the messages until the end shows whether somebody has to read them.
type mail struct {
	mu   sync.Mutex
	text []byte
	cut  bool // the beginning is missing
}

// mailRoom is how many bytes are kept: the last whole lines.
const mailRoom = 256 << 10

func (m *mail) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = append(m.text, b...)
	if extra := len(m.text) - mailRoom; extra > 0 {
		m.cut = true
		_, rest, _ := bytes.Cut(m.text[extra:], []byte("\n"))
		m.text = append(m.text[:0], rest...)
	}
	return len(b), nil
}

func (m *mail) send(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		_, _ = io.WriteString(to, "(the lines before these are left out)\n") // nobody else could read of an error
	}
	_, _ = to.Write(m.text) // likewise
}

// worthMail reports whether somebody has to look at the outcome. A problem that lasts until a
// person solves it is reported once a day, not by each launcher that meets it.
func worthMail(r *supervise.Report, now time.Time) bool {
	told := filepath.Join(filepath.Dir(r.Inbox), ".launch-told") // the text reported last; its mtime says when
	switch r.Exit {
	case cli.ExitOK:
		if r.Reason == supervise.Stopped {
			return r.DeadLettered > 0
		}
		if i := slices.IndexFunc(r.Troubles, func(t see.Trouble) bool { return t.Kind == see.KindConsumer }); i >= 0 {
			return isNews(told, r.Troubles[i].Text, now)
		}
		_ = disk.Remove(told) // the same text is news when it returns
		return false
	case cli.ExitLater:
		return slices.Contains([]supervise.Reason{supervise.Exhausted, supervise.RunStuck, supervise.Full, supervise.Trouble}, r.Reason)
	case cli.ExitPerson:
		news := isNews(told, string(r.Reason)+": "+r.Detail, now)
		anew := r.Reason != supervise.SetUp && len(r.SessionIDs) > 0 // it had been solved, since a session started
		return news || anew || r.DeadLettered > 0
	}
	return true
}

const (
	toldAgain = 24 * time.Hour
	// toldEarly is how much less than a day still counts as a day: daily launchers start at about the same minute.
	toldEarly = 5 * time.Minute
	toldLimit = 64 << 10
)

// isNews reports whether a text is news to the file at path, and records it there.
func isNews(path, text string, now time.Time) bool {
	old, unread := disk.ReadState(path, toldLimit)
	info, unknown := disk.StatName(path)
	if unread == nil && unknown == nil && string(old) == text+"\n" {
		if age := now.Sub(time.Unix(0, info.Mtime)); age >= 0 && age < toldAgain-toldEarly {
			return false
		}
	}
	_ = disk.Publish(path, []byte(text+"\n"), false) // if it fails, the text is news again
	return true
}
