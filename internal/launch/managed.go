package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/term"

	"heartbeat/internal/disk"
	"heartbeat/internal/launch/managed"
	"heartbeat/internal/launch/terminal"
	"heartbeat/internal/words"
)

// runManaged works through the inbox that the flags name.
func (l *launch) runManaged(o terminal.Options, s streams, v *voice, timeoutGiven bool) int {
	kept := &mail{}
	if l.output == showMail {
		v.to(kept)
	}
	report, err := l.work(o, s, v, kept, timeoutGiven)
	if err != nil {
		report = &managed.Report{
			Inbox: l.inbox, Mode: managed.Mode(l.mode), Reason: managed.SetUp, Detail: err.Error(), Queued: -1,
			StartedAt: time.Now().UTC(), EndedAt: time.Now().UTC(),
		}
	}
	report.Exit = exitOf(report)
	v.say("%s", words.Line(report.String()))
	if err := l.writeReport(report, s.out); err != nil {
		v.say("report: %v", err)
	}
	if l.output == showMail {
		v.to(s.err)
		if worthMail(report, time.Now()) {
			kept.send(s.out)
		}
	}
	return report.Exit
}

func (l *launch) work(o terminal.Options, s streams, v *voice, kept io.Writer, timeoutGiven bool) (*managed.Report, error) {
	hook, err := l.findHook()
	if err != nil {
		return nil, err
	}
	if err := terminal.Check(o); err != nil {
		return nil, err
	}
	output := l.outputFor(s)
	attended := output == showSession && term.IsTerminal(int(s.in.Fd()))
	if output != showSession { // a session that is not seen is not typed at
		o.Stdin, o.Stdout, o.Stderr, o.FixedSize = nil, nil, nil, true
	}
	if l.mode == string(managed.Persist) && !timeoutGiven {
		o.Timeout = 0
	}
	if err := l.checkReport(); err != nil {
		return nil, err
	}
	lines, err := l.openLines(map[string]io.Writer{showLog: s.out, showMail: kept}[output])
	if err != nil {
		return nil, err
	}
	defer lines.finish()
	stop, err := l.record(&o, v)
	if err != nil {
		return nil, err
	}
	defer stop()
	runs, err := l.runs.managed()
	if err != nil {
		return nil, err
	}
	return managed.Run(managed.Options{
		Inbox: l.inbox, Mode: managed.Mode(l.mode), Terminal: o, Hook: hook,
		Recovery:   l.orphan.Options(),
		MaxEntries: l.maxEntries, Background: time.Duration(l.background), UntilDrained: l.untilDrained, MaxRestarts: l.maxRestarts,
		StartTimeout: time.Duration(l.startTimeout), EndAsking: l.onPrompt == promptEnd || l.onPrompt == "" && !attended,
		Runs: runs, Resume: l.resume, Attended: attended, Shared: l.shared, Adopt: l.adopt, Line: lines.say,
	}), nil
}

func (m *manage) outputFor(s streams) string {
	switch {
	case m.output != "":
		return m.output
	case m.report == "-":
		return showNone
	case term.IsTerminal(int(s.out.Fd())):
		return showSession
	}
	return showLog
}

// findHook is the command that is wired for the sessions.
func (m *manage) findHook() (string, error) {
	const name = "heartbeat-stop"
	candidates := []string{m.hook}
	if m.hook == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find this command's own path: %w", err)
		}
		candidates = []string{filepath.Join(filepath.Dir(self), name), name}
	}
	var failure error
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if err == nil {
			return filepath.Abs(path)
		}
		failure = err
	}
	return "", fmt.Errorf("find the hook: %w: install heartbeat-stop beside this command, or name it with --hook", failure)
}

// checkReport says before all work what would keep the report from being written at
// its end.
func (m *manage) checkReport() error {
	if m.report == "" || m.report == "-" {
		return nil
	}
	err := m.replaceable()
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(filepath.Dir(m.report), ".report-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("report: %w: name another file with --report", err)
	}
	return nil
}

// replaceable reports, as an error, that something else than a file has the
// report's name, such as a device: it would be replaced by one.
func (m *manage) replaceable() error {
	if info, err := os.Lstat(m.report); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: m.report, Err: errors.New("it is not a regular file")}
	}
	return nil
}

func (m *manage) writeReport(r *managed.Report, stdout io.Writer) error {
	if m.report == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if m.report == "-" {
		isTerminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
		_, err := words.OnScreen(stdout, isTerminal).Write(text)
		return err
	}
	if err := m.replaceable(); err != nil {
		return err
	}
	return disk.Publish(m.report, text, true)
}

// exitOf is the exit status of a report.
func exitOf(r *managed.Report) int {
	switch {
	case r.Reason == managed.Signalled:
		return 128 + int(r.Signal)
	case r.Reason == managed.TimedOut:
		return exitTimedOut
	case r.Reason == managed.SetUp:
		return exitSetUp
	case r.Reason == managed.Authentication, r.Reason == managed.Refused:
		return exitAuthentication
	case !slices.Contains([]managed.Reason{managed.Drained, managed.Quit}, r.Reason) || r.Queued > 0:
		return exitLeft
	case r.DeadLettered > 0:
		return exitDeadLettered
	}
	return exitOK
}
