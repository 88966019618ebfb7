package command

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/command/history"
	"heartbeat/internal/money/book"
)

// following is a verb that follows, until stop.
type following struct {
	*testing.T
	lines  *bufio.Scanner
	notes  *bytes.Buffer
	status chan int
}

func follows(t *testing.T, box *inbox.Inbox, args ...string) *following {
	r, w := io.Pipe()
	f := &following{t, bufio.NewScanner(r), new(bytes.Buffer), make(chan int, 1)}
	go func() {
		f.status <- Run(append(args, "--inbox", box.Path(), "--follow"), cli.Streams{Command: commandName, Out: w, Err: f.notes})
		_ = w.Close()
	}()
	return f
}

func (f *following) next() string {
	f.Helper()
	require.True(f, f.lines.Scan(), "it has ended: %s", f.notes)
	return f.lines.Text()
}

// stop ends it, once it has printed something, and returns what it printed to its end.
func (f *following) stop() (rest []string) {
	f.Helper()
	require.NoError(f, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	for f.lines.Scan() {
		rest = append(rest, f.lines.Text())
	}
	assert.Equal(f, 143, <-f.status, f.notes.String())
	return rest
}

// TestFollowedPrices has each answer once, with what its last request cost, although that
// was said after the answer.
func TestFollowedPrices(t *testing.T) {
	for _, verb := range []string{"results", "log"} {
		t.Run(verb, func(t *testing.T) {
			s := newSpender(t, inbox.Message{ID: "a", Text: "one"}, inbox.Message{ID: "b", Text: "two"}, inbox.Message{ID: "c", Text: "three"})
			s.stop(nil, true)
			s.feedback()
			s.request(10)
			s.stop(reply("did one"), true)
			s.feedback()
			f := follows(t, s.box, verb, "-n", "1")
			first := f.next()
			s.request(100)
			s.stop(reply("did two"), true)
			s.request(20) // said too late
			s.feedback()
			s.request(5)
			s.stop(reply("did three"), false)
			s.request(2) // likewise
			s.feedback()
			s.end()
			var answers []string
			for len(answers) < 2 {
				if line := f.next(); bytes.Contains([]byte(line), []byte("did ")) {
					answers = append(answers, line)
				}
			}
			assert.NotContains(t, first, "did two")
			assert.Regexp(t, `did two.*1\.20$|1\.20 USD: did two$`, answers[0])
			assert.Regexp(t, `did three.*0\.07$|0\.07 USD: did three$`, answers[1])
			assert.Empty(t, f.stop())
			assert.Contains(t, f.notes.String(), "ended by terminated")
		})
	}
}

// TestWhatWaitsForItsPrice is shown when it has waited long enough, and at the end.
func TestWhatWaitsForItsPrice(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	s.stop(nil, true)
	s.feedback()
	s.request(10)
	s.stop(reply("did one"), false)
	var out strings.Builder
	w := (&resultsFlags{}).answers(s.box, cli.Streams{Out: &out, Err: io.Discard}, nil)
	show := func(those []answer) (cost string) {
		out.Reset()
		require.NoError(t, w.show(those))
		return out.String()[strings.LastIndex(out.String(), "\t")+1:]
	}
	raw, err := os.ReadFile(s.box.ResultsPath())
	require.NoError(t, err)
	r, ok := history.ParseResult(raw)
	require.True(t, ok)
	now := time.Now()
	w.add(r, raw)
	assert.Empty(t, show(w.Ready(now)))
	assert.Equal(t, "0.10\n", show(w.Ready(now.Add(book.Patience+time.Second))))
	assert.Empty(t, show(w.Rest()), "it was shown")
	w.add(r, raw)
	assert.Equal(t, "0.10\n", show(w.Rest()))
}
