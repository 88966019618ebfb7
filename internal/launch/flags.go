package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/supervise"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
)

// What stdout shows of the sessions.
const (
	showSession = "session"
	showLog     = "log"
	showNone    = "none"
	showMail    = "mail"
)

// noInbox is the --inbox value for running a command without an inbox.
const noInbox = "none"

// flags are the parsed flags and the command to run. Most flags are parsed straight into work.
type flags struct {
	set    *pflag.FlagSet
	groups []cli.FlagGroup
	runs   *pflag.FlagSet // the group of babysitter runs
	work   supervise.Options

	agent     string
	variables []string
	mcp       bool
	output    string
	log       string
	notify    cli.NotifyFlags
	report    reportFile
	onResult  string
	recording string
	until     cli.Moment

	help, helpAll, version bool
}

// consumerName names the consumer of --on-result.
const consumerName = "launch"

// alone lists the flags that also work without an inbox.
var alone = []string{
	"inbox", "output", "cwd", "timeout", "exit-signal", "idle-timeout", "idle-prompt", "max-idle-retries", "grace", "size", "env", "record",
}

// newFlags declares the flags. They end where the command begins, with or without `--`.
func newFlags() *flags {
	c := &flags{set: cli.NewFlags(CommandName)}
	c.set.SetInterspersed(false)
	c.queue(c.group("queue"))
	c.limits(c.group("limits"))
	c.session(c.group("session"))
	c.terminal(c.group("terminal"))
	c.telling(c.group("telling"))
	c.runs = c.group("babysitter runs")
	c.work.Runs.Add(c.runs)
	f := c.groups[0].Flags
	f.BoolVar(&c.helpAll, "help-all", false, "show all of the help")
	f.BoolVar(&c.version, "version", false, "show the version")
	f.BoolVarP(&c.help, "help", "h", false, "show the beginning of the help")
	for _, g := range c.groups {
		c.set.AddFlagSet(g.Flags)
	}
	return c
}

func (c *flags) group(title string) *pflag.FlagSet {
	c.groups = append(c.groups, cli.FlagGroup{Title: title, Flags: cli.NewFlags(title)})
	return c.groups[len(c.groups)-1].Flags
}

func (c *flags) queue(f *pflag.FlagSet) {
	o := &c.work
	o.Mode, o.UntilDrained, o.MaxRestarts, o.Terminal.Dir = supervise.Drain, true, 5, "."
	cli.AddInbox(f, &o.Inbox)
	f.Lookup("inbox").Usage += "; " + noInbox + " runs the command alone"
	f.Var(cli.Choice((*string)(&o.Mode), string(supervise.Drain), string(supervise.Persist)), "mode", "drain ends once nothing waits, persist stays up, idle, and is woken")
	cli.AddOrphan(f, &o.Settings)
	cli.AddChecks(f, &o.Settings)
	f.BoolVar(&o.UntilDrained, "until-drained", o.UntilDrained, "drain: start session after session while entries wait")
	f.Var(cli.AtLeast(&o.MaxRestarts, 0), "max-restarts", "drain: how often in a row another session is started without an answered entry in between")
	f.Var(cli.Named(&o.Terminal.Dir, "name a directory, or leave the flag out"), "cwd", "`directory` that the command runs in")
	f.Var(cli.Choice(&c.output, showSession, showLog, showNone, showMail), "output", "what stdout gets: the session itself, a line for each thing that happens, or those at the end where somebody has to look, for cron (default: session at a terminal and without an inbox, else log)")
	f.BoolVar(&o.Shared, "shared", false, "others are meant to write to the inbox or its directory, and each of them can instruct the agent")
	f.BoolVar(&o.Adopt, "adopt", false, "trust results, events and scheduled entries that were not written here, such as those from a pipeline's cache")
}

func (c *flags) limits(f *pflag.FlagSet) {
	o := &c.work
	o.Background, o.StartTimeout = 30*time.Minute, time.Minute
	o.DrainTimeout = time.Minute
	cli.AddLimits(f, &o.Settings.Limits)
	f.Var(cli.AtLeast(&o.MaxEntries, 0), "max-entries", "continue in a fresh session after this many answered entries (0: never)")
	f.Var((*cli.Span)(&o.Terminal.Timeout), "timeout", "end all sessions together after this many seconds, or a duration (0: never; default: never, and an hour without an inbox)")
	f.Var(&c.until, "until", "drain: begin no further entry after that, while the one in flight may finish, and wait until then for the end of an API limit or an outage (a time such as 07:00, or a duration from now)")
	f.Var((*cli.Span)(&o.Patience), "patience", "drain: how long to wait for the end of an API limit, a pause with an end or an outage, counted from the last answer (default: as long as it takes at a terminal and with --until, else 10m and for no pause)")
	f.Var((*cli.Span)(&o.Background), "background-timeout", "drain: how long an entry waits for tasks that its turn left in the background (0: not at all)")
	f.Var((*cli.Span)(&o.DrainTimeout), "drain-timeout", "how long the entry in flight may take to be answered once the launcher is told to stop (SIGTERM, heartbeat stop) or --timeout has passed; then it is given back, or set aside under deadletter")
	f.Var((*cli.Span)(&o.StartTimeout), "start-timeout", "how long a session may take to start before it is ended and the reason reported")
}

