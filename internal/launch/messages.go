package launch

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"heartbeat/internal/words"
)

// messages are the sentences on stderr, which may be the same full pipe as stdout.
type messages struct {
	*lineQueue
	newline string
}

const messagesRoom = 64

func newMessages(to *os.File) *messages {
	m := &messages{newLineQueue(to, messagesRoom), "\n"}
	if term.IsTerminal(int(to.Fd())) {
		m.newline = "\r\n" // it may be raw
	}
	return m
}

// redirect sends what is said from now on elsewhere, after what was said so far.
func (m *messages) redirect(to io.Writer) {
	m.finish()
	m.lineQueue = newLineQueue(to, messagesRoom)
}

// finish is a method of its own since redirect replaces the queue.
func (m *messages) finish() { m.lineQueue.finish() }

// say queues one sentence.
func (m *messages) say(format string, args ...any) {
	text := words.Plain(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	m.put(CommandName + ": " + strings.ReplaceAll(text, "\n", m.newline) + m.newline)
}
