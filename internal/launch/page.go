package launch

import (
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/guardian"
)

// Page is what there is to say of the launcher.
func Page() cli.Page {
	return cli.Page{
		Command: CommandName,
		Short:   "work through an inbox with Claude Code, or run a command in a terminal of its own",
		Long: strings.TrimSpace(`
heartbeat-launch runs a command in a real terminal (a PTY), in a session of its
own. Claude Code needs that to run interactively where there is no terminal: under
cron, in a pipeline, as a service.

With --inbox it does all that an unattended session needs. It keeps other
launchers off the inbox, decides about an entry that a dead session left
(--on-orphan), wires heartbeat-stop for this session alone (with --settings; the
project's own settings are left as they are), lifts the cap on blocks, and starts
the command, which is Claude Code's with the prompt that it begins with. In drain
mode it ends the session once nothing waits, starts another while entries do, and
starts none at all where nothing waits. In persist mode the session stays up, idle,
and each entry wakes it. A session that does not start is ended, and the reason
read from its screen; no question is ever answered for a person. A session that
crashes, meets an error of the model's API or asks for a person where nobody is
(--on-prompt) is followed by another one, after a rest that grows.

Without --inbox it is no session manager: inbox, settings and hooks are yours. It
prints what the command prints, and exits with its status. A command that prints
nothing for --idle-timeout is typed at: ESC twice, the --idle-prompt, return. There
is no ESC while an entry is in flight, since it would cut the work off; the inbox is
then the one that HEARTBEAT_INBOX names.

With --run the sessions drive babysitter runs: what those ask for becomes entries, and
the inbox is drained only once they are done. A run that waits for a person, or sleeps
for more than ten minutes, ends the work with status 75, and so does one that goes no
further by itself.

At a terminal, what you type goes to the command, keys such as ^C included, and
its terminal has the size of yours. Anywhere else nothing is typed.

A command that is to end gets SIGTERM with its whole process group, and SIGKILL
after --grace. Whatever it started and left behind ends with it, daemons too.
SIGINT, SIGTERM, SIGHUP and SIGQUIT to heartbeat-launch do the same; a second one
kills at once. On Linux a SIGKILL to it does as well: a guardian beside it, which
costs nothing while it waits, kills whoever has the mark of the session in
HEARTBEAT_SESSION.

What the command prints never holds it up: where stdout takes nothing for a
quarter of a second (nobody reads it, the disk is full), output is dropped, which
is said once on stderr, and the command goes on.

--record keeps what is printed, with its times and the sizes of the terminal, in a
file for asciinema play (asciicast v2), which only you can read. The command line
and what is typed are not in it, but for its echo.

Variables by which a session started inside another one takes itself for its
child, and CI, are not passed on. Under systemd (Type=notify) it tells the start of
the first session, the state of the queue, and that the work goes on.`),
		Usage: []string{"--inbox PATH [flags] -- claude PROMPT", "[flags] -- COMMAND [ARGUMENT...]"},
		Example: `heartbeat-launch --inbox work/inbox.jsonl -- claude "Read CLAUDE.md"
heartbeat-launch --inbox work/inbox.jsonl --mode persist --log agent.log -- claude
heartbeat-launch --inbox work/inbox.jsonl --on-orphan retry --report - -- claude "Read CLAUDE.md"
heartbeat-launch --inbox work/inbox.jsonl --run .a5c/runs/r1 -- claude "Read CLAUDE.md"
heartbeat-launch --timeout 2h -- claude "Read CLAUDE.md"
heartbeat-launch --cwd work --exit-signal work/.exit-signal -- claude "Read CLAUDE.md"`,
		Flags: newCommandLine().set,
		Status: `with --inbox, 0 everything was answered; 3 something became a dead
letter; 75 work is left (paused, limited for long, one restart too many, another
launcher, a babysitter run that waits for a person or goes no further); 77 something that the model's API wants from a person (login, key, account, bill, model); 78 set-up (folder not trusted,
hooks disabled, command not found).

Without, the command's own; 128+n when it died of signal n; 0 after --exit-signal,
125 when it stayed idle, 126 when it cannot be run, 127 when it is not found.

With both, 124 after --timeout, 128+n after signal n to heartbeat-launch, 1 wrong
usage, or there is no terminal, with a sentence on stderr.`,
		Environment: []cli.Item{
			{Name: cli.InboxVariable, What: "without --inbox, the inbox whose entry in flight is not to be cut off"},
			{Name: guardian.Variable, What: "set for the command: the marks of the sessions it is in, by which a guardian knows them"},
			{Name: cli.LaunchedVariable, What: "set for the session with --inbox: its inbox, by which other hooks know that theirs is not needed"},
		},
		FilesIntro: "With --inbox, beside the inbox, readable by you alone. The settings of the session are in a directory of\nyour own, below $XDG_RUNTIME_DIR or $TMPDIR, while the launcher lives:",
		Files: []cli.Item{
			{Name: ".launch-lock", What: "which launcher works on the inbox"},
			{Name: ".launch-told", What: "what --output mail told last about status 77"},
			{Name: ".exit-signal", What: "there for a moment when the hook asks for the session's end"},
		},
		SeeAlso: []string{"heartbeat", "heartbeat-stop"},
	}
}
