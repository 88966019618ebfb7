package names

import (
	"strconv"
	"strings"
	"time"
)

// storedBase spells the time in a message's id.
const storedBase = 36

// Message is the id of a message whose headers name none: STREAM:SEQ:STORED. STORED is when
// the server stored it, in microseconds since 1970 to the base of 36. A stream that is
// deleted and made anew counts from 1 again; the time tells its messages from the ones that
// had their sequences before.
func Message(stream string, seq uint64, stored time.Time) string {
	return Place(stream, seq) + ":" + strconv.FormatUint(uint64(max(0, stored.UnixMicro())), storedBase)
}

// Place is where a message is, for people: STREAM:SEQ.
func Place(stream string, seq uint64) string { return stream + ":" + strconv.FormatUint(seq, 10) }

// IsMessage reports whether an id is spelt as [Message] spells those of the stream. Headers
// do not name such an id, but that of a message which was requeued.
func IsMessage(stream, id string) bool {
	place, stored, found := cutLast(id)
	if !found || !IsPlace(stream, place) {
		return false
	}
	n, err := strconv.ParseUint(stored, storedBase, 63)
	return err == nil && strconv.FormatUint(n, storedBase) == stored
}

// IsPlace reports whether an id is a [Place] of the stream.
func IsPlace(stream, id string) bool {
	before, seq, found := cutLast(id)
	n, err := strconv.ParseUint(seq, 10, 64)
	return found && before == stream && err == nil && strconv.FormatUint(n, 10) == seq
}

// IsAt reports whether an id is that of a message, without one in its headers, which had
// this [Place] of the stream.
func IsAt(stream, place, id string) bool {
	before, _, _ := cutLast(id)
	return before == place && IsMessage(stream, id)
}

func cutLast(id string) (before, after string, found bool) {
	i := strings.LastIndexByte(id, ':')
	if i < 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}
