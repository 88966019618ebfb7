package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/internal/disk"
)

// folder is a journal's directory.
type folder string

// errMoved says that a listed file is gone, so the journal has to be read again. A repair renames the files.
var errMoved = errors.New("it is listed, and is not there")

// damaged is why babysitter refuses a journal, and what helps. REPAIR in the remedy stands for the command.
type damaged struct{ why, remedy string }

func (d *damaged) Error() string { return d.why + ": " + d.remedy }

// A repair drops events that are not JSON or request something a second time, and numbers the rest anew.
// It keeps events that make no sense, and babysitter still refuses the journal.
const (
	repair  = "REPAIR mends it"
	remove  = "remove that file, and REPAIR mends the rest"
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
		number, rest, _ := strings.Cut(strings.TrimSuffix(name, ".json"), ".")
		ulid, _, _ := strings.Cut(rest, ".")
		seq, err := strconv.ParseUint(number, 10, 63) // only digits: nobody writes the other forms that babysitter reads
		switch next := uint64(len(names) + 1); {
		case err != nil || len(number) > 15 || ulid == "":
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

// Events that decide something. Other events only count.
const (
	runCreated      = "RUN_CREATED"
	runCompleted    = "RUN_COMPLETED"
	runFailed       = "RUN_FAILED"
	effectRequested = "EFFECT_REQUESTED"
	effectResolved  = "EFFECT_RESOLVED"
)

// event is one file of the journal. Like babysitter, this package ignores its checksum: people may have edited it.
type event struct {
	seq  int
	kind string // "" if babysitter does not know it
	at   time.Time
	data gjson.Result // empty if it is not an object
}

var errNoJSON = errors.New("it is not valid JSON, or cut off")

func parseEvent(seq int, text []byte) (event, error) {
	e := event{seq: seq}
	root, err := parse(text)
	switch {
	case err != nil:
		return e, err
	case root.Type == gjson.Null:
		return e, errors.New("it is null")
	case !root.IsObject():
		return e, nil // babysitter reads no type in it
	}
	e.kind, e.data = root.Get("type").Str, object(root.Get("data"))
	e.at, _ = time.Parse(time.RFC3339, root.Get("recordedAt").Str) // nothing depends on it
	return e, nil
}

// parse reads JSON as JavaScript does, which replaces bytes that are not UTF-8.
func parse(text []byte) (v gjson.Result, err error) {
	if !json.Valid(text) {
		return v, errNoJSON
	}
	return gjson.ParseBytes(bytes.ToValidUTF8(text, []byte("\uFFFD"))), nil
}

func parseObject(text []byte) (m gjson.Result, err error) {
	if m, err = parse(text); err == nil && !m.IsObject() {
		err = errors.New("not a JSON object")
	}
	return m, err
}

// object returns v if it is an object, else a value without members.
func object(v gjson.Result) gjson.Result {
	if !v.IsObject() {
		return gjson.Result{}
	}
	return v
}

// list returns the items of a list, nil for any other value.
func list(v gjson.Result) []gjson.Result {
	if !v.IsArray() {
		return nil
	}
	return v.Array()
}

// text returns a member that is a string, or "".
func (e event) text(name string) string { return e.data.Get(name).Str }

// effect reads an EFFECT_REQUESTED.
func (e event) effect() (x Effect, key string, err error) {
	for _, name := range []string{"effectId", "invocationKey", "stepId", "taskId", "taskDefRef"} {
		if e.text(name) == "" {
			return x, "", errors.New("it has no " + name)
		}
	}
	if e.data.Get("inputsRef").Exists() && e.text("inputsRef") == "" {
		return x, "", errors.New("its inputsRef is not a path")
	}
	labels := e.data.Get("labels")
	if labels.Exists() && !labels.IsArray() {
		return x, "", errors.New("its labels are not a list")
	}
	for _, l := range list(labels) {
		if l.Type != gjson.String {
			return x, "", errors.New("one of its labels is not a text")
		}
	}
	x = Effect{ID: e.text("effectId"), Seq: e.seq, Kind: e.text("kind"), Label: e.text("label"), RequestedAt: e.at}
	return x, e.text("invocationKey"), nil
}

// answer reads an EFFECT_RESOLVED.
func (e event) answer() (id string, status EffectStatus, err error) {
	if id = e.text("effectId"); id == "" {
		return "", Unknown, errors.New("it has no effectId")
	}
	switch e.text("status") {
	case "ok":
		status = ResolvedOK
	case "error":
		status = ResolvedError
	default:
		return "", Unknown, errors.New("its status is neither ok nor error")
	}
	for _, name := range []string{"resultRef", "stdoutRef", "stderrRef"} {
		// These values are true to JavaScript.
		if v := e.data.Get(name); v.Type == gjson.True || v.Type == gjson.JSON || v.Num != 0 {
			return "", Unknown, errors.New("its " + name + " is not a path")
		}
	}
	return id, status, nil
}
