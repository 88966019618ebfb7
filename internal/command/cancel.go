package command

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/command/history"
	"heartbeat/internal/words"
)

type cancelFlags struct {
	cli.InboxFlags
	quietFlag
	all       bool
	olderThan cli.Span
	aged      bool // --older-than was given
}

var cancelVerb = cli.Verb{
	Name:  "cancel",
	Args:  "[ENTRY...]",
	IDs:   waitingIDs,
	Short: "take back entries that were not delivered yet",
	Long: `Take back entries that wait in the queue, were given back to it, or wait for their
time. Each becomes a dead letter, canceled, which dead-letter requeue puts back.
No byte of the inbox changes: what was canceled is passed over when its turn comes.
It is safe beside a live session and beside producers.

ENTRY is the id that its sender gave the entry, its entry_id, or a beginning of one
of these (at least four characters). Entries of the same text have one entry_id: name
one of them as ENTRY_ID@OFFSET, with the offset that peek shows. An entry in flight is
refused: a session works on it. With --older-than an entry without a sent_at, which only
send writes, stays.

Exit status: 0 done, also if --all or --older-than found nothing; 1 not all was
done: no such entry waits, more than one has that name, or it is in flight. What
was done before that is printed.`,
	Example: `heartbeat cancel job-17
heartbeat cancel --older-than 24h
heartbeat cancel --all --json | jq -r .id`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o cancelFlags
		o.Add(f)
		f.BoolVar(&o.all, "all", false, "cancel whatever waits")
		f.Var(&o.olderThan, "older-than", "cancel what was sent longer ago (seconds or a duration)")
		f.Lookup("older-than").DefValue = ""
		o.addQuiet(f, "entry")
		return onInbox("cancel", mending(&o.InboxFlags), func(args []string) error {
			o.aged = f.Changed("older-than")
			return o.check(args)
		}, o.run)
	},
}

func (o *cancelFlags) check(args []string) error {
	switch {
	case o.all && o.aged:
		return errors.New("--all and --older-than: one of them is enough")
	case (o.all || o.aged) && len(args) > 0:
		return errors.New("both an ENTRY and --all or --older-than: one of them is enough")
	case !o.all && !o.aged && len(args) == 0:
		return errors.New("say which: heartbeat peek shows the entries that wait")
	}
	return o.checkQuiet(&o.InboxFlags)
}

type waitingEntry struct {
	id, entryID string
	start       int64 // in the inbox
	scheduled   bool
	size        int64
}

// names adds the offset to the entry id, because entries of the same text share one.
func (w waitingEntry) names() history.Names {
	if w.scheduled {
		return history.Names{w.id, w.entryID}
	}
	return history.Names{w.id, w.entryID, fmt.Sprintf("%s@%d", w.entryID, w.start)}
}

// canceling is the state of one cancel command, which may need several transactions.
type canceling struct {
	*cancelFlags
	several
	left []waitingEntry
}

func (o *cancelFlags) run(box *inbox.Inbox, args []string, s cli.Streams) error {
	c := &canceling{cancelFlags: o, several: several{Streams: s, flags: &o.InboxFlags, quiet: o.quiet, box: box}}
	if err := c.choose(args); err != nil {
		return err
	}
	c.total = len(c.left)
	for len(c.left) > 0 {
		err := c.part()
		printed := c.report(func(l inbox.Letter) string {
			return fmt.Sprintf("canceled %s (letter %s)", words.Name(l.ID, l.EntryID), l.Letter)
		})
		if err != nil || printed != nil {
			return errors.Join(err, printed)
		}
	}
	if c.total == 0 {
		what := "waits"
		if o.aged {
			what = "known to be older than " + words.Took(time.Duration(o.olderThan)) + " waits"
		}
		noteNothing(&o.InboxFlags, s, what, box)
	}
	return c.verdict("entries were not canceled")
}

