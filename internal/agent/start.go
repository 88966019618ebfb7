package agent

import (
	"heartbeat/internal/claude"
	"heartbeat/internal/flat"
)

// StartNote is kept with a session's start: where in its transcript the lines of this
// process begin.
func StartNote(transcript string) []byte {
	var o flat.Object
	o.Text("transcript_path", transcript)
	o.Int("transcript_size", claude.TranscriptSize(transcript))
	return o.End()
}

// StartOf is the transcript that a hook named at the session's start, and how long it was
// then, in bytes; "" if no hook told of that.
func StartOf(note []byte) (transcript string, size int64) {
	m, err := flat.Parse(note)
	if err != nil {
		return "", 0
	}
	return m.String("transcript_path"), m.Int("transcript_size")
}
