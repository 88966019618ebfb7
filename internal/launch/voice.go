package launch

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"heartbeat/internal/words"
)

// voice says sentences on stderr, which may be the same full pipe as stdout.
type voice struct {
	*slow
	end string
}

func newVoice(to *os.File) *voice {
	v := &voice{newSlow(to, 64), "\n"}
	if term.IsTerminal(int(to.Fd())) {
		v.end = "\r\n" // it may be raw
	}
	return v
}

// to has it go on elsewhere, once what was said so far is written.
func (v *voice) to(w io.Writer) {
	v.finish()
	v.slow = newSlow(w, 64)
}

func (v *voice) finish() { v.slow.finish() }

// say is one sentence.
func (v *voice) say(format string, args ...any) {
	text := words.Plain(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	v.put(CommandName + ": " + strings.ReplaceAll(text, "\n", v.end) + v.end)
}
