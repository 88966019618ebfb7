package guild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sync"

	"heartbeat/internal/hosting/folder"
)

// Body is a report as it is sent. It is opened once for each attempt and need not be in
// memory: the transcript of a record is read as it is sent.
type Body struct {
	Open func() io.Reader
	Size int64 // bytes
}

// BodyOf is a body that is in memory.
func BodyOf(b []byte) Body {
	return Body{Open: func() io.Reader { return bytes.NewReader(b) }, Size: int64(len(b))}
}

// unreadable is a report that cannot be read where it is kept.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

// reading is one pass over a body. net/http may go on reading after it has returned an
// answer; closed tells when it no longer does.
type reading struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = &unreadable{err}
	}
	return n, err
}

func (r *reading) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Restate is a report, a JSON object, with another status and error.
func Restate(report string, status folder.Status, reason string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(report), &members); err != nil || members == nil {
		return "", errors.Join(errors.New("the report is no JSON object"), err)
	}
	members["status"], members["error"] = json.RawMessage(quote(string(status))), json.RawMessage(quote(reason))
	b, err := json.Marshal(members)
	if err != nil {
		return "", fmt.Errorf("write the report anew: %w", err)
	}
	return string(b), nil
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string always has a JSON form
	return string(b)
}
