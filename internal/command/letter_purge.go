package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/words"
)

// purge chooses the letters before it asks, so letters that arrive meanwhile stay.
func (o *letterFlags) purge(named []string, s cli.Streams) error {
	if !o.yes && !cli.IsTerminal(s.In) {
		return cli.Usage(errors.New("what is purged is gone for good, and nobody is there to be asked: add --yes"))
	}
	box, err := o.Open()
	if err != nil {
		return err
	}
	// An empty transaction writes the letters that a killed command committed.
	if err := cli.InTransaction(box, s, func(*inbox.Tx) error { return nil }); err != nil {
		return err
	}
	chosen, err := o.choosePurged(box, named, s)
	if err != nil {
		return err
	}
	if !o.yes && len(chosen) > 0 && !program.Agreed(fmt.Sprintf("throw %s away for good?", words.Count(len(chosen), "dead letter", "dead letters")), s) {
		return errors.New("nothing was purged")
	}
	_, line := busy(s, "purging")
	purged, warnings, err := box.Purge(context.Background(), chosen)
	line.Stop()
	s.Warn(warnings)
	if err != nil {
		return err
	}
	if len(purged) == 0 {
		nothing(&o.InboxFlags, s, "to purge", box)
	}
	return o.reportPurged(purged, s)
}

func (o *letterFlags) choosePurged(box *inbox.Inbox, named []string, s cli.Streams) ([]inbox.Letter, error) {
	if !o.all && !o.requeued {
		return chooseLetters(named, false, box.EachLetter, s)
	}
	var chosen []inbox.Letter
	warnings, err := box.EachLetter(func(l inbox.Letter) bool {
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

func (o *letterFlags) reportPurged(letters []inbox.Letter, s cli.Streams) error {
	switch {
	case o.quiet:
		return nil
	case o.JSON:
		return printLetters(letters, s)
	}
	out := bufio.NewWriter(s.Out)
	for _, l := range letters {
		_, _ = fmt.Fprintf(out, "purged %s (%s)\n", l.Letter, nameOfLetter(l)) // Flush returns the error
	}
	return out.Flush()
}
