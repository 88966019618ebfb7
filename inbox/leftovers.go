package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// leftovers names the files that a killed process may have left behind.
type leftovers struct {
	texts   []string // of long entries: an entry may still need its text
	copies  []string // of files that were being rewritten
	tries   bool     // triesName
	useless []string // half-written texts and notes
}

func (l leftovers) isEmpty() bool {
	return len(l.texts)+len(l.copies)+len(l.useless) == 0 && !l.tries
}

func (b *Inbox) leftovers() (l leftovers, err error) {
	all, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	for _, file := range all {
		name := file.Name()
		half, cut := strings.CutSuffix(name, ".tmp")
		switch {
		case !file.Type().IsRegular():
		case textName(name):
			l.texts = append(l.texts, name)
		case name == triesName:
			l.tries = true
		case cut && (textName(half) || half == triesName):
			l.useless = append(l.useless, name)
		case slices.ContainsFunc(journal.OutcomeKinds[:], func(k journal.Kind) bool { return name == k.Name()+journal.CopySuffix }):
			l.copies = append(l.copies, name)
		}
	}
	return l, err
}

// ForgetLeftovers removes what killed processes left beside the inbox: half-written files, and texts of long entries
// that no entry and no dead letter names. It searches without the lock, and removes nothing if somebody commits
// meanwhile: what remains does no harm, and the next call tries again.
func (b *Inbox) ForgetLeftovers(ctx context.Context) (err error) {
	left, err := b.leftovers()
	if err != nil || left.isEmpty() {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("remove what killed commands left in %s: %w", b.dir, err)
		}
	}()
	if _, err := b.MakeGood(ctx); err != nil {
		return err
	}
	unused, seq, err := b.unused(left)
	if err != nil {
		return err
	}
	t, err := b.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if t.st.Seq != seq {
		return nil
	}
	for _, name := range unused {
		err = errors.Join(err, disk.Remove(b.beside(name)))
	}
	for _, name := range left.copies {
		lock, failed := disk.AcquireLock(ctx, b.beside(name), time.Nanosecond)
		switch {
		case failed == nil:
			err = errors.Join(err, disk.Remove(b.beside(name)), lock.Release())
		case !errors.Is(failed, disk.ErrLocked): // else somebody is writing it
			err = errors.Join(err, failed)
		}
	}
	return err
}

// Leftovers returns the files that [Inbox.ForgetLeftovers] would remove, except copies and files that are
// being written. It takes no lock.
func (b *Inbox) Leftovers() (names []string, err error) {
	left, err := b.leftovers()
	if err == nil && !left.isEmpty() {
		names, _, err = b.unused(left)
	}
	return names, err
}

// unused returns the leftovers, except copies, that nothing needs as of the commit with that number. It returns none if
// that commit has not reached the files, or another followed.
func (b *Inbox) unused(left leftovers) (all []string, seq int64, err error) {
	v, err := b.View()
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	t := v.tx
	named, err := b.namedTexts(left.texts, t.st.Cursor)
	if err != nil {
		return nil, 0, err
	}
	if after, err := journal.Newest(b.path); err != nil || after.Seq != t.st.Seq || t.settling {
		return nil, 0, err
	}
	all = slices.Clone(left.useless)
	for _, name := range left.texts {
		if !named[name] && !t.inFlight.namesFile(name) && !t.redeliver.namesFile(name) {
			all = append(all, name)
		}
	}
	if left.tries {
		var note triesNote
		if note, err = t.readTries(); err == nil && (note.generation != t.st.QueueGeneration || note.start < t.st.Cursor) {
			all = append(all, triesName)
		}
	}
	return all, t.st.Seq, err
}

// namesFile reports whether the entry's text is in that file.
func (d *Delivery) namesFile(file string) bool {
	return d != nil && (d.TextFile == file || bytes.Contains(d.exact(), []byte(file)))
}

// namedTexts returns the texts that an open dead letter or a waiting entry names. A requeued entry is itself
// the envelope that names its text.
func (b *Inbox) namedTexts(texts []string, cursor int64) (map[string]bool, error) {
	named := map[string]bool{}
	if len(texts) == 0 {
		return named, nil
	}
	note := func(_, _ int64, l []byte, _ bool) bool {
		for _, name := range namesIn(l, texts) {
			named[name] = true
		}
		return true
	}
	if err := b.namedByLetters(texts, named); err != nil {
		return nil, err
	}
	if err := b.readLines(journal.Scheduled, 0, note); err != nil {
		return nil, err
	}
	queue, err := journal.OpenQueue(b.path)
	if queue == nil || err != nil {
		return named, inReading(err)
	}
	err = lines.Each(io.NewSectionReader(queue, cursor, max(0, queue.Info().Size-cursor)), cursor, note)
	return named, errors.Join(err, queue.Close())
}

func namesIn(l []byte, texts []string) (found []string) {
	if !bytes.Contains(l, []byte(textPrefix)) {
		return nil
	}
	for _, name := range texts {
		if bytes.Contains(l, []byte(name)) {
			found = append(found, name)
		}
	}
	return found
}

// namedByLetters notes the texts that open letters, or unreadable lines, name.
func (b *Inbox) namedByLetters(texts []string, named map[string]bool) error {
	of, closed := map[string][]string{}, map[string]bool{}
	err := b.readLines(journal.DeadLetters, 0, func(_, _ int64, l []byte, _ bool) bool {
		found := namesIn(l, texts)
		if found == nil && !bytes.Contains(l, []byte("requeued_at")) && !bytes.Contains(l, []byte("accepted_at")) {
			return true
		}
		letter, mark, _ := ParseLetter(l) // the name is empty if the line is no letter
		if mark {
			closed[letter.Letter] = closed[letter.Letter] || !letter.Open()
		} else {
			of[letter.Letter] = append(of[letter.Letter], found...)
		}
		return true
	})
	for letter, found := range of {
		for _, name := range found {
			named[name] = named[name] || !closed[letter]
		}
	}
	return err
}
