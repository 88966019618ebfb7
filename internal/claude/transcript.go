package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"
)

// Delivery is a text that a Stop hook handed over, as far as a transcript can
// tell of it.
type Delivery struct {
	Path string // of the session's transcript, a JSONL file
	Size int64  // of the transcript when the text was handed over
	Text string
	At   time.Time // when it was handed over
	// Resumed is when the session was started again since, zero if it was not.
	// What a resumed session writes tells nothing of what the killed one sent.
	Resumed time.Time
}

// TranscriptSize is the size of a transcript, 0 when it cannot be read.
func TranscriptSize(path string) int64 {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// Answered reports whether the transcript shows an answer that came after the
// text. The client writes its transcript about a tenth of a second late, so a
// false may turn true.
//
// A line with the text is not enough: it is written as soon as the hook that
// printed it ends, while another hook of the same Stop may still be running.
// Nor is any answer: the one before the Stop may be written later than the
// hook starts. A transcript that is not in the client's format shows by growing
// that the session went on.
func (d Delivery) Answered() bool {
	shown, answered, foreign, known := false, false, 0, 0
	err := d.each(func(l gjson.Result) {
		if !l.Get("uuid").Exists() {
			// The client's bookkeeping has no uuid either, and lands anywhere.
			if !l.Get("sessionId").Exists() {
				foreign++
			} else {
				known++
			}
			return
		}
		known++
		if !d.isNew(l) {
			return // of the turn before, written late
		}
		shown = shown || hands(l, d.Text)
		answered = answered || shown && isAnswer(l)
	})
	return err == nil && (answered || foreign > 0 && known == 0)
}

// Turn is what a transcript tells of the turn that came behind a delivery.
type Turn int

// The turns. Unknown may become another one while the client still writes.
const (
	Unknown     Turn = iota
	WithText         // the model answered, and had the text
	WithoutText      // the model answered, and did not have it
)

// NextTurn tells whether the model had the text when it answered next. The client
// writes what the hooks of a Stop said before it asks the model.
func (d Delivery) NextTurn() Turn {
	shown, turn := false, Unknown
	err := d.each(func(l gjson.Result) {
		if turn != Unknown || !l.Get("uuid").Exists() || !d.isNew(l) {
			return
		}
		shown = shown || hands(l, d.Text)
		switch {
		case !isAnswer(l):
		case shown:
			turn = WithText
		default:
			turn = WithoutText
		}
	})
	if err != nil {
		return Unknown
	}
	return turn
}

// Missed reports whether the transcript proves that the text never reached the
// model: the session went on without it, or ended the turn in its place.
//
// That the text is not there proves nothing by itself: a client that is killed
// takes the last lines with it. The lines are written in order, though, so one
// that came after the delivery would stand behind the text.
func (d Delivery) Missed() bool {
	shown, reached, overridden, wentOn := false, false, false, false
	err := d.each(func(l gjson.Result) {
		switch {
		case shown:
			reached = reached || isTurn(l)
			overridden = overridden || isOverride(l)
		case hands(l, d.Text):
			shown = true
		case d.isLater(l):
			wentOn = true
		}
	})
	switch {
	case err != nil:
		return false
	case shown:
		return overridden && !reached
	}
	return wentOn
}

// isLater recognises a line of the conversation that was written after the
// delivery, by the process that got it.
func (d Delivery) isLater(l gjson.Result) bool {
	switch l.Get("type").Str {
	case "user", "assistant", "system", "attachment":
	default:
		return false // bookkeeping, which lands anywhere
	}
	at, err := time.Parse(time.RFC3339, l.Get("timestamp").Str)
	if err != nil {
		return d.Resumed.IsZero()
	}
	return at.After(d.At) && (d.Resumed.IsZero() || at.Before(d.Resumed))
}

// isNew tells a line that was made after the delivery from one that was only
// written then. The client's clock shows milliseconds.
func (d Delivery) isNew(l gjson.Result) bool {
	at, err := time.Parse(time.RFC3339, l.Get("timestamp").Str)
	return err != nil || !at.Before(d.At.Truncate(time.Millisecond))
}

// isAnswer leaves out what the client writes in the model's place.
func isAnswer(l gjson.Result) bool {
	return l.Get("type").Str == "assistant" && l.Get("message.model").Str != "<synthetic>" && !l.Get("isApiErrorMessage").Bool()
}

// isTurn recognises what takes a text along to the model: a request, or the
// prompt that one will be made for.
func isTurn(l gjson.Result) bool {
	switch l.Get("type").Str {
	case "api-request", "assistant":
		return true
	case "user":
		return !l.Get("isMeta").Bool()
	}
	return false
}

// isOverride recognises the client's note that it ended a turn although a hook
// blocked, as it does after too many blocks in a row.
func isOverride(l gjson.Result) bool {
	return l.Get("type").Str == "system" && l.Get("subtype").Str == "informational"
}

// each calls f for every line that came since the delivery. A transcript that
// is not there, or has not grown, is an error.
func (d Delivery) each(f func(gjson.Result)) error {
	file, err := os.OpenFile(d.Path, os.O_RDONLY|unix.O_NONBLOCK, 0) // or a FIFO would hold the hook up
	if err != nil {
		return err
	}
	defer file.Close() // read only: nothing to lose
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.New("the transcript is not a regular file")
	}
	if _, err := file.Seek(d.Size, io.SeekStart); err != nil {
		return err
	}
	lines, n := bufio.NewReader(file), 0
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 && err == nil { // a last line may still be being written
			n++
			f(gjson.ParseBytes(line))
		}
		switch {
		case err == io.EOF && n == 0:
			return errors.New("the transcript has not grown")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// handedOver are the places where a line tells of a text that a hook handed over.
var handedOver = []string{
	"message.content", "message.content.#.text", "content",
	"attachment.blockingError.blockingError", "attachment.content",
	"hookErrors", "hookAdditionalContext",
}

// hands reports whether a line tells of the text being handed over: as the
// feedback of a hook, or as its context.
func hands(l gjson.Result, text string) bool {
	if l.Get("type").Str == "assistant" {
		return false
	}
	for _, place := range handedOver {
		v := l.Get(place)
		if v.Type == gjson.String && endsIn(v.Str, text) {
			return true
		}
		for _, item := range v.Array() {
			if item.Type == gjson.String && endsIn(item.Str, text) {
				return true
			}
		}
	}
	return false
}

func endsIn(s, text string) bool {
	before, ok := strings.CutSuffix(s, text)
	return ok && (before == "" || strings.HasSuffix(before, "\n") || strings.HasPrefix(before, "Stop hook") && !strings.Contains(before, "\n"))
}