func (c *flags) session(f *pflag.FlagSet) {
	f.Var(cli.Choice(&c.agent, client.Names()...), "agent", "the client that the command starts, if its name does not tell: a wrapper counts as claude")
	f.BoolVar(&c.work.Resume, "resume", false, "continue the conversation of a session that ended too early, instead of a fresh one")
	f.Var((*cli.Span)(&c.work.AskPatience), "ask-patience", "how long a session that asks something waits for somebody who attaches and answers, where nobody is at its terminal (0: it is ended at once)")
	f.StringArrayVar(&c.variables, "env", nil, "add a `variable` to the command's environment: K=V, or K with the value that it has here, which keeps a secret out of the list of processes; may be repeated")
	f.BoolVar(&c.mcp, "mcp", false, "give the session the tools of an agent (heartbeat mcp), and allow them")
	f.Bool("no-meter", false, "") // accepted for earlier releases
	f.Lookup("no-meter").Hidden = true
	f.StringVar(&c.work.Hook, "hook", "", "the heartbeat-stop to wire (`path`; default: the one beside this command, or else on the PATH)")
}

func (c *flags) terminal(f *pflag.FlagSet) {
	o := &c.work.Terminal
	o.Grace, o.Size = 5*time.Second, terminal.DefaultSize
	o.Idle.Prompt, o.Idle.Retries = "Continue", 3
	f.Var(cli.Named(&o.ExitSignal, "name a file, or leave the flag out"), "exit-signal", "`file` that ends the command with status 0 once it exists; one that exists already is removed")
	f.Var((*cli.Span)(&o.Idle.Timeout), "idle-timeout", "after this long without output, type a text that may revive the command (0: never)")
	f.StringVar(&o.Idle.Prompt, "idle-prompt", o.Idle.Prompt, "the `text`, which is typed after ESC")
	f.Var(cli.AtLeast(&o.Idle.Retries, 0), "max-idle-retries", "how often it is typed before the command is ended with status 125")
	f.Var((*cli.Span)(&o.Grace), "grace", "how long a command may take to end before it is killed")
	f.Var(&o.Size, "size", "size of the terminal, in place of the size of the one you are at, if any")
	f.Var(cli.Named(&c.recording, "name a file, or leave the flag out"), "record", "record what is printed to a `file` that asciinema plays, replacing it")
}

func (c *flags) telling(f *pflag.FlagSet) {
	f.StringVar(&c.log, "log", "", "also append the lines of --output log to this `file`, which is rotated at 10 MiB (5 old ones are kept) and begun anew when another program has renamed it")
	c.notify.Add(f)
	f.Var((*cli.Span)(&c.work.Notify.Stall), "stall", "with --notify: also tell when nothing has happened for this long while an entry waits or is in flight (0: never)")
	f.Var(cli.Named(&c.onResult, "give it a command, or leave the flag out"), "on-result", "hand each result and each dead letter from now on to this shell `command`, as heartbeat results --exec does, as the consumer "+consumerName)
	f.StringVar((*string)(&c.report), "report", "", "write one JSON object on how it went to this `file`, or to stdout (-)")
}

