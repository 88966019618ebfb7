package launch

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/consumer"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

type launcher struct {
	*flags
	streams  streams
	messages *messages
	mail     mail // the messages, with --output mail
}

// run returns the exit status.
func (l *launcher) run(taken *signals.Caught) int {
	m, o := l.messages, &l.work.Terminal
	withoutCI, err := l.complete()
	heard := io.Writer(m)
	if l.output == showMail { // alone not worth a mail
		heard = &l.mail
	}
	if err == nil && l.work.Inbox != "" && cli.SayFound(l.set, cli.Streams{Command: CommandName, Err: heard}) {
		err = CheckForeign(l.work.Inbox)
	}
	if err != nil {
		m.say("%v", err)
		return cli.ExitError
	}
	if withoutCI && l.output != showMail { // not worth a mail
		m.say("CI is taken out of the command's environment, since it says that nobody is at the terminal (--env CI keeps it)")
	}
	o.Stdin, o.Stdout, o.Stderr, o.Signals, o.Note = l.streams.in, l.streams.out, l.streams.err, taken, m.say
	if l.work.Inbox != "" {
		return l.sessions()
	}
	named := l.set.Changed("inbox") || terminal.Variable(o.Env, cli.InboxVariable) != ""
	if !named && filepath.Base(o.Command[0]) == client.Of("", o.Command).Name {
		m.say("%v: without one the command runs alone (--inbox %s)", cli.OrInit(cli.ErrNoInbox), noInbox)
	}
	if l.output == showNone {
		o.Stdout = nil
	}
	outcome, err := l.command()
	if err != nil {
		m.say("%v", err)
		return statusOfError(err)
	}
	switch outcome.Cause { // a command that ended by itself or was asked to needs no word
	case terminal.TimedOut:
		m.say("the command was ended after %v, which --timeout gives it", o.Timeout)
	case terminal.GaveUp:
		m.say("the command was ended: no output for %v, and nothing typed brought it back to life (%s)", o.Idle.Timeout, words.Count(o.Idle.Retries, "try", "tries"))
	case terminal.Signalled:
		m.say("the command was ended, since this process got a signal: %v", outcome.Signal)
	}
	return statusOfOutcome(outcome)
}

// CheckForeign returns an error if an inbox came with a repository: somebody else wrote it, and would instruct the
// agent. A person then has to name the inbox; finding it is not enough.
func CheckForeign(path string) error {
	dir, _ := filepath.EvalSymlinks(filepath.Dir(path)) // git looks at nothing behind a link
	// A folder of a clone can pass for a bare repository of its own, whose config names commands.
	root := WorkTree(dir)
	git := exec.Command("git", "-c", "core.fsmonitor=false", "--git-dir", filepath.Join(root, ".git"), "--work-tree", root,
		"--literal-pathspecs", "ls-files", "--error-unmatch", "--", filepath.Base(path))
	if git.Dir = dir; root != "" && git.Run() == nil {
		return fmt.Errorf("%s came with the repository, since git tracks it: look into it, and if it is to be worked through name it with --inbox", path)
	}
	return nil
}

// WorkTree returns the root of git's work tree that a folder is in, "" for none.
func WorkTree(dir string) string {
	switch there, _ := disk.Exists(filepath.Join(dir, ".git")); {
	case there:
		return dir
	case dir == filepath.Dir(dir):
		return ""
	}
	return WorkTree(filepath.Dir(dir))
}

func (l *launcher) command() (terminal.Outcome, error) {
	stop, err := l.record()
	if err != nil {
		return terminal.Outcome{}, err
	}
	defer stop()
	return terminal.Run(l.work.Terminal)
}

// sessions works through the inbox, reports how that went, and returns the exit status.
func (l *launcher) sessions() int {
	toMail := l.output == showMail
	if toMail {
		l.messages.redirect(&l.mail)
	}
	report, err := l.workThrough()
	if err != nil {
		supervise.LeaveWhy(l.work.Inbox, supervise.ReasonOf(err), err)
		now := time.Now().UTC()
		report = &supervise.Report{
			Inbox: l.work.Inbox, Mode: l.work.Mode, Reason: supervise.ReasonOf(err), Detail: err.Error(), Queued: -1,
			StartedAt: now, EndedAt: now,
		}
	}
	report.Exit = statusOfReport(report)
	l.messages.say("%s", words.Line(report.String()))
	if l.report != "" || toMail && l.onResult != "" {
		report.Troubles = see.TroublesAt(l.work.Inbox)[0]
	}
	if err := l.report.write(report, l.streams.out); err != nil {
		l.messages.say("report: %v", err)
	}
	if l.work.Attended {
		terminal.Forget(l.streams.in) // what was typed between two sessions or after the last
	}
	if toMail {
		l.messages.redirect(l.streams.err)
		if worthMail(report, time.Now()) {
			l.mail.send(l.streams.out)
		}
	}
	return report.Exit
}

