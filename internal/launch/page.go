package launch

import (
	"heartbeat/internal/cli"
	"heartbeat/internal/machine/guardian"
)

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

It runs a command in a real terminal (a PTY), in a session of its own. Claude Code needs
that to run interactively where there is no terminal.

With an inbox it does all that an unattended session needs. It keeps other
launchers off the inbox, decides about an entry that a dead session left
(--on-orphan), wires heartbeat-stop for this session alone (with --settings; the
project's own settings stay as they are), lifts the cap on blocks, and starts the
command: Claude Code with its first prompt. In drain mode it ends the session once
nothing waits, starts another while entries wait, and starts none at all if nothing
waits. In persist mode the session stays up, idle, and each entry wakes it. If a
session does not start, heartbeat-launch ends it and reads the reason from its
screen; it never answers a question for a person. After a session that crashes,
meets an error of the model's API or asks for a person when nobody is there, another one follows, after a rest that grows.

With --inbox none, or where none is found, it manages no sessions: inbox, settings and hooks are yours. It
prints what the command prints, and exits with its status. If the command prints
nothing for --idle-timeout, it types ESC twice, the --idle-prompt and return. It
types no ESC while an entry is in flight in the inbox that HEARTBEAT_INBOX names,
since that would interrupt the work.

With --run the sessions drive babysitter runs: what those ask for becomes entries,
and the inbox is drained only once they are done. A run that waits for a person,
sleeps for longer than is waited or cannot continue by itself ends the work with
status 75.

While an API limit, an outage or a pause with an end holds delivery, a draining
launcher waits: at a terminal as long as it takes, with --until and --patience as
long as they say, and otherwise for up to ten minutes and for no pause. It says until
when. Time that the machine sleeps counts against no limit of time.

At a terminal, what you type goes to the command, keys such as ^C included, and
its terminal has the size of yours. It is not ended in order while you type, and
what you type when it is over is dropped until you pause. The terminal is left as
it was. Anywhere else nothing is typed.

To end a command, heartbeat-launch sends SIGTERM to its whole process group, and
SIGKILL after --grace. Whatever the command started ends with it, daemons too.
SIGINT, SIGTERM, SIGHUP and SIGQUIT to heartbeat-launch do the same; a second one
kills at once. On Linux this holds even for a SIGKILL to heartbeat-launch: a
guardian process beside it, which costs nothing while it waits, kills every process
that has the mark of the session in HEARTBEAT_SESSION.

Printing never blocks the command: if stdout takes nothing for a quarter of a
second (nobody reads it, the disk is full), output is dropped, with one message on
stderr, and the command goes on.

--record keeps what is printed, with its times and the sizes of the terminal, in a
file for asciinema play (asciicast v2), which only you can read. It holds neither
the command line nor what is typed, unless the terminal echoes it.

The variables by which a session inside another one takes itself for its child are
not passed on, nor is CI. Under systemd (Type=notify) it reports the start of the
first session, the state of the queue, and that the work goes on.`,
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
			{Name: ".launch-told", What: "what --output mail told last about status 78"},
			{Name: ".exit-signal", What: "exists for a moment when the hook asks for the session's end"},
		},
	}
}
