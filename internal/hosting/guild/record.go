package guild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"heartbeat/internal/hosting/folder"
)

// Record is the report that a session ended. Its JSON has the status, the exit code and the transcript, and
// otherwise only members that are not empty.
type Record struct {
	SessionID string `json:"sessionId"`
	folder.Summary
	ExitCode int    `json:"exitCode"` // of the client; 1 if it has none
	Signal   string `json:"signal,omitempty"`

	TerminationTag        *TerminationTag        `json:"terminationTag,omitempty"`
	TerminationDiagnostic *TerminationDiagnostic `json:"terminationDiagnostic,omitempty"` // sent with "failed" only

	// The rest is heartbeat's own; older guilds ignore it.

	Entries  *Entries           `json:"entries,omitempty"`
	Result   *folder.ResultLine `json:"result,omitempty"`   // nil if the client wrote no result line
	ResetsAt string             `json:"resetsAt,omitempty"` // of a rate limit, RFC 3339
	Warnings []string           `json:"warnings,omitempty"` // sentences, such as that the client never asked for its tools
	Tools    *folder.ToolCounts `json:"tools,omitempty"`    // nil if the client had none

	// Extra are the config's members that heartbeat-host does not know. Those that a report has itself are left out.
	Extra map[string]json.RawMessage `json:"-"`
}

// TerminationTag means that the provider, not the session, was the reason.
type TerminationTag struct {
	Kind   string `json:"kind"`   // "rate-limit"
	Source string `json:"source"` // "ndjson-result"
	Detail string `json:"detail"` // at most 200 characters
}

// TerminationDiagnostic is what the client left behind when it failed.
type TerminationDiagnostic struct {
	ExitCode      int    `json:"exitCode"`
	StderrExcerpt string `json:"stderrExcerpt,omitempty"` // the last 2048 characters
}

type Entries struct {
	folder.Entries
	Each []folder.Entry `json:"each,omitempty"`
}

// Encode returns the record as JSON, without its transcript.
func (r *Record) Encode() (string, error) {
	head := *r
	if head.ExitCode == 0 && head.Signal != "" {
		head.ExitCode = 1
	}
	if head.Status != folder.Failed {
		head.TerminationDiagnostic = nil
	}
	text, err := encode(head, r.Extra)
	if err != nil {
		return "", fmt.Errorf("write the record of session %s: %w", r.SessionID, err)
	}
	return text, nil
}

// Running is the report that a session runs.
type Running struct {
	SessionID string          `json:"sessionId"`
	StartedAt string          `json:"startedAt"` // as in the config
	Provider  string          `json:"provider"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Cancel    CancelHandle    `json:"cancelHandle"`
	Socket    string          `json:"socket,omitempty"` // of the session; older guilds ignore it
	// Extra are the config's members that heartbeat-host does not know: see [Record.Extra].
	Extra map[string]json.RawMessage `json:"-"`
}

// CancelHandle is how a guild cancels a session.
type CancelHandle struct {
	Kind string `json:"kind"` // local-pgid: SIGTERM to a process group on this machine
	PGID int    `json:"pgid"`
}

func (r Running) Encode() (string, error) { return encode(r, r.Extra) }

// encode returns a report as JSON, with extra members after its own.
func encode(report any, extra map[string]json.RawMessage) (string, error) {
	object, err := json.Marshal(report)
	if err != nil || len(extra) == 0 {
		return string(object), err
	}
	var there map[string]json.RawMessage
	if err := json.Unmarshal(object, &there); err != nil {
		return "", err
	}
	b := bytes.NewBuffer(object[:len(object)-1])
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, taken := there[name]; taken || reserved[name] {
			continue
		}
		if !json.Valid(extra[name]) {
			return "", fmt.Errorf("the member %q is not JSON", name)
		}
		quoted, _ := json.Marshal(name) // a string always has a JSON form
		b.Write(slices.Concat([]byte(","), quoted, []byte(":"), extra[name]))
	}
	b.WriteByte('}')
	return b.String(), nil
}

// reserved are names that mean something in a report, even where it leaves them out.
var reserved = map[string]bool{
	"sessionId": true, "status": true, "error": true, "transcript": true, "exitCode": true, "signal": true,
	"costUsd": true, "tokenUsage": true, "output": true, "providerSessionId": true, "terminationTag": true,
	"terminationDiagnostic": true, "metadata": true, "socket": true, "cancelHandle": true, "conversationId": true,
	"entries": true, "result": true, "ended": true, "resetsAt": true, "warnings": true,
	"tools": true, "lost": true, "waiting": true,
}

// Body is a report as it is sent, opened by each attempt once. A record's transcript is read while it is sent.
type Body struct {
	Open func() io.Reader
	Size int64 // bytes
}

// BodyOf returns a body that is in memory.
func BodyOf(b []byte) Body {
	return Body{Open: func() io.Reader { return bytes.NewReader(b) }, Size: int64(len(b))}
}

// unreadable is the error of reading a stored report.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

// reading is one pass over a body. net/http may still read after it has returned an answer; closed is
// closed once it has stopped.
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

// Restate returns a report, a JSON object, with another status and error.
func Restate(report string, status folder.Status, reason string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(report), &members); err != nil || members == nil {
		return "", errors.Join(errors.New("the report is no JSON object"), err)
	}
	members["status"], _ = json.Marshal(status) // a string always has a JSON form
	members["error"], _ = json.Marshal(reason)
	b, _ := json.Marshal(members) // all of them are JSON
	return string(b), nil
}
