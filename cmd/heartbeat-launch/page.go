package main

import (
	"strings"

	"heartbeat/internal/cli"
)

func ownPage() cli.Page {
	return cli.Page{
		Command: commandName,
		Short:   "run a command in a terminal of its own",
		Long: strings.TrimSpace(`
heartbeat-launch runs a command in a real terminal (a PTY), in a session of its
own, prints what it prints, and exits with its status. Claude Code needs that to
run interactively where there is no terminal: under cron, in a pipeline, as a
service. It is no session manager: inbox, settings and hooks are yours.

At a terminal, what you type goes to the command, keys such as ^C included, and
its terminal has the size of yours. Anywhere else nothing is typed.

A command that is to end gets SIGTERM with its whole process group, and SIGKILL
after --grace. Whatever it started and left behind ends with it, daemons too.
SIGINT, SIGTERM, SIGHUP and SIGQUIT to heartbeat-launch do the same; a second one
kills at once.

What the command prints never holds it up: where stdout takes nothing for a
quarter of a second (nobody reads it, the disk is full), output is dropped, which
is said once on stderr, and the command goes on.

A command that prints nothing for --idle-timeout is typed at: ESC twice, the
--idle-prompt, return. There is no ESC while an entry is in flight in the inbox
that HEARTBEAT_INBOX names, since it would cut the work off.

Variables by which a session started inside another one takes itself for its
child, and CI, are not passed on.`),
		Usage: []string{"[flags] -- COMMAND [ARGUMENT...]"},
		Example: `heartbeat-launch --timeout 2h -- claude "Read CLAUDE.md"
heartbeat-launch --cwd work --exit-signal work/.exit-signal -- claude "Read CLAUDE.md"
heartbeat-launch --timeout 0 --idle-timeout 10m -- claude --continue > session.log`,
		Flags: (&launch{}).set(),
		Status: `the command's own; 128+n when it died of signal n.

0 after --exit-signal, 124 after --timeout, 125 when it stayed idle, 126 when it
cannot be run, 127 when it is not found, 128+n after signal n to heartbeat-launch,
1 wrong usage, or no terminal to be had, with a sentence on stderr.`,
		Environment: []cli.Item{{Name: cli.InboxVariable, What: "the inbox whose entry in flight is not to be cut off"}},
		SeeAlso:     []string{"heartbeat-stop"},
	}
}
