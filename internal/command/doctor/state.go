package doctor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// recheckDelay is how long to wait before invalid state is read a second time: a hook
// may be writing it, and doctor takes no lock.
const recheckDelay = 50 * time.Millisecond

// checkState looks for state that the hook would refuse.
func checkState(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	var all []Check
	var read []string
	for _, f := range []struct {
		name, fix string
		limit     int64
		valid     func(path string, content []byte) error
	}{
		{offsetFile, "put the offset to read from into %s, or remove it to read from the start", inbox.MaxOffsetFile, validOffset},
		{inFlightFile, "look into %s; to give that entry up, remove it", inbox.MaxInFlightFile, validDelivery},
		{journalFile, "move %s away: the state goes on from the other files", maxState, e.validJournal},
	} {
		path := e.beside(f.name)
		err := lookTwice(path, f.limit, f.valid)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, errElsewhere):
			all = append(all, fail("state", "give each inbox a directory of its own", "%v", err))
		case err != nil:
			all = append(all, fail("state", fmt.Sprintf(f.fix, path), "%v", err))
		default:
			read = append(read, f.name)
		}
	}
	if len(all) == 0 {
		all = append(all, ok("state", "valid: %s", listed(read)))
	}
	return all
}

func listed(names []string) string {
	if len(names) == 0 {
		return "there is none yet"
	}
	return quote(names...)
}

func lookTwice(path string, limit int64, valid func(string, []byte) error) error {
	look := func() error {
		content, err := disk.ReadState(path, limit)
		if err == nil {
			err = valid(path, content)
		}
		return err
	}
	err := look()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	time.Sleep(recheckDelay)
	return look()
}

func validOffset(path string, content []byte) error {
	if _, err := strconv.ParseUint(string(bytes.TrimSpace(content)), 10, 63); err != nil {
		return fmt.Errorf("read %s: %q is no byte offset, and every stop is approved", path, content[:min(40, len(content))])
	}
	return nil
}

func validDelivery(path string, content []byte) error {
	m, err := flat.Parse(content)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for _, name := range []string{"entry_id", "start_offset", "end_offset", "raw_line", "delivered_at"} {
		if !m.Has(name) {
			return fmt.Errorf("read %s: it has no %s", path, name)
		}
	}
	return nil
}

// errElsewhere says that the directory belongs to another inbox.
var errElsewhere = errors.New("it belongs to another inbox")

// validJournal checks the last record, and whether it is of this inbox. An inbox that
// is gone and left nothing in flight was renamed.
func (e *examination) validJournal(path string, content []byte) error {
	record, lines := lastRecord(bytes.TrimRight(content, "\x00"))
	if record == nil {
		if lines > 1 {
			return fmt.Errorf("read %s: no record in it is valid, and every stop is approved", path)
		}
		return nil // the first commit was never finished
	}
	inbox := record.String("inbox")
	if inbox == "" || inbox == filepath.Base(e.inbox) {
		return nil
	}
	_, err := os.Lstat(e.beside(inbox))
	if err == nil || record.Has("in_flight") || record.Has("redeliver") {
		return fmt.Errorf("read %s: %w, %s, and is refused to %s", path, errElsewhere, inbox, filepath.Base(e.inbox))
	}
	return nil
}

// lastRecord returns the newest line with a right sum that is no follow mark.
func lastRecord(journal []byte) (record *flat.Members, lines int) {
	for len(journal) > 0 {
		end := bytes.LastIndexByte(journal, '\n')
		if end < 0 {
			return nil, lines
		}
		start := bytes.LastIndexByte(journal[:end], '\n') + 1
		lines++
		if sum, body, found := bytes.Cut(journal[start:end], []byte(" ")); found && len(sum) == 16 {
			hash := sha256.Sum256(body)
			m, err := flat.Parse(body)
			if err == nil && hex.EncodeToString(hash[:8]) == string(sum) && m.Has("inbox") {
				return m, lines
			}
		}
		journal = journal[:start]
	}
	return nil, lines
}
