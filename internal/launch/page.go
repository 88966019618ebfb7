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
			{Name: ".launch-told", What: "what --output mail told last about status 78"},
			{Name: ".exit-signal", What: "exists for a moment when the hook asks for the session's end"},
		},
	}
}