// choose selects the entries, without holding the lock.
func (c *canceling) choose(args []string) (err error) {
	v, err := c.box.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	var all []waitingEntry
	visit := func(e waitingEntry, sentAt func() time.Time) bool {
		meant := c.all
		switch {
		case len(args) > 0:
			meant = history.MayBeNamed(args, e.names())
		case c.aged:
			at := sentAt()
			meant = !at.IsZero() && time.Since(at) > time.Duration(c.olderThan)
		}
		if meant {
			all = append(all, e)
		}
		return true
	}
	err = errors.Join(v.Waits(nil, func(w inbox.Waiting) bool {
		return visit(waitingEntry{w.ID, w.EntryID, w.Start, false, w.End - w.Start}, w.SentAt)
	}), c.box.EachScheduled(func(s inbox.Scheduled) bool {
		return visit(waitingEntry{s.ID, s.EntryID, 0, true, int64(len(s.Text))}, s.SentAt)
	}))
	if err != nil || len(args) == 0 {
		c.left = all
		return err
	}
	return c.resolve(args, all, v)
}

func (c *canceling) resolve(args []string, all []waitingEntry, v *inbox.View) error {
	known := map[waitingEntry]bool{}
	for _, word := range args {
		found := history.Resolve(word, all, waitingEntry.names)
		switch len(found) {
		case 0:
			return notWaiting(word, v)
		case 1:
			if !known[found[0]] {
				known[found[0]] = true
				c.left = append(c.left, found[0])
			}
		default:
			return fmt.Errorf("%.200q may be any of %d entries that wait: name one by its whole id or entry_id, or by entry_id@offset if their texts are the same (heartbeat peek --json shows them)", word, len(found))
		}
	}
	return nil
}

func notWaiting(word string, v *inbox.View) error {
	if d := v.InFlight(); d != nil && len(history.Resolve(word, []*inbox.Delivery{d}, func(d *inbox.Delivery) history.Names { return history.Names{d.ID(), d.EntryID} })) > 0 {
		return fmt.Errorf("the entry %q is in flight: a session works on it, so it cannot be taken back: interrupt the session, or let it end, and run heartbeat recover", word)
	}
	if where, err := v.Find(word); err == nil && where[word] == inbox.FoundAnswered {
		return fmt.Errorf("the entry %q is answered already: heartbeat results %s shows the reply", word, words.Shell(word))
	}
	return fmt.Errorf("no entry that waits is called %.200q: heartbeat peek shows them, and heartbeat dead-letter list what was canceled or set aside", word)
}

const (
	// One commit cancels at most this much, so that others get the lock soon.
	cancelLines = 1000
	cancelBytes = 1 << 20
)

// part cancels as many entries as fit into one commit.
func (c *canceling) part() (err error) {
	var letters []inbox.Letter
	err = cli.InTransaction(c.box, c.Streams, func(tx *inbox.Tx) error {
		size := int64(0)
		for n := 0; len(c.left) > 0 && n < cancelLines && (n == 0 || size < cancelBytes); n++ {
			w := c.left[0]
			c.left = c.left[1:]
			letter, err := cancelOne(tx, w)
			if err != nil {
				c.refuse(w, tx, err)
				continue
			}
			size += w.size
			letters = append(letters, letter)
		}
		return tx.Commit()
	})
	if err == nil {
		c.done = letters
	}
	return err
}

func cancelOne(tx *inbox.Tx, w waitingEntry) (inbox.Letter, error) {
	if w.scheduled {
		return tx.CancelScheduled(w.entryID)
	}
	return tx.Cancel(w.entryID, w.start)
}

func (c *canceling) refuse(w waitingEntry, tx *inbox.Tx, why error) {
	name := cmp.Or(w.id, w.entryID)
	d := tx.InFlight()
	switch {
	case errors.Is(why, inbox.ErrNotWaiting) && d != nil && d.EntryID == w.entryID:
		why = fmt.Errorf("the entry %q was delivered just now, and is in flight: it cannot be taken back", name)
	case errors.Is(why, inbox.ErrNotWaiting) && w.scheduled:
		why = fmt.Errorf("the entry %q has come due just now, or somebody took it out: cancel it once more", name)
	case errors.Is(why, inbox.ErrTorn):
		why = fmt.Errorf("the entry %q is still being written: %w", name, why)
	default:
		why = fmt.Errorf("the entry %q is not canceled: %w", name, why)
	}
	c.several.refuse(why)
}
