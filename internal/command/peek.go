package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/command/history"
	"heartbeat/internal/money/account"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

type peekFlags struct {
	cli.InboxFlags
	shownFlags
	count int
}

var peekVerb = cli.Verb{
	Name:  "peek",
	Short: "show the entries that are delivered next",
	Long: `Show the entries that are delivered next, one a line: its place in the queue, its
offset in the inbox, its name, when it was sent, what is special about it, and how
its text begins. An entry that is too long, empty or expired becomes a dead letter when
its turn comes; a torn one has no newline yet. Nothing is taken. The entry in flight is
not among them: see status.

Exit status: 0 shown, also where nothing waits; 1 the inbox cannot be read.`,
	Example: `heartbeat peek
heartbeat peek -n 1 --json | jq -r .text`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o peekFlags
		o.Add(f)
		cli.AddCount(f, &o.count, 10, "show the next `N` (0: all)")
		o.addColor(f)
		return onInbox("", o.OpenRead, cli.NoArgs, o.run)
	},
}

// peeked is what peek prints with --json.
type peeked struct {
	EntryID  string                     `json:"entry_id"`
	ID       string                     `json:"id,omitempty"`
	Start    int64                      `json:"start_offset"`
	End      int64                      `json:"end_offset"`
	Attempt  int                        `json:"attempt"` // of the delivery to come
	Text     string                     `json:"text"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	TooLong  bool                       `json:"too_long,omitempty"`
	Empty    bool                       `json:"empty,omitempty"`
	Expired  bool                       `json:"expired,omitempty"`
	Torn     bool                       `json:"torn,omitempty"` // it has no newline yet
	Limits   bool                       `json:"invalid_limits,omitempty"`
	Wide     bool                       `json:"not_utf8,omitempty"`
}

func (o *peekFlags) run(box *inbox.Inbox, _ []string, s cli.Streams) (err error) {
	v, err := box.View()
	if err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	l := o.display(s.Out).list(
		number("#"), number("OFFSET"),
		layout.Column{Title: "ENTRY", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "SENT", IfAny: true},
		layout.Column{Title: "NOTE", IfAny: true, Style: func(string) layout.Style { return layout.Yellow }},
		layout.Column{Title: "TEXT", Text: true, Cut: true},
	)
	lines := bufio.NewWriter(s.Out) // with --json
	position := 0
	err = v.Waits(nil, func(w inbox.Waiting) bool {
		position++
		invalid := recovery.InvalidLimits(w.Entry, account.Of(v).IsRaised) != nil
		if o.JSON {
			l.err = cli.PrintJSON(lines, peeked{
				w.EntryID, w.ID, w.Start, w.End, w.Attempt, w.Text, w.Metadata,
				w.Doomed == inbox.ReasonTooLong, w.Doomed == inbox.ReasonEmpty, w.Doomed == inbox.ReasonExpired, w.Torn, invalid, w.Doomed == inbox.ReasonWide,
			})
		} else {
			l.row(strconv.Itoa(position), strconv.FormatInt(w.Start, 10), words.Name(w.ID, w.EntryID), l.when(w.SentAt()),
				strings.Join(history.Special(w, invalid), ", "), words.Brief(w.Text))
		}
		return l.err == nil && position != o.count
	})
	if err = errors.Join(err, lines.Flush(), l.end()); err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	if position == 0 {
		noteNothing(&o.InboxFlags, s, "waits", box)
	}
	return nil
}
