package guild

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Running is the report that a session runs.
type Running struct {
	SessionID string          `json:"sessionId"`
	StartedAt string          `json:"startedAt"` // as in the config
	Provider  string          `json:"provider"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	// Cancel is whom the guild has to signal.
	Cancel CancelHandle `json:"cancelHandle"`
	// Socket is the path of the session's socket, for attach and cancel. An older guild
	// ignores it.
	Socket string `json:"socket,omitempty"`
	// Extra are the members of the config that heartbeat-host does not know. One that
	// has the name of a member above is left out.
	Extra map[string]json.RawMessage `json:"-"`
}

// CancelHandle says how a session is cancelled.
type CancelHandle struct {
	Kind string `json:"kind"`
	PGID int    `json:"pgid"`
}

// LocalGroup is the handle of a process group on this machine: SIGTERM to it cancels.
func LocalGroup(pgid int) CancelHandle { return CancelHandle{Kind: "local-pgid", PGID: pgid} }

// MarshalJSON writes the extra members behind the others.
func (r Running) MarshalJSON() ([]byte, error) {
	type plain Running
	b, err := json.Marshal(plain(r))
	if err != nil {
		return nil, err
	}
	return withExtra(b, r.Extra)
}

// withExtra adds members to an object in JSON, which has some already.
func withExtra(object []byte, extra map[string]json.RawMessage) ([]byte, error) {
	if len(extra) == 0 {
		return object, nil
	}
	var there map[string]json.RawMessage
	if err := json.Unmarshal(object, &there); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(object[:len(object)-1])
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, taken := there[name]; taken || reserved[name] {
			continue
		}
		if !json.Valid(extra[name]) {
			return nil, fmt.Errorf("the member %q is not JSON", name)
		}
		b.WriteString("," + string(quote(name)) + ":")
		b.Write(extra[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// reserved are names that a report gives a meaning to, even where it leaves them out.
var reserved = map[string]bool{
	"sessionId": true, "status": true, "error": true, "transcript": true, "exitCode": true, "signal": true,
	"costUsd": true, "tokenUsage": true, "output": true, "providerSessionId": true, "terminationTag": true,
	"terminationDiagnostic": true, "metadata": true, "socket": true, "cancelHandle": true, "conversationId": true,
	"entries": true, "result": true, "ended": true, "resetsAt": true, "warnings": true,
	"tools": true, "lost": true, "waiting": true,
}
