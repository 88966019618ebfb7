package hook

import (
	"context"
	"time"

	"heartbeat/internal/claude"
)

const (
	// transcriptWait is how long the transcript is given to show an answer: the
	// client writes it late.
	transcriptWait = 1500 * time.Millisecond
	transcriptPoll = 10 * time.Millisecond
)

// transcriptWatch is what a hook waits for that cannot tell yet.
type transcriptWatch struct {
	path     string
	size     int64     // of the transcript when it was asked
	deadline time.Time // zero before the first wait
}

// mayTell reports whether the transcript may still be given time.
func (w *transcriptWatch) mayTell() bool {
	return w.deadline.IsZero() || time.Now().Before(w.deadline)
}

// begin waits for a transcript to tell more than it does now.
func (w *transcriptWatch) begin(path string) {
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(transcriptWait)
	}
	w.path, w.size = path, claude.TranscriptSize(path)
}

// await returns once the transcript has grown or was given its time, and not before,
// since a transcript may grow without end. The inbox's lock is free meanwhile: a hook
// that waits here is mostly the second one of a Stop, and others have work to do.
func (w *transcriptWatch) await(ctx context.Context) {
	for grown := false; !grown && time.Now().Before(w.deadline) && ctx.Err() == nil; {
		time.Sleep(transcriptPoll)
		grown = claude.TranscriptSize(w.path) != w.size
	}
}
