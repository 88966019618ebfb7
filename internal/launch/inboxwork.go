package launch

import (
	"fmt"
	"io"
	"time"

	recovery "heartbeat/recover"

	"golang.org/x/term"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/launch/client"
	"heartbeat/internal/launch/managed"
	"heartbeat/internal/launch/terminal"
	mcp "heartbeat/internal/mcp/page"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

// inboxWork is the work on the inbox that the flags name.
type inboxWork struct {
	flags     *inboxFlags
	terminal  terminal.Options // of each session
	recording string           // the file of --record, "" for none
	streams   streams
	messages  *messages
	mail      mail // what is said, with --output mail
}

// run works through the inbox, tells how that went, and returns the exit status.
func (w *inboxWork) run() int {
	toMail := w.flags.output == showMail
	if toMail {
		w.messages.redirect(&w.mail)
	}
	report, err := w.work()
	if err != nil {
		now := time.Now().UTC()
		report = &managed.Report{
			Inbox: w.flags.path, Mode: managed.Mode(w.flags.mode), Reason: managed.SetUp, Detail: err.Error(), Queued: -1,
			StartedAt: now, EndedAt: now,
		}
	}
	report.Exit = statusOfReport(report)
	w.messages.say("%s", words.Line(report.String()))
	if err := reportFile(w.flags.report).write(report, w.streams.out); err != nil {
		w.messages.say("report: %v", err)
	}
	if toMail {
		w.messages.redirect(w.streams.err)
		if worthMail(report, time.Now()) {
			w.mail.send(w.streams.out)
		}
	}
	return report.Exit
}

// work finds whatever would keep the work from being done or told, and does it.
func (w *inboxWork) work() (*managed.Report, error) {
	hook, err := findHook(w.flags.hook)
	if err != nil {
		return nil, err
	}
	if err := terminal.Check(w.terminal); err != nil {
		return nil, err
	}
	if err := reportFile(w.flags.report).check(); err != nil {
		return nil, err
	}
	if err := w.prepareRuns(); err != nil {
		return nil, err
	}
	shown := w.shown()
	l, err := openLog(w.lineWriter(shown), w.flags.log, w.flags.logSize)
	if err != nil {
		return nil, err
	}
	defer l.finish()
	attended := shown == showSession && term.IsTerminal(int(w.streams.in.Fd()))
	o := w.terminal
	if shown != showSession { // nobody types at a session that is not seen
		o.Stdin, o.Stdout, o.Stderr, o.FixedSize = nil, nil, nil, true
	}
	stop, err := record(&o, w.recording, w.messages)
	if err != nil {
		return nil, err
	}
	defer stop()
	all := w.options(o, hook, w.meter(l), attended, l)
	if w.flags.mcp {
		if all.Tools, err = cli.Beside(mcp.CommandName); err != nil {
			return nil, fmt.Errorf("--mcp: %w", err)
		}
	}
	return managed.Run(all), nil
}

// meter is the path of the command that counts what a session costs. Without it the work
// is done all the same.
func (w *inboxWork) meter(l *log) string {
	if w.flags.noMeter {
		return ""
	}
	path, err := cli.Beside(settings.MeterName)
	if err != nil {
		l.say(time.Now(), "no dollars are counted: "+err.Error())
		return ""
	}
	return path
}

// options are the flags as package managed takes them.
func (w *inboxWork) options(o terminal.Options, hook, meter string, attended bool, l *log) managed.Options {
	f := w.flags
	return managed.Options{
		Inbox: f.path, Mode: managed.Mode(f.mode), Terminal: o, Client: client.Of(f.as, o.Command), Hook: hook, Meter: meter, Settings: w.settings(), Runs: f.runs,
		MaxEntries: f.maxEntries, Background: time.Duration(f.background), UntilDrained: f.untilDrained, MaxRestarts: f.maxRestarts,
		StartTimeout: time.Duration(f.startTimeout), EndAsking: f.onPrompt == promptEnd || f.onPrompt == "" && !attended,
		Resume: f.resume, Attended: attended, Shared: f.shared, Adopt: f.adopt, Line: l.say,
		Notify: notify.Options{Command: f.notify.Command, Stall: time.Duration(f.notify.Stall), Drained: f.notify.Drained},
	}
}

func (w *inboxWork) settings() recovery.Settings {
	s := w.flags.orphan.Settings()
	s.Limits, s.Runs = w.flags.limits, w.flags.runs.Dirs
	s.Limits.Run = w.flags.runs.MaxCost
	return s
}

// prepareRuns finds what the agent of a run will need.
func (w *inboxWork) prepareRuns() error {
	if len(w.flags.runs.Dirs) == 0 {
		return nil
	}
	if _, err := cli.Beside("heartbeat"); err != nil { // the command that hands results over
		return err
	}
	return w.flags.runs.Absolute()
}

// shown is what stdout gets of the sessions.
func (w *inboxWork) shown() string {
	switch {
	case w.flags.output != "":
		return w.flags.output
	case w.flags.report == toStdout:
		return showNone
	case term.IsTerminal(int(w.streams.out.Fd())):
		return showSession
	}
	return showLog
}

// lineWriter gets a line for each thing that happens, nil where nobody does.
func (w *inboxWork) lineWriter(shown string) io.Writer {
	switch shown {
	case showLog:
		return w.streams.out
	case showMail:
		return &w.mail
	}
	return nil
}
