package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Targets for an inbox of a million entries.
const (
	maxStatus = 500 * time.Millisecond
	maxPeek   = 20 * time.Millisecond
	maxLog    = 2 * time.Second
)

const peeked = 10

// sentID names the i-th entry of the batch.
func sentID(i int) string { return fmt.Sprintf("m-%07d", i) }

func sentText(i int) string { return fmt.Sprintf("question %07d of many", i) }

// rawEntry is a line that has no id of its own.
const rawEntry = "a line of plain text that some program has appended with no id of its own"

// rawID is the entry_id of that line.
func rawID() string {
	sum := sha256.Sum256([]byte(rawEntry))
	return hex.EncodeToString(sum[:])
}

// looks are the questions about the inbox. Those that add to it come last, so that the
// next round sees what they have added.
func (m *million) looks() []*look {
	added := 0
	verb := func(args ...string) func() []string {
		return func() []string { return append([]string{m.heartbeat, args[0], "--inbox", m.inbox}, args[1:]...) }
	}
	count := []string{"grep", "-c", ".", m.inbox}
	middle := sentID(m.n / 2)
	return []*look{
		{
			name: "`status --json`", argv: verb("status", "--json"), limit: maxStatus,
			beside: "`grep -c . FILE`", besideArgv: count,
			right: func(out []byte) error { return queued(out, m.n+added) },
		},
		{
			name: "`peek -n 10 --json`", argv: verb("peek", "-n", fmt.Sprint(peeked), "--json"), limit: maxPeek,
			beside: "`head FILE`", besideArgv: []string{"head", m.inbox}, right: firstOnes,
		},
		{
			name: "`log ID --json`", argv: verb("log", middle, "--json"), limit: maxLog,
			beside: "`grep -F ID FILE`", besideArgv: []string{"grep", "-F", middle, m.inbox},
			right: func(out []byte) error { return tellsOf(out, middle) },
		},
		{
			name: "`log ENTRY_ID --json`", argv: verb("log", rawID()[:12], "--json"), limit: maxLog,
			beside: "`sha256sum FILE`", besideArgv: []string{"sha256sum", m.inbox},
			right: func(out []byte) error { return tellsOf(out, rawID()) },
		},
		{
			name: "`metrics`", argv: verb("metrics"), limit: maxStatus,
			beside: "`grep -c . FILE`", besideArgv: count,
			right: func(out []byte) error { return gauge(out, m.n+added) },
		},
		{
			name: "`send --id`", beside: "`grep -F ID FILE`",
			argv: func() []string {
				return verb("send", "--id", sentID(m.n+added), sentText(m.n+added))()
			},
			besideArgv: []string{"sh", "-c", `grep -F "$1" "$2" || true`, "sh", "no such id", m.inbox},
			right: func(out []byte) error {
				want := sentID(m.n + added)
				added++
				if got := strings.TrimSpace(string(out)); got != want {
					return fmt.Errorf("it printed %.60q instead of %q", got, want)
				}
				return nil
			},
		},
	}
}

// queued reads what status prints.
func queued(stdout []byte, want int) error {
	var st struct{ Queued int }
	if err := json.Unmarshal(stdout, &st); err != nil {
		return fmt.Errorf("%w: %.200q", err, stdout)
	}
	if st.Queued != want {
		return fmt.Errorf("%d entries are queued, and it tells of %d", want, st.Queued)
	}
	return nil
}

// firstOnes reads what peek prints: a line for each entry.
func firstOnes(stdout []byte) error {
	n := 0
	for line := range bytes.Lines(stdout) {
		var e struct{ ID string }
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %.200q", err, line)
		}
		if want := sentID(n); e.ID != want {
			return fmt.Errorf("it tells of the entry %q where %q waits", e.ID, want)
		}
		n++
	}
	if n != peeked {
		return fmt.Errorf("it tells of %d entries instead of %d", n, peeked)
	}
	return nil
}

// tellsOf checks what log prints about an entry that waits.
func tellsOf(stdout []byte, name string) error {
	var e struct {
		Event   string
		ID      string
		EntryID string `json:"entry_id"`
	}
	if err := json.Unmarshal(stdout, &e); err != nil {
		return fmt.Errorf("%w: %.200q", err, stdout)
	}
	if e.Event != "queued" || e.ID != name && e.EntryID != name {
		return fmt.Errorf("it does not tell that %s is queued: %.200q", name, stdout)
	}
	return nil
}

var queuedGauge = regexp.MustCompile(`(?m)^heartbeat_queue_entries\{[^}]*\} (\S+)$`)

// gauge reads what metrics prints.
func gauge(stdout []byte, want int) error {
	found := queuedGauge.FindSubmatch(stdout)
	if found == nil {
		return fmt.Errorf("it does not tell what is queued: %.200q", stdout)
	}
	var got float64
	if _, err := fmt.Sscan(string(found[1]), &got); err != nil || got != float64(want) {
		return fmt.Errorf("%d entries are queued, and it tells of %s", want, found[1])
	}
	return nil
}

// writeBatch makes the file that n entries are sent from.
func writeBatch(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		fmt.Fprintf(w, `{"id":%q,"prompt":%q}`+"\n", sentID(i), sentText(i)) // Flush returns the error
	}
	return errors.Join(w.Flush(), f.Sync(), f.Close())
}

// sentInOrder checks that the inbox has n entries, and that send printed their ids.
func sentInOrder(inbox, ids string, n int) error {
	err := eachIs(ids, n, func(line string, i int) bool { return line == sentID(i) })
	if err == nil {
		err = eachIs(inbox, n, func(line string, i int) bool {
			return strings.HasPrefix(line, fmt.Sprintf(`{"id":%q,"prompt":%q,`, sentID(i), sentText(i)))
		})
	}
	return err
}

// eachIs checks that a file has n lines and that right accepts each.
func eachIs(path string, n int, right func(line string, i int) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, got := bufio.NewScanner(f), 0
	for ; lines.Scan(); got++ {
		if !right(lines.Text(), got) {
			return fmt.Errorf("%s, line %d: it is %.100q where %s belongs", path, got+1, lines.Text(), sentID(got))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got != n {
		return fmt.Errorf("%s: %d lines for %d entries", path, got, n)
	}
	return nil
}