func (c *flags) check() error {
	f, o := c.set, &c.work
	if f.NArg() == 0 || f.Arg(0) == "" {
		return errors.New("no command: name it after the flags, as in " + CommandName + " -- claude")
	}
	for _, kv := range c.variables {
		if name, _, _ := strings.Cut(kv, "="); name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("--env %q: it takes a name and a value, as in K=V, or the name of a variable", kv)
		}
	}
	if o.Inbox == noInbox || o.Inbox == "" && !f.Changed("inbox") {
		o.Inbox = ""
		return c.checkAlone()
	}
	name := firstGiven(c.runs, "run")
	draining := slices.DeleteFunc([]string{"until-drained", "until", "patience"}, func(name string) bool { return !f.Changed(name) })
	switch {
	case o.Inbox == "":
		return errors.New("--inbox is empty: name a file, or " + noInbox)
	case o.StartTimeout <= 0:
		return errors.New("--start-timeout is 0: a session needs some time to start")
	case c.report == toStdout && c.output != "" && c.output != showNone:
		return fmt.Errorf("--report - and --output %s both want stdout: use a file for one of them, or --output none", c.output)
	case o.Mode == supervise.Persist && len(draining) > 0:
		return fmt.Errorf("--%s is about --mode drain: leave it out", draining[0])
	case f.Changed("until") && !c.until.After(time.Now()):
		return fmt.Errorf("--until %s has passed: name a time to come", &c.until)
	case o.Notify.Stall > 0 && c.notify.Command == "":
		return errors.New("--stall says when to run the command of --notify: name one")
	case len(o.Runs.Dirs) == 0 && name != "":
		return fmt.Errorf("--%s is about babysitter runs: name one with --run", name)
	case slices.Contains(o.Runs.Dirs, ""):
		return errors.New("--run is empty: name the directory of a run")
	}
	o.Client = client.Of(c.agent, f.Args())
	wishes := client.Wishes{Command: f.Args(), Persist: o.Mode == supervise.Persist, Limits: o.Settings.Limits}
	return errors.Join(o.Runs.Check(), c.notify.Check(), o.Client.Check(wishes))
}

func (c *flags) checkAlone() error {
	name := firstGiven(c.set, alone...)
	switch {
	case name != "":
		return fmt.Errorf("--%s is about the sessions of an inbox: name that with --inbox", name)
	case c.output == showLog || c.output == showMail:
		return fmt.Errorf("--output %s is about the entries of an inbox: name that with --inbox", c.output)
	}
	return nil
}

// firstGiven returns the first flag given, except those named; "" for none.
func firstGiven(set *pflag.FlagSet, except ...string) (name string) {
	set.VisitAll(func(f *pflag.Flag) {
		if name == "" && f.Changed && !slices.Contains(except, f.Name) {
			name = f.Name
		}
	})
	return name
}

// complete fills in the options that the flags leave open. withoutCI says that CI was removed from the environment.
func (c *flags) complete() (withoutCI bool, err error) {
	f, o := c.set, &c.work.Terminal
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return false, fmt.Errorf("working directory: %w", err)
	}
	variables, err := withValues(c.variables, os.Environ())
	if err != nil {
		return false, err
	}
	if o.Env, withoutCI = environment(os.Environ(), variables); f.Changed("cwd") {
		o.Env = terminal.SetVariable(o.Env, "PWD="+o.Dir)
	}
	if c.work.Inbox == "" && !f.Changed("timeout") {
		o.Timeout = time.Hour
	}
	if c.work.Until = c.until.Truncate(time.Second); f.Changed("until") { // whole seconds, as the hook gets it
		c.waitForever()
	}
	o.Command, o.FixedSize = f.Args(), f.Changed("size")
	if inbox := terminal.Variable(o.Env, cli.InboxVariable); inbox != "" {
		if !filepath.IsAbs(inbox) {
			inbox = filepath.Join(o.Dir, inbox)
		}
		o.Idle.Busy = func() bool { return supervise.InFlight(filepath.Dir(inbox)) }
	}
	n := &c.work.Notify
	n.Command, n.Drained = c.notify.Command, c.notify.Drained
	return withoutCI, nil
}

// waitForever removes the limit of the patience unless a flag has set one.
func (c *flags) waitForever() {
	if !c.set.Changed("patience") {
		c.work.Patience = -1
	}
}

const brief = `heartbeat-launch works through an inbox with sessions of Claude Code, where nobody is at
the terminal: under cron, in a pipeline, as a service. It wires the hook for its sessions
alone, ends each once nothing waits, starts another while entries wait, and decides about
what a dead session left.

The inbox is that of --inbox, of HEARTBEAT_INBOX, or work/inbox.jsonl of this folder or of
one above it, up to the project's. With --inbox none it runs any command in a terminal of
its own, and manages no sessions.`

