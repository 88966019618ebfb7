package command

import (
	"errors"
	"fmt"
	"heartbeat/internal/cli"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
)

// What dead-letter does with letters.
const (
	listLetter    = "list"
	showLetter    = "show"
	requeueLetter = "requeue"
	purgeLetter   = "purge"
)

type letterFlags struct {
	cli.InboxFlags
	all, openOnly, requeued, yes bool
	settle                       cli.Span
	verbatim
}

func deadLetterVerb() cli.Verb {
	return cli.Verb{
		Name:  "dead-letter",
		Args:  "list|show|requeue|purge [LETTER...]",
		Words: letterWords(),
		IDs:   letterIDs,
		Short: "look at what was set aside, put it back, throw it away",
		Long: `Deal with the dead letters: the entries that were set aside.

list     shows one line for each; with --open only those that were not requeued
show     shows all there is of a letter, and its text in full (--raw: at a
         terminal byte for byte, too)
requeue  appends the original bytes to the end of the inbox, and marks the letter
purge    throws letters away for good

LETTER is a letter's name as list has it, the id that its sender gave the entry,
its entry_id, or a beginning of one of these (at least four characters). Each
letter is requeued whole or not at all, whatever is killed, and only once. One
that would be set aside again is refused: it is too long, empty or expired.

Exit status: 0 done, also where there was nothing to do; 1 not done: no such
letter, more than one of that name, one that cannot be requeued, or purge was not
confirmed. What was done before that is printed.`,
		Example: `heartbeat dead-letter list --inbox work/inbox.jsonl --open
heartbeat dead-letter requeue --inbox work/inbox.jsonl job-17
heartbeat dead-letter purge --inbox work/inbox.jsonl --requeued --yes`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o letterFlags
			f := cli.NewFlags("dead-letter")
			o.Add(f)
			o.settle = cli.Span(cli.DefaultSettle)
			f.BoolVar(&o.all, "all", false, "requeue, purge: all letters")
			f.BoolVar(&o.openOnly, "open", false, "list: only those that were not requeued")
			f.BoolVar(&o.requeued, "requeued", false, "purge: those that were requeued")
			f.BoolVar(&o.yes, "yes", false, "purge: without asking")
			f.Var(&o.settle, "settle", "requeue: how long a last line without newline must stand still before it gets one")
			o.addRaw(f)
			return f, func(args []string, s cli.Streams) error {
				if err := o.check(f, args); err != nil {
					return cli.Usage(err)
				}
				return o.run(args[0], args[1:], s)
			}
		},
	}
}

func letterWords() []string { return []string{listLetter, showLetter, requeueLetter, purgeLetter} }

// check refuses what would not do what it seems to say.
func (o *letterFlags) check(f *pflag.FlagSet, args []string) error {
	if len(args) == 0 || !slices.Contains(letterWords(), args[0]) {
		return fmt.Errorf("say what to do: %s", strings.Join(letterWords(), ", "))
	}
	what, letters := args[0], len(args) > 1
	for flag, of := range map[string][]string{
		"all": {requeueLetter, purgeLetter}, "open": {listLetter}, "requeued": {purgeLetter}, "yes": {purgeLetter}, "settle": {requeueLetter}, "raw": {showLetter},
	} {
		if f.Changed(flag) && !slices.Contains(of, what) {
			return fmt.Errorf("--%s is not for %s: it is for %s", flag, what, strings.Join(of, " and "))
		}
	}
	switch {
	case what == listLetter && letters:
		return errors.New("list shows all of them: dead-letter show takes a LETTER")
	case what == listLetter:
		return nil
	case o.all && o.requeued:
		return errors.New("--all and --requeued: one of them is enough")
	case (o.all || o.requeued) && letters:
		return errors.New("both a LETTER and --all or --requeued: one of them is enough")
	case !o.all && !o.requeued && !letters:
		return fmt.Errorf("say which: dead-letter list shows the letters that %s may be about", what)
	}
	return nil
}

func (o *letterFlags) run(what string, words []string, s cli.Streams) error {
	var err error
	switch what {
	case listLetter:
		err = o.list(s)
	case showLetter:
		err = o.show(words, s)
	case requeueLetter:
		err = o.requeue(words, s)
	case purgeLetter:
		err = o.purge(words, s)
	}
	if err != nil {
		return fmt.Errorf("dead-letter: %w", err)
	}
	return nil
}

// chooseLetters are the letters that the words name, each once. With again, of
// several letters of one entry the only one is meant that was not requeued yet.
func chooseLetters(words []string, all []inbox.Letter, again bool) (chosen []inbox.Letter, err error) {
	for _, word := range words {
		found := resolve(word, all, func(l inbox.Letter) names { return names{l.ID, []string{l.Letter, l.EntryID}} })
		if open := slices.DeleteFunc(slices.Clone(found), isRequeued); again && oneEntry(found) && len(open) == 1 {
			found = open
		}
		switch len(found) {
		case 0:
			return nil, fmt.Errorf("no letter is called %q: heartbeat dead-letter list shows them", word)
		case 1:
			if !slices.ContainsFunc(chosen, func(l inbox.Letter) bool { return l.Letter == found[0].Letter }) {
				chosen = append(chosen, found[0])
			}
		default:
			return nil, fmt.Errorf("%q may be any of %d letters: name one of %s", word, len(found), someNames(found))
		}
	}
	return chosen, nil
}

func isRequeued(l inbox.Letter) bool { return l.RequeuedAt != nil }

// oneEntry reports whether the letters are of an entry that became one more than
// once.
func oneEntry(all []inbox.Letter) bool {
	other := func(l inbox.Letter) bool {
		return l.EntryID != all[0].EntryID && (l.ID == "" || l.ID != all[0].ID)
	}
	return !slices.ContainsFunc(all, other)
}

// maxNamed is how many letters are named where a word may mean any of them.
const maxNamed = 5

func someNames(letters []inbox.Letter) string {
	var list []string
	for _, l := range letters[:min(len(letters), maxNamed)] {
		list = append(list, l.Letter)
	}
	if len(letters) > maxNamed {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}
