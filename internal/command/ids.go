package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/history"
)

const (
	// What a verb's arguments may name.
	entryIDs   = "entries"
	waitingIDs = "waiting"
	letterIDs  = "letters"

	// A person who presses Tab is waiting, and reads one screen at most.
	maxIDs = 200
)

// listIDs returns ids of a kind in the inbox that the line names, most likely first. It is silent about errors,
// because its output appears in the line that a person is typing.
func listIDs(kind string, flags *pflag.FlagSet) (hints []program.Hint) {
	path, err := flags.GetString("inbox")
	if err != nil {
		return nil
	}
	box, err := cli.OpenAsOwner(path, inbox.Options{})
	if err != nil {
		return nil
	}
	switch kind {
	case letterIDs:
		return listLetters(box)
	case waitingIDs:
		hints = listQueued(box, maxIDs, false)
		most := len(hints) + maxIDs
		_ = box.EachScheduled(func(s inbox.Scheduled) bool {
			hints = append(hints, program.Hint{ID: s.ID, What: "scheduled: " + s.Text})
			return len(hints) < most
		})
		return hints
	}
	hints = listQueued(box, maxIDs/2, true)
	open := len(hints)
	_, _ = history.Results(box).Each(maxIDs/2, func(r inbox.Result, _ []byte) {
		hints = append(hints, program.Hint{ID: cmp.Or(r.ID, r.EntryID), What: r.Answer()})
	})
	slices.Reverse(hints[open:]) // the last answer first
	return hints
}

// listQueued returns the entries that come next, with flying after the entry in flight.
func listQueued(box *inbox.Inbox, most int, flying bool) (hints []program.Hint) {
	v, err := box.View()
	if err != nil {
		return nil
	}
	defer v.Close() // only read
	if d := v.InFlight(); flying && d != nil {
		hints = append(hints, program.Hint{ID: cmp.Or(d.ID(), d.EntryID), What: "in flight: " + d.Text()})
	}
	waiting, _ := v.Next(most)
	for _, e := range waiting {
		hints = append(hints, program.Hint{ID: cmp.Or(e.ID, e.EntryID), What: "queued: " + e.Text})
	}
	return hints
}

func listLetters(box *inbox.Inbox) (hints []program.Hint) {
	var letters []inbox.Letter
	times := map[string]int{}
	_, _ = outcomes.EachLetter(box, func(l inbox.Letter) bool {
		if letters = append(letters, l); len(letters) == 2*maxIDs {
			letters = append(letters[:0], letters[maxIDs:]...)
		}
		return true
	})
	for _, l := range letters {
		times[l.ID]++
	}
	for _, l := range slices.Backward(letters) {
		name := l.Letter
		if l.ID != "" && times[l.ID] == 1 { // a repeated id names several letters
			name = l.ID
		}
		hints = append(hints, program.Hint{ID: name, What: strings.TrimSuffix(fmt.Sprintf("%s: %s", l.Reason, l.RawLine.Text), ": ")})
	}
	return hints[:min(len(hints), maxIDs)]
}
