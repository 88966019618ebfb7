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

// notYet is the verdict where the transcript does not tell: unsure as long as it
// still may, and then the one given.
func (h *hook) notYet(transcript string, otherwise verdict) verdict {
	w := &h.watched
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(transcriptWait)
	}
	if transcript == "" || !time.Now().Before(w.deadline) {
		return otherwise
	}
	w.path, w.size = transcript, claude.TranscriptSize(transcript)
	return unsure
}

// awaitTranscript returns once the transcript has grown, or was given its time, and
// not at once, for a transcript may grow without end. The
// inbox's lock is free meanwhile: a hook that waits here is most often the second
// one of a Stop, and others have work to do.
func (h *hook) awaitTranscript(ctx context.Context) {
	w := h.watched
	for grown := false; !grown && time.Now().Before(w.deadline) && ctx.Err() == nil; {
		time.Sleep(transcriptPoll)
		grown = claude.TranscriptSize(w.path) != w.size
	}
}
