package session

import (
	"strings"

	system "heartbeat/internal/host"
)

// newMark returns what all processes of a session have in their environment. It begins
// with the session's id: a finisher takes it from the record, which the session's tools
// may have forged, and must not kill another session by it.
func newMark(id string) (string, error) {
	name, err := system.RandomName()
	return id + "." + name, err
}

// isMarkOf reports whether a mark was made for a session.
func isMarkOf(mark, id string) bool {
	at := strings.LastIndexByte(mark, '.')
	return at >= 0 && mark[:at] == id && mark[at+1:] != ""
}
