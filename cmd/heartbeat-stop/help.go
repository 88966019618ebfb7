package main

import (
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

const commandName = "heartbeat-stop"

func hookPage(flags *pflag.FlagSet) cli.Page {
	var items []cli.Item
	var pages []string
	for _, v := range verbs() {
		items = append(items, cli.Item{Name: v.name, What: v.short})
		pages = append(pages, v.page(nil).ManualName())
	}
	return cli.Page{
		Command: commandName,
		Short:   "a Claude Code Stop hook that works through an inbox",
		Long: `heartbeat-stop delivers the next entry of a JSONL inbox after every turn of a
Claude Code session. Without a verb it is the Stop hook: the hook's JSON on
stdin, the decision on stdout (nothing: the stop is approved). With --rewake it
waits in the background, and wakes the idle session.`,
		Usage: []string{"--inbox PATH [flags]", "VERB [flags]"},
		Example: `heartbeat-stop install --inbox work/inbox.jsonl --scope project
heartbeat-stop send --inbox work/inbox.jsonl "summarise the open issues"
claude "Read CLAUDE.md"`,
		Verbs: items,
		Flags: flags,
		Status: `0 decided (an error approves the stop, with a sentence on stderr),
1 wrong usage or no input that could be read, 128+n ended by signal n while waiting; 2 only with --rewake, where
stderr is then the text of an entry, and wakes the session.`,
		Environment: inboxEnvironment(flags),
		FilesIntro:  "All beside the inbox, readable by you alone. Each inbox needs a directory of its own.",
		Files:       files(),
		SeeAlso:     pages,
	}
}

// inboxEnvironment is the variable that stands in for --inbox, where that is a flag.
func inboxEnvironment(flags *pflag.FlagSet) []cli.Item {
	if flags == nil || flags.Lookup("inbox") == nil {
		return nil
	}
	return []cli.Item{{Name: cli.InboxVariable, What: "the inbox, where --inbox does not name one"}}
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
		{Name: ".run-*.json", What: "what was made of a babysitter run, with a .state and a .lock"},
		{Name: ".inbox-journal", What: "what the others follow from: leave it alone"},
		{Name: ".inbox-lock", What: "the lock: leave it alone"},
	}
}

// page describes the verb; flags are those it was built with.
func (v verb) page(flags *pflag.FlagSet) cli.Page {
	long, status := cutStatus(v.long)
	return cli.Page{
		Command:     commandName + " " + v.name,
		Short:       v.short,
		Long:        long,
		Usage:       []string{strings.TrimSpace("[flags] " + v.args)},
		Example:     v.example,
		Flags:       flags,
		Status:      status,
		Environment: inboxEnvironment(flags),
		SeeAlso:     []string{commandName},
	}
}

// cutStatus takes the paragraph about the exit status out of a verb's long text,
// since it has a place of its own. A verb that has nothing to add has none.
func cutStatus(long string) (rest, status string) {
	before, after, found := strings.Cut(long, "\n\n"+cli.StatusTitle)
	if !found {
		return long, "0 done, 1 not done, with a sentence on stderr."
	}
	status, more, found := strings.Cut(after, "\n\n")
	if found {
		before += "\n\n" + more
	}
	return before, status
}