// Page is the launcher's help and manual page.
func Page() cli.Page {
	f := newFlags()
	return cli.Page{
		Command: CommandName,
		Brief:   brief,
		Long: brief + `

The command gets a real terminal (a PTY), in a session of its own: Claude Code needs that
to run interactively. Whatever it started ends with it, daemons too: SIGTERM goes to its
process group, and SIGKILL to all that is left after --grace, also where a signal ends
heartbeat-launch (a second one kills at once). On Linux a guardian does the same after a
SIGKILL to heartbeat-launch, by the mark of the session in HEARTBEAT_SESSION.

With an inbox it keeps other launchers off, decides about an entry that a dead session
left (--on-orphan), wires heartbeat-stop for this session alone (--settings; the project's
own stay as they are), lifts the cap on blocks, and starts the command: Claude Code with
its first prompt. In drain mode it ends the session once nothing waits, starts another
while entries wait, and none at all if nothing does. In persist mode the session stays up,
idle, and each entry wakes it. The reason why a session does not start is read from its
screen; no question is ever answered for a person. After a session that crashes, meets an
error of the model's API or asks for a person when nobody is there, another one follows,
after a rest that grows.

With --run the sessions drive babysitter runs: what those ask for becomes entries, and the
inbox is drained only once they are done. A run that waits for a person, sleeps for longer
than is waited or cannot continue by itself ends the work with status 75.

While an API limit, an outage or a pause with an end holds delivery, a draining launcher
waits: at a terminal as long as it takes, with --until and --patience as long as they say,
and otherwise for up to ten minutes and for no pause. It says until when. Time that the
machine sleeps counts against no limit of time.

With --inbox none, or where none is found, it prints what the command prints, and exits
with its status. If that is silent for --idle-timeout, it types ESC twice (unless an entry
is in flight in the inbox that HEARTBEAT_INBOX names), the --idle-prompt and return.

At a terminal, what you type goes to the command, keys such as ^C included, and its
terminal has the size of yours. It is not ended in order while you type, what you type
when it is over is dropped until you pause, and the terminal is left as it was. Anywhere
else nothing is typed.

If stdout takes nothing for a quarter of a second, output is dropped, with one message on
stderr, and the command goes on. --record keeps what is printed, with times and sizes, in
a file for asciinema play (asciicast v2) that only you can read, and nothing that is typed
unless the terminal echoes it.

The variables by which a session inside another one takes itself for its child are not
passed on, nor is CI. Under systemd (Type=notify) it reports the start of the first
session, the state of the queue, and that the work goes on.`,
		Usage: []string{"[flags] -- claude PROMPT", "--inbox none [flags] -- COMMAND [ARGUMENT...]"},
		Example: `heartbeat-launch -- claude "Say ready."
heartbeat-launch --mode persist --log agent.log -- claude
heartbeat-launch --inbox /srv/agent/work/inbox.jsonl --on-orphan retry --report - -- claude "Say ready."
heartbeat-launch --run .a5c/runs/r1 -- claude "Say ready."
heartbeat-launch --inbox none --timeout 2h -- claude "Read CLAUDE.md"
heartbeat-launch --inbox none --cwd project --exit-signal stop -- claude "Read CLAUDE.md"`,
		Flags: f.set, Groups: f.groups,
		Status: `with an inbox, 0 everything was answered; 3 something became a dead
letter; 75 start it again later (paused, limited for long, one restart too many, another
launcher, a full disk, a machine that is short of something, a babysitter run that waits);
78 somebody has to do something first (login, key, bill, model, trust, hooks, rights, a
command that is not there, a flag that the client refuses).

Without, the command's own; 128+n when it died of signal n; 0 after --exit-signal,
125 when it stayed idle, 126 when it cannot be run, 127 when it is not found.

With both, 124 after --timeout, 128+n after signal n to heartbeat-launch, 1 for wrong
usage or if there is no terminal, with a sentence on stderr.`,
		Environment: []cli.Item{
			{Name: cli.InboxVariable, What: "the inbox, where --inbox does not name one; with --inbox none, that whose entry in flight must not be interrupted"},
			{Name: guardian.Variable, What: "set for the command: the marks of the sessions it is in, by which a guardian knows them"},
			{Name: cli.LaunchedVariable, What: "set for a session with an inbox: that; hooks of the project's own settings then do nothing"},
		},
		FilesIntro: "Beside the inbox, which only you can read. While the launcher lives, the settings of the\nsession are in a private directory below $XDG_RUNTIME_DIR or $TMPDIR:",
		Files: []cli.Item{
			{Name: ".launch-lock", What: "which launcher works on the inbox"},
			{Name: ".notified.json", What: "what a person was told (--notify)"},
			{Name: ".consumer-launch", What: "how far the results were handed over (--on-result)"},
			{Name: ".launch-told", What: "what \"--output mail\" told last about status 78"},
			{Name: ".exit-signal", What: "exists for a moment when the hook asks for the session's end"},
		},
	}
}
