package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/folder"
	hosting "heartbeat/internal/hosting/verbs"
)

const (
	// idsCommand is for the completion scripts alone; help does not list it.
	idsCommand = "__ids"

	// What a verb's arguments may name.
	entryIDs   = "entries"
	waitingIDs = "waiting"
	letterIDs  = "letters"

	// A person who presses Tab is waiting, and reads one screen at most.
	maxIDs  = 200
	maxHint = 60
)

// idHint is an id that a shell offers, and what it stands for.
type idHint struct{ id, hint string }

// printIDs is the hidden verb. It keeps silent about errors, since its output appears
// in the line that a person is typing.
func printIDs(args []string, s cli.Streams) {
	var path string
	f := cli.NewFlags(idsCommand)
	cli.AddInbox(f, &path)
	if f.Parse(args) != nil || f.NArg() != 1 {
		return
	}
	if f.Arg(0) == hosting.SessionIDs {
		fmt.Fprint(s.Out, formatIDs(listSessions()))
		return
	}
	box, err := cli.OpenAsOwner(expandWord(path), inbox.Options{})
	if err != nil {
		return
	}
	hints, err := listIDs(f.Arg(0), box)
	if err != nil {
		return
	}
	fmt.Fprint(s.Out, formatIDs(hints))
}

// expandWord expands a word as the shell will when the line is run. Completion scripts
// get it as it was typed.
func expandWord(word string) string {
	if rest, found := strings.CutPrefix(word, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return os.ExpandEnv(word)
}

// formatIDs returns a line for each id, with a tab and what it stands for. It leaves
// out ids that nobody can type.
func formatIDs(hints []idHint) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, h := range hints {
		if h.id == "" || seen[h.id] || strings.ContainsFunc(h.id, unprintable) {
			continue
		}
		seen[h.id] = true
		b.WriteString(h.id)
		if hint := formatHint(h.hint); hint != "" {
			b.WriteString("\t" + hint)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func formatHint(s string) string { return excerpt(s, maxHint) }

// excerpt is the beginning of a text's first line, without anything that a terminal
// would act on.
func excerpt(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	runes := []rune(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || unprintable(r) }), " "))
	if len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return string(runes)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// listIDs returns ids of a kind in the inbox, the most likely ones first.
func listIDs(kind string, box *inbox.Inbox) ([]idHint, error) {
	switch kind {
	case entryIDs:
		return listEntries(box)
	case waitingIDs:
		return listWaiting(box)
	case letterIDs:
		return listLetters(box)
	}
	return nil, fmt.Errorf("list ids: unknown kind %q: it is %s, %s or %s", kind, entryIDs, waitingIDs, letterIDs)
}

// listEntries returns the entry in flight, those that come next, and those that were
// answered last.
func listEntries(box *inbox.Inbox) (hints []idHint, err error) {
	v, err := box.View()
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if d := v.InFlight(); d != nil {
		hints = append(hints, idHint{nameOr(d.ID(), d.EntryID), "in flight: " + d.Text()})
	}
	queued, err := listQueued(v, maxIDs/2)
	if err != nil {
		return nil, err
	}
	hints = append(hints, queued...)
	answered, err := listAnswered(box)
	return append(hints, answered...), err
}

func listQueued(v *inbox.View, most int) (hints []idHint, err error) {
	waiting, err := v.Next(most)
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	for _, e := range waiting {
		hints = append(hints, idHint{nameOr(e.ID, e.EntryID), "queued: " + e.Text})
	}
	return hints, nil
}

// listWaiting returns the entries that can be canceled.
func listWaiting(box *inbox.Inbox) (hints []idHint, err error) {
	v, err := box.View()
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if hints, err = listQueued(v, maxIDs); err != nil {
		return nil, err
	}
	n := 0
	err = box.EachScheduled(func(s inbox.Scheduled) bool {
		hints = append(hints, idHint{s.ID, "scheduled: " + s.Text})
		n++
		return n < maxIDs
	})
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	return hints, nil
}

func listAnswered(box *inbox.Inbox) (hints []idHint, err error) {
	results, err := box.TailResults(maxIDs / 2)
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	defer func() { err = errors.Join(err, results.Close()) }()
	err = results.Lines(func(l []byte) {
		var r inbox.Result
		if json.Unmarshal(l, &r) == nil {
			hints = append(hints, idHint{nameOr(r.ID, r.EntryID), r.Answer()})
		}
	})
	slices.Reverse(hints)
	return hints, err
}

func listLetters(box *inbox.Inbox) (hints []idHint, err error) {
	var letters []inbox.Letter
	times := map[string]int{}
	_, err = box.EachLetter(func(l inbox.Letter) bool {
		if letters = append(letters, l); len(letters) == 2*maxIDs { // the last are shown
			letters = append(letters[:0], letters[maxIDs:]...)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	for _, l := range letters {
		times[l.ID]++
	}
	for _, l := range slices.Backward(letters) {
		name := l.Letter
		if l.ID != "" && times[l.ID] == 1 { // else it would name several
			name = l.ID
		}
		hints = append(hints, idHint{name, strings.TrimSuffix(fmt.Sprintf("%s: %s", l.Reason, l.RawLine.Text), ": ")})
	}
	return hints[:min(len(hints), maxIDs)], nil
}

// nameOr returns the sender's id of an entry, or else its entry id.
func nameOr(id, entryID string) string {
	if id != "" {
		return id
	}
	return entryID
}

// listSessions returns the sessions that this user hosts, those that run first.
func listSessions() (hints []idHint) {
	index, err := folder.UserIndex()
	if err != nil {
		return nil
	}
	all, _ := index.All() // what can be read will do
	var ended []idHint
	for _, f := range all {
		v, err := f.View()
		if err != nil {
			continue
		}
		hint := idHint{f.ID, string(v.Status)}
		if v.Status.Ended() {
			ended = append(ended, hint)
		} else {
			hints = append(hints, hint)
		}
	}
	hints = append(hints, ended...)
	return hints[:min(len(hints), maxIDs)]
}
