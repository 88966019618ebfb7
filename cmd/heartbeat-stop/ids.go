package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"heartbeat/inbox"
)

const (
	// idsCommand is for the completion scripts alone; no list has it.
	idsCommand = "__ids"

	// What a verb's arguments may name.
	entryIDs  = "entries"
	letterIDs = "letters"

	// Whoever presses Tab waits, and reads one screen at most.
	maxIDs  = 200
	idsTail = 4 << 20
	maxHint = 60
)

// idHint is an id that a shell offers, and what it stands for.
type idHint struct{ id, hint string }

// printIDs is the hidden verb. It says nothing of what goes wrong: its output is
// amid the line that somebody is typing.
func printIDs(args []string, s streams) {
	var path string
	f := newFlags(idsCommand)
	addInbox(f, &path)
	if f.Parse(args) != nil || f.NArg() != 1 {
		return
	}
	box, err := openInbox(expandWord(path), 0)
	if err != nil {
		return
	}
	hints, err := listIDs(f.Arg(0), box)
	if err != nil {
		return
	}
	fmt.Fprint(s.out, formatIDs(hints))
}

// expandWord does what the shell will do when the line is run: a script gets its
// words as they were typed.
func expandWord(word string) string {
	if rest, found := strings.CutPrefix(word, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return os.ExpandEnv(word)
}

// formatIDs is a line for each id, with a tab and what it stands for. An id that
// would disturb the terminal is left out: nobody can type it.
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

func formatHint(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	runes := []rune(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || unprintable(r) }), " "))
	if len(runes) > maxHint {
		return string(runes[:maxHint-3]) + "..."
	}
	return string(runes)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// listIDs are the newest ids of a kind in the inbox, the newest first.
func listIDs(kind string, box *inbox.Inbox) ([]idHint, error) {
	switch kind {
	case entryIDs:
		return readIDs(box.ResultsPath())
	case letterIDs:
		return readIDs(box.DeadLetterPath())
	}
	return nil, fmt.Errorf("list ids: unknown kind %q: it is %s or %s", kind, entryIDs, letterIDs)
}

// idLine is what a result and a dead letter have to say here.
type idLine struct {
	ID      string `json:"id"`
	EntryID string `json:"entry_id"`
	Reply   string `json:"reply"`
	Reason  string `json:"reason"`
	Text    string `json:"raw_line"`
}

func readIDs(path string) ([]idHint, error) {
	lines, err := lastLines(path)
	if err != nil {
		return nil, fmt.Errorf("list ids: %w", err)
	}
	var hints []idHint
	for i := len(lines) - 1; i >= 0 && len(hints) < maxIDs; i-- {
		var l idLine
		if json.Unmarshal(lines[i], &l) != nil {
			continue // torn, or not ours
		}
		hints = append(hints, l.idHint())
	}
	return hints, nil
}

func (l idLine) idHint() idHint {
	h := idHint{id: l.ID, hint: l.Reply}
	if h.id == "" {
		h.id = l.EntryID
	}
	if l.Reason != "" {
		h.hint = strings.TrimSuffix(l.Reason+": "+l.Text, ": ")
	}
	return h
}

// lastLines are the whole lines in a file's last part.
func lastLines(path string) ([][]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(path + " is not a file") // opening a FIFO would wait
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	start := max(0, info.Size()-idsTail)
	tail, err := io.ReadAll(io.NewSectionReader(file, start, idsTail))
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(tail, []byte("\n"))
	if start > 0 {
		lines = lines[1:] // begins before
	}
	return lines, nil
}
