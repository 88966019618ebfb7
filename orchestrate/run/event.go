package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"heartbeat/internal/flat"
)

// The events that decide something. Other events only count.
const (
	runCreated      = "RUN_CREATED"
	runCompleted    = "RUN_COMPLETED"
	runFailed       = "RUN_FAILED"
	effectRequested = "EFFECT_REQUESTED"
	effectResolved  = "EFFECT_RESOLVED"
)

// event is one file of the journal. Like babysitter, this package ignores the checksum in
// it: a person may have mended the file.
type event struct {
	seq  int
	kind string // "" if babysitter does not know it
	at   time.Time
	data *flat.Members // nil if it is not an object
	text []byte        // the whole file
}

var errNoJSON = errors.New("it is not valid JSON, or cut off")

func parseEvent(seq int, text []byte) (event, error) {
	e := event{seq: seq, text: text}
	if !json.Valid(text) {
		return e, errNoJSON
	}
	switch root := bytes.TrimLeft(text, " \t\r\n"); root[0] {
	case '{':
	case 'n':
		return e, errors.New("it is null")
	default:
		return e, nil // babysitter reads no type in it
	}
	m, err := flat.Parse(text)
	if err != nil {
		return e, err
	}
	e.kind, e.at = m.String("type"), stamp(m, "recordedAt")
	if data := m.Raw("data"); len(data) > 0 && data[0] == '{' {
		e.data, err = flat.Parse(data)
	}
	return e, err
}

// field reads a required text.
func (e event) field(name string) (string, error) {
	if e.data != nil && e.data.IsString(name) {
		if s := e.data.String(name); s != "" {
			return s, nil
		}
	}
	return "", errors.New("it has no " + name)
}

// reference reads an optional path.
func (e event) reference(name string) (string, error) {
	if e.data == nil || !e.data.Is(name) {
		return "", nil
	}
	s, err := e.field(name)
	if err != nil {
		return "", errors.New("its " + name + " is not a path")
	}
	return s, nil
}

// effect reads an EFFECT_REQUESTED.
func (e event) effect() (Effect, error) {
	x := Effect{Seq: e.seq, RequestedAt: e.at}
	var err error
	for _, f := range []struct {
		name string
		to   *string
	}{
		{"effectId", &x.ID}, {"invocationKey", &x.InvocationKey}, {"stepId", &x.StepID}, {"taskId", &x.TaskID}, {"taskDefRef", &x.TaskDefRef},
	} {
		if *f.to, err = e.field(f.name); err != nil {
			return x, err
		}
	}
	if x.InputsRef, err = e.reference("inputsRef"); err != nil {
		return x, err
	}
	x.Kind, x.Label = e.data.String("kind"), e.data.String("label")
	x.Labels, err = e.labels()
	return x, err
}

func (e event) labels() ([]string, error) {
	if !e.data.Is("labels") {
		return nil, nil
	}
	list := gjson.ParseBytes(e.data.Raw("labels"))
	if !list.IsArray() {
		return nil, errors.New("its labels are not a list")
	}
	var labels []string
	for _, l := range list.Array() {
		if l.Type != gjson.String {
			return nil, errors.New("one of its labels is not a text")
		}
		labels = appendNew(labels, strings.TrimFunc(flat.Text(l.Raw), isSpace))
	}
	return labels, nil
}

func appendNew(labels []string, label string) []string {
	if label == "" {
		return labels
	}
	for _, l := range labels {
		if l == label {
			return labels
		}
	}
	return append(labels, label)
}

// isSpace reports whether JavaScript trims r.
func isSpace(r rune) bool { return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r) }

// answer reads an EFFECT_RESOLVED.
func (e event) answer() (id string, ok bool, err error) {
	if id, err = e.field("effectId"); err != nil {
		return "", false, err
	}
	status := e.data.String("status")
	if status != "ok" && status != "error" {
		return "", false, errors.New("its status is neither ok nor error")
	}
	for _, name := range []string{"resultRef", "stdoutRef", "stderrRef"} {
		if !e.data.IsString(name) && isTrue(e.data.Raw(name)) {
			return "", false, errors.New("its " + name + " is not a path")
		}
	}
	return id, status == "ok", nil
}

// isTrue reports whether JavaScript takes a JSON value that is not a string for true.
func isTrue(value []byte) bool {
	v := gjson.ParseBytes(value)
	return v.Type == gjson.True || v.Type == gjson.JSON || v.Type == gjson.Number && v.Num != 0
}

// failure reads a RUN_FAILED. Missing parts are empty.
func (e event) failure() *Failure {
	f := &Failure{Seq: e.seq, At: e.at}
	if e.data == nil {
		return f
	}
	m, err := flat.Parse(e.data.Raw("error"))
	if err != nil {
		return f
	}
	f.Name, f.Message, f.Stack, f.Data = m.String("name"), m.String("message"), m.String("stack"), m.Raw("data")
	return f
}
