package hook

import (
	"heartbeat/internal/cli"
)

// Page returns the hook's help page.
func Page() cli.Page {
	flags := (&Flags{}).Set()
	return cli.Page{
		Command: CommandName,
		Long: `heartbeat-stop delivers the next entry of a JSONL inbox after every turn of a Claude
Code session. Claude Code calls it: it reads the hook's JSON on stdin, and prints the
decision on stdout (nothing: the stop is approved). With --rewake it waits in the
background, and wakes the idle session. "heartbeat install" writes it into the settings.`,
		Usage: []string{"--inbox PATH [flags]", "recover [flags]"},
		Example: `heartbeat install
heartbeat send "summarise the open issues"
claude "Say ready."`,
		Verbs: []cli.Group{{Title: "Verbs", Items: []cli.Item{
			{Name: "recover", What: "decide about an entry that a session left unanswered (as heartbeat recover does)"},
		}}},
		Flags: flags,
		Status: `0 decided (an error approves the stop, with a sentence on stderr),
1 wrong usage or no input that could be read, 128+n ended by signal n while waiting;
2 only with --rewake, where stderr is then the text of an entry, and wakes the session.`,
		FilesIntro: "All beside the inbox, readable by you alone. Each inbox needs a directory of its own.",
		Files:      files(),
	}
}

func files() []cli.Item {
	return []cli.Item{
		{Name: ".inbox-offset", What: "the cursor: everything before this byte was settled"},
		{Name: ".in-flight", What: "the entry in flight, as JSON"},
		{Name: ".responded", What: "there while an entry is in flight"},
		{Name: ".results.jsonl", What: "one line for each answered entry; rotate it as you like"},
		{Name: ".dead-letter.jsonl", What: "one line for each entry that was set aside; rotate it as you like"},
		{Name: ".events.jsonl", What: "one line for what is rare: pauses, redeliveries, sessions; rotate it as you like"},
		{Name: ".scheduled.jsonl", What: "the entries that wait for their time; remove a line to call one off"},
		{Name: ".dead-letter-*.raw", What: "the bytes of a line over 64 MiB"},
		{Name: ".woken-*.txt", What: "the text in flight that is too long to wake a session with"},
		{Name: ".run-*.json", What: "what was made of a babysitter run, with a .lock"},
		{Name: ".notified.json", What: "what a person was told (--notify); without it, the last day is told again"},
		{Name: ".inbox-journal", What: "what the others follow from: leave it alone"},
		{Name: ".inbox-lock", What: "the lock: leave it alone"},
	}
}