// workThrough checks for what would stop the work or its report, then works.
func (l *launcher) workThrough() (*supervise.Report, error) {
	o := &l.work
	var err error
	if o.Hook, err = hookPath(o.Hook); err != nil {
		return nil, err
	}
	if o.Mode == supervise.Drain { // a supervisor may wait out an update of the client
		if _, err := terminal.Find(o.Terminal); err != nil {
			return nil, err
		}
	}
	if err := l.report.check(); err != nil {
		return nil, err
	}
	if len(o.Runs.Dirs) > 0 {
		if _, err := cli.Beside("heartbeat"); err != nil { // the heartbeat command delivers the results
			return nil, err
		}
		if err := o.Runs.Absolute(); err != nil {
			return nil, err
		}
	}
	shown, lines := l.shown()
	to, err := openLog(lines, l.log, func(err error) { l.messages.say("%v; the lines still go to the file that had that name", err) })
	if err != nil {
		return nil, err
	}
	defer to.finish()
	o.Line = to.say
	if shown != showSession { // nobody types at a hidden session
		o.Terminal.Stdin, o.Terminal.Stdout, o.Terminal.Stderr, o.Terminal.FixedSize = nil, nil, nil, true
	}
	o.Attended = shown == showSession && term.IsTerminal(int(l.streams.in.Fd()))
	if o.Attended {
		l.waitForever()
	}
	o.Warm = true
	stop, err := l.record()
	if err != nil {
		return nil, err
	}
	defer stop()
	if l.mcp {
		if o.Tools, err = cli.Beside("heartbeat"); err != nil {
			return nil, fmt.Errorf("--mcp: %w", err)
		}
	}
	if l.onResult != "" {
		o.Beside = l.handOver
	}
	return supervise.Run(*o), nil
}

func (l *launcher) handOver(ctx context.Context, box *inbox.Inbox) (end func(context.Context), err error) {
	of, err := consumer.Here(consumer.Options{
		Name: consumerName, Command: l.onResult, Flag: "--on-result", Fresh: true,
		Patience: consumer.Patience, TimeLimit: consumer.TimeLimit,
		Note: func(text string) { l.work.Line(time.Now(), text) },
	})
	if err != nil {
		return nil, err
	}
	h, err := consumer.StartHelper(ctx, box, of)
	if err != nil {
		return nil, err
	}
	return h.Stop, nil
}

// shown returns what stdout shows of the sessions, and where to write a line for each event, nil for nowhere.
func (l *launcher) shown() (what string, lines io.Writer) {
	what = showLog
	switch {
	case l.output != "":
		what = l.output
	case l.report == toStdout:
		what = showNone
	case term.IsTerminal(int(l.streams.out.Fd())):
		what = showSession
	}
	switch what {
	case showLog:
		lines = l.streams.out
	case showMail:
		lines = &l.mail
	}
	return what, lines
}

// hookPath returns the absolute path of the hook to wire: the flag's, else the one beside this
// command, else the one on PATH.
func hookPath(given string) (string, error) {
	if given == "" {
		path, err := cli.Beside("heartbeat-stop")
		if err != nil {
			return "", fmt.Errorf("find the hook: %w, or name it with --hook", err)
		}
		return path, nil
	}
	path, err := exec.LookPath(given)
	if err != nil {
		return "", fmt.Errorf("find the hook: %w: install heartbeat-stop beside this command, or name it with --hook", err)
	}
	return filepath.Abs(path)
}

// record records all sessions to the file of --record, if any, until stop is called.
func (l *launcher) record() (stop func(), err error) {
	if l.recording == "" {
		return func() {}, nil
	}
	r, err := terminal.NewRecorder(l.recording, func(err error) {
		l.messages.say("the recording %s does not take the output (%v): lines that it does not take are left out, and the session goes on", l.recording, err)
	})
	if err != nil {
		return nil, err
	}
	l.work.Terminal.Watch = r.Output
	l.work.Terminal.Resized = func(s terminal.Size) { r.Resize(s.Rows, s.Cols) }
	return func() {
		if err := r.Close(); err != nil {
			l.messages.say("record: %v", err)
		}
	}, nil
}

// environment returns the command's environment: without the variables by which it would take itself for a child of an
// outer session, and without CI, which keeps programs from using a terminal. withoutCI says that CI was set.
func environment(environ, add []string) (env []string, withoutCI bool) {
	env = claude.WithoutIdentity(environ)
	before := len(env)
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CI=") })
	withoutCI = len(env) < before && !slices.ContainsFunc(add, func(kv string) bool { return strings.HasPrefix(kv, "CI=") })
	for _, kv := range add {
		env = terminal.SetVariable(env, kv)
	}
	return env, withoutCI
}

// withValues completes each variable that is given by its name alone with its value from environ.
func withValues(add, environ []string) (all []string, err error) {
	for _, kv := range add {
		if !strings.Contains(kv, "=") {
			i := slices.IndexFunc(environ, func(here string) bool { return strings.HasPrefix(here, kv+"=") })
			if i < 0 {
				return nil, fmt.Errorf("--env %s: it is not set here: set it, or give its value, as in %s=V", kv, kv)
			}
			kv = environ[i]
		}
		all = append(all, kv)
	}
	return all, nil
}
