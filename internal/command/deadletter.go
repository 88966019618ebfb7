package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/history"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

type letterFlags struct {
	cli.InboxFlags
	shownFlags
	quietFlag
	verb                         string // of dead-letter
	all, openOnly, requeued, yes bool
	settle                       cli.Span
	limits                       price.Limits
	program.Verbatim
}

var deadLetterVerb = cli.Verb{
	Name:  "dead-letter",
	Args:  "list|show|requeue|accept|purge [LETTER...]",
	Short: "look at what was set aside, put it back, throw it away",
	Long: `Deal with the dead letters: the entries that were set aside.

LETTER is a letter's name as list has it, the id that its sender gave the entry,
its entry_id, or a beginning of one of these (at least four characters).`,
	Example: `heartbeat dead-letter list --open
heartbeat dead-letter requeue job-17
heartbeat dead-letter purge --requeued --yes`,
	Verbs: []cli.Verb{listLettersVerb, showLettersVerb, requeueLettersVerb, acceptLettersVerb, purgeLettersVerb},
}

var listLettersVerb = letterVerb(cli.Verb{
	Name:  "list",
	Short: "show one line for each letter",
	Long: `Show one line for each dead letter; with --open only those that somebody has yet to
deal with: they were neither requeued, accepted nor canceled, and no entry of the same
id was answered since.`,
	Example: "heartbeat dead-letter list --open",
}, (*letterFlags).list, func(o *letterFlags, f *pflag.FlagSet) {
	f.BoolVar(&o.openOnly, "open", false, "only those that somebody has yet to deal with")
	o.addColor(f)
})

var showLettersVerb = letterVerb(cli.Verb{
	Name:  "show",
	Args:  "LETTER...",
	IDs:   letterIDs,
	Short: "show all there is of a letter, and its text in full",
	Long: `Show all there is of a letter, and its text in full.

Exit status: 0 shown; 1 not: no such letter, or more than one of that name.`,
	Example: "heartbeat dead-letter show job-17",
}, (*letterFlags).show, (*letterFlags).AddRaw)

var requeueLettersVerb = letterVerb(cli.Verb{
	Name:  "requeue",
	Args:  "LETTER... | --all",
	IDs:   letterIDs,
	Short: "append letters to the inbox again",
	Long: `Append the original bytes of letters to the end of the inbox, and mark the letters.
An entry canceled before its time waits for that time again. Each is requeued whole
or not at all, whatever is killed, and only once. A letter that is too long, empty,
expired, or over_budget without a higher limit is refused. Costs are counted anew.

Exit status: 0 done, also if there was nothing to do; 1 not done: no such
letter, more than one of that name, or one that cannot be requeued. What was done
before that is printed.`,
	Example: `heartbeat dead-letter requeue job-17
heartbeat dead-letter requeue job-18 --max-cost 5`,
}, (*letterFlags).requeueOrAccept, func(o *letterFlags, f *pflag.FlagSet) {
	f.BoolVar(&o.all, "all", false, "all letters that were not requeued yet")
	cli.AddEntryLimits(f, &o.limits, "the entry may cost this many dollars, whatever the flags of the hook say")
	f.Var(&o.settle, "settle", "how long a last line without newline must stand still before it gets one")
	o.addQuiet(f, "letter")
})

var acceptLettersVerb = letterVerb(cli.Verb{
	Name:  "accept",
	Args:  "LETTER...",
	IDs:   letterIDs,
	Short: "make late replies the results of their entries",
	Long: `Make the late reply of a letter the result of its entry, and mark the letter. A
session may end its turn after the entry was set aside: what it said then is kept
with the letter, and show prints it. Read it first; nothing else makes it a result.

Exit status: 0 done; 1 not done: no such letter, more than one of that name, or it
has no late reply, was requeued or accepted, or has the id of another entry. What was
done before that is printed.`,
	Example: "heartbeat dead-letter accept job-17",
}, (*letterFlags).requeueOrAccept, func(o *letterFlags, f *pflag.FlagSet) { o.addQuiet(f, "letter") })

var purgeLettersVerb = letterVerb(cli.Verb{
	Name:  "purge",
	Args:  "LETTER... | --requeued | --all",
	IDs:   letterIDs,
	Short: "throw letters away for good",
	Long: `Throw letters away for good. At a terminal you are asked first.

Exit status: 0 done, also if there was nothing to do; 1 not done: no such
letter, more than one of that name, or it was not confirmed.`,
	Example: "heartbeat dead-letter purge --requeued --yes",
}, (*letterFlags).purge, func(o *letterFlags, f *pflag.FlagSet) {
	f.BoolVar(&o.all, "all", false, "all letters")
	f.BoolVar(&o.requeued, "requeued", false, "those that were requeued or accepted")
	f.BoolVar(&o.yes, "yes", false, "without asking")
	o.addQuiet(f, "letter")
})

// letterVerb gives v its action, the flags of all dead-letter verbs, and those that add declares.
func letterVerb(v cli.Verb, act func(*letterFlags, *inbox.Inbox, []string, cli.Streams) error, add func(*letterFlags, *pflag.FlagSet)) cli.Verb {
	v.Build = func(f *pflag.FlagSet) cli.Action {
		o := &letterFlags{verb: v.Name, settle: cli.Span(cli.DefaultSettle)}
		o.Add(f)
		add(o, f)
		return onInbox("dead-letter", o.open, o.check, func(box *inbox.Inbox, args []string, s cli.Streams) error { return act(o, box, args, s) })
	}
	return v
}

