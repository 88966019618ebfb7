package layout

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ticked runs a line whose clock the test advances. A send to ticks returns once the line has
// received it; a second send, once the first is drawn.
func ticked(out io.Writer, width int) (*ProgressLine, func(time.Duration)) {
	began := time.Now()
	ticks := make(chan time.Time)
	l := newLine(out, "sending", began, func() int { return width })
	l.run(ticks, func() {})
	return l, func(after time.Duration) {
		ticks <- began.Add(after)
		ticks <- began // draws nothing, since no time has passed
	}
}

func TestNothingIsShownForASecond(t *testing.T) {
	var shown bytes.Buffer
	l, tick := ticked(&shown, 80)
	tick(200 * time.Millisecond)
	tick(999 * time.Millisecond)
	l.Stop()
	assert.Empty(t, shown.String())
}

func TestLineIsDrawnAndCleared(t *testing.T) {
	var shown bytes.Buffer
	l, tick := ticked(&shown, 80)
	tick(time.Second)
	tick(2900 * time.Millisecond)
	_, err := io.WriteString(l.Around(&shown), "id-1\n")
	require.NoError(t, err)
	_, err = io.WriteString(l.Around(&shown), "id-2\n")
	require.NoError(t, err)
	tick(65 * time.Second)
	l.Stop()
	l.Stop()
	assert.Equal(t, []string{
		"", "sending, 1s", "sending, 2s", "id-1\nid-2\n", "sending, 1m 5s", "",
	}, strings.Split(shown.String(), clearLine))
}

// TestLineSaysWhatIsWaitedFor shows what is waited for and since when, and nothing before that is
// known. An unchanged line is not drawn again.
func TestLineSaysWhatIsWaitedFor(t *testing.T) {
	var shown bytes.Buffer
	began := time.Now()
	l, tick := ticked(&shown, 80)
	l.Say("", began)
	tick(5 * time.Second)
	l.Say("job-7 is \x1b[2Jqueued\nbehind 3", began)
	tick(6 * time.Second)
	tick(6500 * time.Millisecond)
	l.Say("session 3f1c2ab8 works on job-7", began.Add(6*time.Second))
	tick(6700 * time.Millisecond)
	tick(8 * time.Second)
	l.Say("the clock was set back", began.Add(time.Hour))
	tick(8 * time.Second)
	l.Say("", began)
	tick(9 * time.Second)
	l.Stop()
	assert.Equal(t, []string{
		"", `job-7 is \u001b[2Jqueued behind 3, 6s`, "session 3f1c2ab8 works on job-7, 0s", "session 3f1c2ab8 works on job-7, 2s",
		"the clock was set back, 0s", "",
	}, strings.Split(shown.String(), clearLine))
}

func TestLineFitsTheTerminal(t *testing.T) {
	var shown bytes.Buffer
	l, tick := ticked(&shown, 10)
	tick(time.Second)
	l.Stop()
	assert.Equal(t, clearLine+"sending,…"+clearLine, shown.String())
}

// TestLineInTheBackground draws nothing while another command has the terminal.
func TestLineInTheBackground(t *testing.T) {
	var shown bytes.Buffer
	l, tick := ticked(&shown, inBackground)
	tick(time.Minute)
	l.Stop()
	assert.Empty(t, shown.String())
}

func TestNoTerminalShowsNothing(t *testing.T) {
	var out bytes.Buffer
	l := StartLine(&out, "sending")
	assert.Nil(t, l)
	assert.Same(t, &out, l.Around(&out))
	l.Stop()
	assert.Empty(t, out.String())
}

func TestStartOnATerminal(t *testing.T) {
	control, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { assert.NoError(t, control.Close()) }()
	defer func() { assert.NoError(t, terminal.Close()) }()
	t.Setenv("TERM", "dumb")
	assert.Nil(t, StartLine(terminal, "sending"))
	t.Setenv("TERM", "xterm")
	l := StartLine(terminal, "sending")
	assert.NotNil(t, l)
	l.Stop()
}
