package launch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/launch/managed"
)

// What is shown of the sessions.
const (
	showSession = "session"
	showLog     = "log"
	showNone    = "none"
	showMail    = "mail"
)

// What is done about a session that waits for a person.
const (
	promptWait = "wait"
	promptEnd  = "end"
)

// manage is what the command line says of a managed session.
type manage struct {
	inbox        string
	mode         string
	orphan       cli.OrphanFlags
	maxEntries   int
	background   cli.Span
	untilDrained bool
	maxRestarts  int
	startTimeout cli.Span
	onPrompt     string
	resume       bool
	shared       bool
	adopt        bool
	hook         string
	output       string
	log          string
	logSize      int
	report       string
	runs
}

func (m *manage) add(f *pflag.FlagSet) {
	m.mode, m.startTimeout = string(managed.Drain), cli.Span(time.Minute)
	f.StringVar(&m.inbox, "inbox", "", "work through this inbox: see above (`path` of the JSONL file)")
	f.Var(cli.Choice(&m.mode, string(managed.Drain), string(managed.Persist)), "mode", "drain ends once nothing waits, persist stays up, idle, and is woken")
	m.orphan.Add(f)
	f.IntVar(&m.maxEntries, "max-entries", 0, "go on in a fresh session after this many answered entries (0: never)")
	f.BoolVar(&m.untilDrained, "until-drained", true, "drain: start session after session while entries wait")
	f.IntVar(&m.maxRestarts, "max-restarts", 5, "how often in a row, without an answered entry in between, another session is started")
	m.background = cli.Span(30 * time.Minute)
	f.Var(&m.background, "background-timeout", "drain: how long an entry whose turn left tasks running in the background waits for them (0: not at all)")
	f.Var(&m.startTimeout, "start-timeout", "how long a session may take to start, before it is ended and the reason said")
	f.Var(cli.Choice(&m.onPrompt, promptWait, promptEnd), "on-prompt", "what to do about a session that waits for a person (default: wait at a terminal, end elsewhere)")
	f.BoolVar(&m.resume, "resume", false, "go on with the conversation of a session that ended too early, in place of a fresh one")
	f.BoolVar(&m.shared, "shared", false, "the inbox, or its directory, is meant to be written to by others, each of whom can instruct the agent")
	f.BoolVar(&m.adopt, "adopt", false, "take results, events and scheduled entries for yours that were not written here, as a pipeline's cache brings them")
	f.StringVar(&m.hook, "hook", "", "the heartbeat-stop to wire (`path`; default: the one beside this command, or else on the PATH)")
	f.Var(cli.Choice(&m.output, showSession, showLog, showNone, showMail), "output", "what stdout gets: the session itself, a line for each thing that happens, or those at the end where somebody has to look, for cron (default: session at a terminal and without --inbox, else log)")
	f.StringVar(&m.log, "log", "", "append the lines of --output log to this `file` as well")
	f.IntVar(&m.logSize, "log-size", 10, "at how many MiB that file is renamed and begun anew; the last 5 are kept")
	f.StringVar(&m.report, "report", "", "write one JSON object on how it went to this `file`, or to stdout (-)")
	m.runs.add(f)
}

// needInbox are the flags that mean nothing without an inbox.
var needInbox = []string{
	"mode", "on-orphan", "max-attempts", "max-entries", "background-timeout", "until-drained", "max-restarts", "start-timeout", "on-prompt",
	"resume", "shared", "adopt", "hook", "log", "log-size", "report", "run", "babysitter", "breakpoints", "on-unresolved", "execute",
}

// check refuses what cannot be meant.
func (m *manage) check(f *pflag.FlagSet, command []string) error {
	if !f.Changed("inbox") {
		for _, name := range needInbox {
			if f.Changed(name) {
				return fmt.Errorf("--%s is about the sessions of an inbox: name that with --inbox", name)
			}
		}
		if m.output == showLog || m.output == showMail {
			return fmt.Errorf("--output %s is about the entries of an inbox: name that with --inbox", m.output)
		}
		return nil
	}
	m.orphan.Given = f.Changed("on-orphan")
	switch {
	case m.inbox == "":
		return errors.New("--inbox is empty: name a file")
	case m.maxEntries < 0:
		return fmt.Errorf("--max-entries is %d: it must be 0 or more", m.maxEntries)
	case m.maxRestarts < 0:
		return fmt.Errorf("--max-restarts is %d: it must be 0 or more", m.maxRestarts)
	case m.startTimeout <= 0:
		return errors.New("--start-timeout is 0: a session needs some time to start")
	case m.logSize < 1:
		return fmt.Errorf("--log-size is %d: it must be 1 or more", m.logSize)
	case m.report == "-" && !slices.Contains([]string{"", showNone}, m.output):
		return fmt.Errorf("--report - and --output %s both want stdout: use a file for one of them, or --output none", m.output)
	case f.Changed("until-drained") && m.mode == string(managed.Persist):
		return errors.New("--until-drained is about --mode drain: leave it out")
	}
	if err := m.orphan.Check(); err != nil {
		return err
	}
	if err := m.runs.check(f); err != nil {
		return err
	}
	return managed.CheckCommand(command, managed.Mode(m.mode))
}
