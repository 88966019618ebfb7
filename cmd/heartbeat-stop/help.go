package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// page is what there is to say of the command or of one of its verbs. Its help
// and its manual page are both made from it.
type page struct {
	command string // as one types it: heartbeat-stop, heartbeat-stop send
	short   string
	long    string
	usage   []string // what follows the command, a line for each way to call it
	example string
	verbs   []verb // of the command itself
	flags   *pflag.FlagSet
	status  string
	files   []file // of the command itself
}

// file is one that the command keeps beside the inbox.
type file struct{ name, what string }

const (
	commandName = "heartbeat-stop"
	statusTitle = "Exit status: "
)

func hookPage(flags *pflag.FlagSet) page {
	return page{
		command: commandName,
		short:   "a Claude Code Stop hook that works through an inbox",
		long: `heartbeat-stop delivers the next entry of a JSONL inbox after every turn of a
Claude Code session. Without a verb it is the Stop hook: the hook's JSON on
stdin, the decision on stdout (nothing: the stop is approved). With --rewake it
waits in the background, and wakes the idle session.`,
		usage: []string{"--inbox PATH [flags]", "VERB [flags]"},
		example: `heartbeat-stop install --inbox work/inbox.jsonl --scope project
heartbeat-stop send --inbox work/inbox.jsonl "summarise the open issues"
claude "Read CLAUDE.md"`,
		verbs: verbs(),
		flags: flags,
		status: `0 decided (an error approves the stop, with a sentence on stderr),
1 wrong usage, 128+n ended by signal n while waiting; 2 only with --rewake, where
stderr is then the text of an entry, and wakes the session.`,
		files: files(),
	}
}

func files() []file {
	return []file{
		{".inbox-offset", "the cursor: everything before this byte was settled"},
		{".in-flight", "the entry in flight, as JSON"},
		{".responded", "there while an entry is in flight"},
		{".results.jsonl", "one line for each answered entry; rotate it as you like"},
		{".dead-letter.jsonl", "one line for each entry that was set aside; rotate it as you like"},
		{".events.jsonl", "one line for what is rare: pauses, redeliveries, sessions; rotate it as you like"},
		{".scheduled.jsonl", "the entries that wait for their time; remove a line to call one off"},
		{".dead-letter-*.raw", "the bytes of a line over 64 MiB"},
		{".woken-*.txt", "the text in flight that is too long to wake a session with"},
		{".inbox-journal", "what the others follow from: leave it alone"},
		{".inbox-lock", "the lock: leave it alone"},
	}
}

// page describes the verb; flags are those it was built with.
func (v verb) page(flags *pflag.FlagSet) page {
	long, status := cutStatus(v.long)
	return page{
		command: commandName + " " + v.name,
		short:   v.short,
		long:    long,
		usage:   []string{strings.TrimSpace("[flags] " + v.args)},
		example: v.example,
		flags:   flags,
		status:  status,
	}
}

// cutStatus takes the paragraph about the exit status out of a verb's long text,
// since it has a place of its own. A verb that has nothing to add has none.
func cutStatus(long string) (rest, status string) {
	before, after, found := strings.Cut(long, "\n\n"+statusTitle)
	if !found {
		return long, "0 done, 1 not done, with a sentence on stderr."
	}
	status, more, found := strings.Cut(after, "\n\n")
	if found {
		before += "\n\n" + more
	}
	return before, status
}

// help is the page as --help shows it.
func (p page) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", p.long)
	for _, u := range p.usage {
		fmt.Fprintf(&b, "  %s %s\n", p.command, u)
	}
	fmt.Fprintf(&b, "\nExample:\n%s\n", indent(p.example))
	title := "Flags:"
	if len(p.verbs) > 0 {
		b.WriteString("\nVerbs:\n")
		for _, v := range p.verbs {
			fmt.Fprintf(&b, "  %-12s%s\n", v.name, v.short)
		}
		title = "Flags of the hook:"
	}
	fmt.Fprintf(&b, "\n%s\n%s\n%s%s\n", title, p.flags.FlagUsages(), statusTitle, p.status)
	return b.String()
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}
