package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// control matches the terminal control sequences the client uses: CSI, OSC and
// the short escapes.
var control = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])`)

// output keeps what a terminal was sent and lets others wait for it.
type output struct {
	mu      sync.Mutex
	data    bytes.Buffer
	changed chan struct{} // closed and replaced at every write, closed for good at the end
	ended   bool
}

// newOutput is the output of a terminal that was sent nothing yet.
func newOutput() *output { return &output{changed: make(chan struct{})} }

// collect copies a terminal until it is closed. The read error is no news: it
// is how the end of the client looks from this side.
func (s *output) collect(tty io.Reader) {
	buf := make([]byte, 32*1024)
	for {
		n, err := tty.Read(buf)
		s.add(buf[:n], err != nil)
		if err != nil {
			return
		}
	}
}

// add keeps some bytes and wakes every waiter.
func (s *output) add(p []byte, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Write(p)
	s.ended = last
	close(s.changed)
	if !last {
		s.changed = make(chan struct{})
	}
}

// bytes is a copy of everything so far.
func (s *output) bytes() []byte {
	data, _, _ := s.state()
	return data
}

// state is everything so far, the channel of the next change, and whether there
// will be one.
func (s *output) state() (data []byte, changed <-chan struct{}, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.data.Bytes()), s.changed, s.ended
}

// wait implements Session.WaitScreen.
func (s *output) wait(ctx context.Context, from int, text string) (int, error) {
	want := squeeze(text)
	for {
		data, changed, ended := s.state()
		seen := plain(data[min(from, len(data)):])
		if strings.Contains(seen, want) {
			return len(data), nil
		}
		if ended {
			return 0, fmt.Errorf("client: the terminal closed before %q; last words: %q", text, tail(seen))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("client: waiting for %q on the screen: %w; last words: %q", text, ctx.Err(), tail(seen))
		}
	}
}

// plain is terminal output without control sequences and without white space.
func plain(data []byte) string { return squeeze(string(control.ReplaceAll(data, nil))) }

// squeeze takes out white space and control characters.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// tail is the end of a text that is too long for an error message.
func tail(text string) string {
	const keep = 600
	if len(text) <= keep {
		return text
	}
	return "..." + text[len(text)-keep:]
}