// open opens the inbox as the verb needs it. It refuses a purge that nobody has agreed to or can be asked about.
func (o *letterFlags) open(s cli.Streams) (*inbox.Inbox, error) {
	switch {
	case o.verb == "list" || o.verb == "show":
		return outcomesOf(&o.InboxFlags)(s)
	case o.verb == "purge" && !o.yes && !cli.IsTerminal(s.In):
		return nil, cli.Usage(errors.New("what is purged is gone for good, and nobody is there to be asked: add --yes"))
	}
	return mending(&o.InboxFlags)(s)
}

func (o *letterFlags) check(args []string) error {
	letters := len(args) > 0
	if err := o.checkQuiet(&o.InboxFlags); err != nil {
		return err
	}
	switch {
	case o.verb == "list":
		return nil
	case o.all && o.requeued:
		return errors.New("--all and --requeued: one of them is enough")
	case (o.all || o.requeued) && letters:
		return errors.New("both a LETTER and --all or --requeued: one of them is enough")
	case !o.all && !o.requeued && !letters:
		return fmt.Errorf("say which: heartbeat dead-letter list shows the letters that %s may be about", o.verb)
	}
	return nil
}

// everyLetter returns what visits all letters of an inbox, for chooseLetters.
func everyLetter(box *inbox.Inbox) func(func(inbox.Letter) bool) ([]string, error) {
	return func(visit func(inbox.Letter) bool) ([]string, error) { return outcomes.EachLetter(box, visit) }
}

// chooseLetters returns the letters that the words name, each once. With preferOpen, a name that several letters of one
// entry share means the letter that nobody dealt with yet.
func chooseLetters(words []string, preferOpen bool, each func(func(inbox.Letter) bool) ([]string, error), s cli.Streams) (chosen []inbox.Letter, err error) {
	var all []inbox.Letter
	more := false
	warnings, err := each(func(l inbox.Letter) bool {
		if history.MayBeNamed(words, letterNames(l)) {
			more = len(all) == mostChosen
			all = append(all, l)
		}
		return !more
	})
	s.Warn(warnings)
	switch {
	case err != nil:
		return nil, err
	case more:
		return nil, fmt.Errorf("more than %d letters are meant: name fewer at a time", mostChosen)
	}
	for _, word := range words {
		found := history.Resolve(word, all, letterNames)
		open := slices.DeleteFunc(slices.Clone(found), func(l inbox.Letter) bool { return !l.Open() })
		if preferOpen && oneEntry(found) && len(open) == 1 {
			found = open
		}
		switch len(found) {
		case 0:
			return nil, fmt.Errorf("no letter is called %.200q: heartbeat dead-letter list shows them", word)
		case 1:
			if !slices.ContainsFunc(chosen, func(l inbox.Letter) bool { return l.Letter == found[0].Letter }) {
				chosen = append(chosen, found[0])
			}
		default:
			var names []string
			for _, l := range found[:min(len(found), maxNamed)] {
				names = append(names, l.Letter)
			}
			if len(found) > maxNamed {
				names = append(names, "...")
			}
			return nil, fmt.Errorf("%.200q may be any of %d letters: name one of %s", word, len(found), strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

const (
	mostChosen = 10000 // bounds the letters that are held to choose among
	maxNamed   = 5     // bounds the letters that an error names for an ambiguous word
)

func letterNames(l inbox.Letter) history.Names {
	return history.Names{l.ID, l.Letter, l.EntryID}
}

func oneEntry(all []inbox.Letter) bool {
	other := func(l inbox.Letter) bool {
		return l.EntryID != all[0].EntryID && (l.ID == "" || l.ID != all[0].ID)
	}
	return !slices.ContainsFunc(all, other)
}

// purge chooses the letters before it asks, so letters that arrive meanwhile stay.
func (o *letterFlags) purge(box *inbox.Inbox, named []string, s cli.Streams) error {
	chosen, err := o.choosePurged(box, named, s)
	if err != nil {
		return err
	}
	if !o.yes && len(chosen) > 0 && !program.Agreed(fmt.Sprintf("throw %s away for good?", words.Count(len(chosen), "dead letter", "dead letters")), s) {
		return errors.New("nothing was purged")
	}
	purged, warnings, err := outcomes.Purge(context.Background(), box, chosen)
	s.Warn(warnings)
	if err != nil {
		return err
	}
	if len(purged) == 0 {
		noteNothing(&o.InboxFlags, s, "to purge", box)
	}
	out := bufio.NewWriter(s.Out)
	s.Out = out
	all := several{Streams: s, flags: &o.InboxFlags, quiet: o.quiet, done: purged}
	return cmp.Or(all.report(func(l inbox.Letter) string { return "purged " + l.Letter + " (" + nameOfLetter(l) + ")" }), doneUntold(out.Flush()))
}

func (o *letterFlags) choosePurged(box *inbox.Inbox, named []string, s cli.Streams) ([]inbox.Letter, error) {
	if !o.all && !o.requeued {
		return chooseLetters(named, false, everyLetter(box), s)
	}
	var chosen []inbox.Letter
	warnings, err := outcomes.EachLetter(box, func(l inbox.Letter) bool {
		if o.all || !l.Open() {
			if !o.JSON { // --json prints them whole; there may be a lot
				l.RawLine, l.LateReply, l.Metadata, l.Failure = inbox.RawLine{}, "", nil, nil
			}
			chosen = append(chosen, l)
		}
		return true
	})
	s.Warn(warnings)
	return chosen, err
}
