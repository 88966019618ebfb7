package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"heartbeat/internal/disk"
)

// folder is a journal's directory.
type folder string

// errMoved says that a listed file is gone: the journal has to be read again. A repaired one has other names.
var errMoved = errors.New("it is listed, and is not there")

// damaged is why babysitter refuses a journal, and what helps.
type damaged struct{ why, remedy string }

func (d *damaged) Error() string { return d.why + ": " + d.remedy }

// run:repair-journal drops events that are not JSON or request something a second time, and numbers the rest anew.
// It keeps events that make no sense, and babysitter still refuses the journal.
const (
	repair  = "run:repair-journal mends it"
	remove  = "remove that file, and run:repair-journal mends the rest"
	restore = "restore it"
)

// names returns the names of the events, in the order in which babysitter reads them, and checks them as it does:
// SEQ.ULID.json, with SEQs from 1 without gaps, and rising ULIDs.
func (f folder) names() ([]string, error) {
	all, err := os.ReadDir(string(f)) // sorted
	if err != nil {
		return nil, err
	}
	var names []string
	last := ""
	for _, e := range all {
		name := e.Name()
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		seq, ulid, ok := splitName(name)
		switch next := len(names) + 1; {
		case !ok:
			return nil, &damaged{fmt.Sprintf("%s is not named SEQ.ULID.json", name), repair}
		case seq != next:
			return nil, &damaged{fmt.Sprintf("%s stands where the event with seq %d belongs", name, next), repair}
		case ulid <= last:
			return nil, &damaged{fmt.Sprintf("the ULID of %s (seq %d) is not behind that of the event before", name, seq), repair}
		}
		names, last = append(names, name), ulid
	}
	return names, nil
}

// splitName splits a name. Babysitter would also read other forms of a number, which nobody writes.
func splitName(name string) (seq int, ulid string, ok bool) {
	number, rest, _ := strings.Cut(strings.TrimSuffix(name, ".json"), ".")
	ulid, _, _ = strings.Cut(rest, ".")
	n, err := strconv.ParseUint(number, 10, 63) // only digits
	return int(n), ulid, err == nil && len(number) <= 15 && ulid != ""
}

// event reads and parses one event. The error matches [errMoved] if the journal changed meanwhile.
func (f folder) event(seq int, name string) (event, error) {
	path := filepath.Join(string(f), name)
	text, err := disk.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return event{}, fmt.Errorf("%s: %w", name, errMoved)
	}
	if err != nil {
		if info, unknown := disk.StatFile(path); unknown == nil && (!info.IsRegular || info.Size > maxFile) {
			err = &damaged{name + " is not a file of text, or has over 64 MiB", remove}
		}
		return event{}, err
	}
	e, err := parseEvent(seq, text)
	if err != nil {
		err = fault(seq, name, err)
	}
	return e, err
}

func fault(seq int, name string, why error) error {
	remedy := remove
	if errors.Is(why, errNoJSON) || errors.Is(why, errTwice) {
		remedy = repair
	}
	return &damaged{fmt.Sprintf("%s (seq %d): %s", name, seq, why), remedy}
}
