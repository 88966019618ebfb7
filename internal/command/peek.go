package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"heartbeat/internal/cli"
	"io"
	"strings"

	"heartbeat/internal/words"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
)

type peekFlags struct {
	cli.InboxFlags
	count int
}

func peekVerb() cli.Verb {
	return cli.Verb{
		Name:  "peek",
		Short: "show the entries that are delivered next",
		Long: `Show the entries that are delivered next, one a line: its place in the queue, its
offset in the inbox, its name, what is special about it, and how its text begins.
What is too long, empty or expired becomes a dead letter when its turn comes; a
torn one has no newline yet. Nothing is taken. The entry in flight is not among
them: see status.

Exit status: 0 shown, also where nothing waits; 1 the inbox cannot be read.`,
		Example: `heartbeat peek --inbox work/inbox.jsonl
heartbeat peek --inbox work/inbox.jsonl -n 1 --json | jq -r .text`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o peekFlags
			f := cli.NewFlags("peek")
			o.Add(f)
			f.IntVarP(&o.count, "count", "n", 10, "show the next `N` (0: all)")
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				if o.count < 0 {
					return cli.Usage(errNegativeCount)
				}
				return o.run(s)
			}
		},
	}
}

// peeked is what peek prints with --json.
type peeked struct {
	EntryID  string                     `json:"entry_id"`
	ID       string                     `json:"id,omitempty"`
	Start    int64                      `json:"start_offset"`
	End      int64                      `json:"end_offset"`
	Attempt  int                        `json:"attempt"` // which delivery it would be
	Text     string                     `json:"text"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	TooLong  bool                       `json:"too_long,omitempty"`
	Empty    bool                       `json:"empty,omitempty"`
	Expired  bool                       `json:"expired,omitempty"`
	Torn     bool                       `json:"torn,omitempty"`
}

func (o *peekFlags) run(s cli.Streams) (err error) {
	box, err := o.Look(s)
	if err != nil {
		return err
	}
	v, err := box.View()
	if err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	out := bufio.NewWriter(s.Out)
	position := 0
	var broken error
	err = v.Waits(nil, func(w inbox.Waiting) bool {
		position++
		broken = o.show(out, position, w)
		return broken == nil && position != o.count
	})
	if err = errors.Join(err, broken, out.Flush()); err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	switch {
	case position > 0:
	case v.Size() < 0:
		s.Note("nothing waits: there is no %s yet", box.Path())
	default:
		s.Note("nothing waits in %s", box.Path())
	}
	return nil
}

func (o *peekFlags) show(out io.Writer, position int, w inbox.Waiting) error {
	if o.JSON {
		return cli.PrintJSON(out, peeked{
			w.EntryID, w.ID, w.Start, w.End, w.Attempt, w.Text, w.Metadata, w.TooLong, w.Empty, w.Expired, w.Torn,
		})
	}
	line := fmt.Sprintf("%3d  %10d  %s", position, w.Start, words.Name(w.ID, w.EntryID))
	if facts := special(w); len(facts) > 0 {
		line += "  " + strings.Join(facts, ", ")
	}
	if text := words.Brief(w.Text); text != "" {
		line += ": " + text
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// special is what is to be known of an entry before its turn comes.
func special(w inbox.Waiting) (facts []string) {
	if w.Attempt > 1 {
		facts = append(facts, fmt.Sprintf("attempt %d", w.Attempt))
	}
	if at := w.SentAt(); !at.IsZero() {
		facts = append(facts, "sent "+words.Stamp(at))
	}
	flags := []struct {
		is   bool
		name string
	}{{w.TooLong, "too long"}, {w.Empty, "empty"}, {w.Expired, "expired"}, {w.Torn, "torn"}}
	for _, f := range flags {
		if f.is {
			facts = append(facts, f.name)
		}
	}
	return facts
}
