package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// voice says sentences on stderr. Nobody waits for them to be read: stderr may be
// the same full pipe as stdout.
type voice struct {
	lines chan string
	done  chan struct{}
	end   string
}

// voicePatience is how long the last sentences may take to be read.
const voicePatience = time.Second

func newVoice(to *os.File) *voice {
	v := &voice{lines: make(chan string, 64), done: make(chan struct{}), end: "\n"}
	if term.IsTerminal(int(to.Fd())) {
		v.end = "\r\n" // it may be raw
	}
	go func() {
		defer close(v.done)
		for line := range v.lines {
			_, _ = to.WriteString(line) // there is nobody else to tell
		}
	}()
	return v
}

// say is one sentence; what no longer fits is lost.
func (v *voice) say(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	select {
	case v.lines <- commandName + ": " + strings.ReplaceAll(text, "\n", v.end) + v.end:
	default:
	}
}

// finish lets what was said be read.
func (v *voice) finish() {
	close(v.lines)
	select {
	case <-v.done:
	case <-time.After(voicePatience):
	}
}
