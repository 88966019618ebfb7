package launch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/budget"
	"heartbeat/internal/cli"
	"heartbeat/internal/launch/client"
	"heartbeat/internal/launch/managed"
)

// What stdout gets of the sessions.
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

// inboxFlags say how sessions work through an inbox.
type inboxFlags struct {
	set *pflag.FlagSet // all of them

	path         string
	as           string
	mode         string
	orphan       cli.OrphanFlags
	maxEntries   int
	limits       budget.Plan
	background   cli.Span
	untilDrained bool
	maxRestarts  int
	startTimeout cli.Span
	onPrompt     string
	resume       bool
	shared       bool
	adopt        bool
	hook         string
	noMeter      bool
	mcp          bool
	output       string
	log          string
	logSize      int
	report       string
	notify       cli.NotifyFlags

	runs   cli.RunFlags
	runSet *pflag.FlagSet // those of runs alone
}

func (i *inboxFlags) add(f *pflag.FlagSet) {
	i.set = cli.NewFlags("inbox")
	i.set.Var(cli.Choice(&i.as, client.Names()...), "as", "what the command starts, where its name does not say it: a wrapper is taken for claude")
	i.set.StringVar(&i.path, "inbox", "", "work through this inbox, as described above (`path` of the JSONL file)")
	i.addSessions()
	i.addOutput()
	i.runSet = cli.NewFlags("runs")
	i.runs.Add(i.runSet)
	i.set.AddFlagSet(i.runSet)
	f.AddFlagSet(i.set)
}

// addSessions declares the flags about the sessions.
func (i *inboxFlags) addSessions() {
	i.mode, i.background, i.startTimeout = string(managed.Drain), cli.Span(30*time.Minute), cli.Span(time.Minute)
	f := i.set
	f.Var(cli.Choice(&i.mode, string(managed.Drain), string(managed.Persist)), "mode", "drain ends once nothing waits, persist stays up, idle, and is woken")
	i.orphan.Add(f)
	f.IntVar(&i.maxEntries, "max-entries", 0, "continue in a fresh session after this many answered entries (0: never)")
	cli.AddLimits(f, &i.limits)
	f.BoolVar(&i.untilDrained, "until-drained", true, "drain: start session after session while entries wait")
	f.IntVar(&i.maxRestarts, "max-restarts", 5, "how often in a row another session is started without an answered entry in between")
	f.Var(&i.background, "background-timeout", "drain: how long an entry whose turn left tasks running in the background waits for them (0: not at all)")
	f.Var(&i.startTimeout, "start-timeout", "how long a session may take to start before it is ended and the reason said")
	f.Var(cli.Choice(&i.onPrompt, promptWait, promptEnd), "on-prompt", "what to do about a session that waits for a person (default: wait at a terminal, end elsewhere)")
	f.BoolVar(&i.resume, "resume", false, "continue the conversation of a session that ended too early, instead of a fresh one")
	f.BoolVar(&i.shared, "shared", false, "others are meant to write to the inbox or its directory, and each of them can instruct the agent")
	f.BoolVar(&i.adopt, "adopt", false, "trust results, events and scheduled entries that were not written here, such as those from a pipeline's cache")
	f.BoolVar(&i.noMeter, "no-meter", false, "wire no status line that counts what a session costs (heartbeat-meter)")
	f.BoolVar(&i.mcp, "mcp", false, "give the session the tools of an agent (heartbeat-mcp), and allow them")
	f.StringVar(&i.hook, "hook", "", "the heartbeat-stop to wire (`path`; default: the one beside this command, or else on the PATH)")
}

// addOutput declares the flags about what is told of the work.
func (i *inboxFlags) addOutput() {
	f := i.set
	f.Var(cli.Choice(&i.output, showSession, showLog, showNone, showMail), "output", "what stdout gets: the session itself, a line for each thing that happens, or those at the end where somebody has to look, for cron (default: session at a terminal and without --inbox, else log)")
	f.StringVar(&i.log, "log", "", "append the lines of --output log to this `file` as well")
	f.IntVar(&i.logSize, "log-size", 10, "rotate that file at so many MiB, keeping the last 5")
	i.notify.Add(f)
	i.notify.AddStall(f)
	f.StringVar(&i.report, "report", "", "write one JSON object on how it went to this `file`, or to stdout (-)")
}

// check refuses what cannot be meant.
func (i *inboxFlags) check(f *pflag.FlagSet, command []string) error {
	if !f.Changed("inbox") {
		return i.checkWithoutInbox()
	}
	i.orphan.Given = f.Changed("on-orphan")
	switch {
	case i.path == "":
		return errors.New("--inbox is empty: name a file")
	case i.maxEntries < 0:
		return fmt.Errorf("--max-entries is %d: it must be 0 or more", i.maxEntries)
	case i.maxRestarts < 0:
		return fmt.Errorf("--max-restarts is %d: it must be 0 or more", i.maxRestarts)
	case i.startTimeout <= 0:
		return errors.New("--start-timeout is 0: a session needs some time to start")
	case i.logSize < 1:
		return fmt.Errorf("--log-size is %d: it must be 1 or more", i.logSize)
	case i.report == toStdout && !slices.Contains([]string{"", showNone}, i.output):
		return fmt.Errorf("--report - and --output %s both want stdout: use a file for one of them, or --output none", i.output)
	case f.Changed("until-drained") && i.mode == string(managed.Persist):
		return errors.New("--until-drained is about --mode drain: leave it out")
	}
	if err := errors.Join(i.orphan.Check(), i.checkRuns(), i.notify.Check(f)); err != nil {
		return err
	}
	return client.Of(i.as, command).Check(client.Wishes{Command: command, Persist: i.mode == string(managed.Persist), Limits: i.limits})
}

// checkWithoutInbox refuses the flags that mean nothing without an inbox.
func (i *inboxFlags) checkWithoutInbox() error {
	name := firstGiven(i.set, "output") // --output session and none are about any command
	switch {
	case name != "":
		return fmt.Errorf("--%s is about the sessions of an inbox: name that with --inbox", name)
	case i.output == showLog || i.output == showMail:
		return fmt.Errorf("--output %s is about the entries of an inbox: name that with --inbox", i.output)
	}
	return nil
}

func (i *inboxFlags) checkRuns() error {
	name := firstGiven(i.runSet, "run")
	switch {
	case len(i.runs.Dirs) == 0 && name != "":
		return fmt.Errorf("--%s is about babysitter runs: name one with --run", name)
	case slices.Contains(i.runs.Dirs, ""):
		return errors.New("--run is empty: name the directory of a run")
	}
	return i.runs.Check()
}

// firstGiven is the first flag of a set that was given, but for one of that name; ""
// for none.
func firstGiven(set *pflag.FlagSet, except string) (name string) {
	set.VisitAll(func(f *pflag.Flag) {
		if name == "" && f.Changed && f.Name != except {
			name = f.Name
		}
	})
	return name
}
