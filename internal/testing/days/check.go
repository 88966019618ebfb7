package days

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// greeting is the first prompt of each session.
const greeting = "say ready"

// id is the id of the i-th entry.
func id(i int) string { return fmt.Sprintf("entry-%08d", i) }

// filler makes each line about a kilobyte long.
var filler = strings.Repeat(" the quick brown fox jumps over the lazy dog", 22)

// prompt is the text of the entry with that id.
func prompt(id string) string { return "do " + id + ":" + filler }

// answer is the agent's reply to a text. Each entry has its own.
func answer(text string) string {
	head, _, _ := strings.Cut(text, ":")
	return "did " + strings.TrimPrefix(head, "do ")
}

func (d *Day) fill() (err error) {
	if err := os.Mkdir(filepath.Dir(d.Inbox()), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(d.Inbox(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	lines := json.NewEncoder(w)
	for i := range d.Entries {
		_ = lines.Encode(map[string]string{"id": id(i), "prompt": prompt(id(i))}) // Flush returns the error
	}
	return errors.Join(w.Flush(), f.Sync(), f.Close())
}

// check checks the promises in the inbox's files.
func (d *Day) check() error {
	again, err := d.checkResults()
	if err == nil {
		err = d.checkNoneLeft()
	}
	if err == nil {
		d.report.Redeliveries, err = d.countRedeliveries()
	}
	switch {
	case err != nil:
	case d.report.Redeliveries > d.report.Kills:
		err = fmt.Errorf("%d redeliveries for %d kills", d.report.Redeliveries, d.report.Kills)
	case again > d.report.Redeliveries:
		err = fmt.Errorf("the results tell of %d redeliveries, and the events of %d", again, d.report.Redeliveries)
	case len(d.said) > 0:
		err = fmt.Errorf("the hook complained, %d times, first: %s", len(d.said), d.said[0])
	}
	return err
}

// checkResults checks that there is one result for each entry, in order, with the
// entry's own answer. again counts the deliveries that were not an entry's first.
func (d *Day) checkResults() (again int, err error) {
	n := 0
	err = eachLine(d.file(".results.jsonl"), func(line []byte) error {
		var r struct {
			ID, Reply string
			Attempt   int
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if want := id(n); r.ID != want || r.Reply != answer(prompt(want)) {
			return fmt.Errorf("it is %q for the entry %q, where that of %q belongs", r.Reply, r.ID, want)
		}
		n++
		again += r.Attempt - 1
		return nil
	})
	if err == nil && n != d.Entries {
		err = fmt.Errorf("%d results for %d entries", n, d.Entries)
	}
	return again, err
}

// checkNoneLeft checks that no entry is in flight and none is a dead letter.
func (d *Day) checkNoneLeft() error {
	if _, err := os.Lstat(d.file(".in-flight")); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errors.New("an entry is still in flight"), err)
	}
	return eachLine(d.file(".dead-letter.jsonl"), func(line []byte) error {
		return fmt.Errorf("an entry became a dead letter: %.300s", line)
	})
}

func (d *Day) countRedeliveries() (n int, err error) {
	err = eachLine(d.file(".events.jsonl"), func(line []byte) error {
		var e struct{ Event string }
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Event == "redelivered" {
			n++
		}
		return nil
	})
	return n, err
}

// file is the path of a file beside the inbox.
func (d *Day) file(name string) string { return filepath.Join(filepath.Dir(d.Inbox()), name) }

// eachLine reads a file of lines. A missing file has none.
func eachLine(path string, f func(line []byte) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("read %s, line %d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
