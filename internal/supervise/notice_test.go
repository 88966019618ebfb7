package supervise

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claim"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
)

// Each thing is said once, until it is over.
func TestNotice(t *testing.T) {
	input := "\n" + strings.Repeat("─", 80) + "\n❯\n" + strings.Repeat("─", 80) + "\n"
	ready, busy := "hello\n"+input, "✻ Brewing… (4s)\n"+input
	fails := func(cause, try string) string {
		return "✻ " + cause + " · retrying in 1s · attempt " + try + "/10\n" + input
	}
	now := time.Now()
	later := now.Add(promptless)

	n := noticer{Client: client.Of("", []string{"claude"})}
	see := func(text string, now time.Time) string { return n.notice(n.Recognise(text), text, false, now) }
	assert.Empty(t, see(ready, now))
	assert.Regexp(t, "^the session sits at its prompt", see(ready, later))
	assert.Empty(t, see(ready, later.Add(time.Hour)), "once")

	n = noticer{Client: client.Of("", []string{"claude"})}
	assert.Empty(t, see(ready, now))
	assert.Empty(t, see(busy, now))
	assert.Equal(t, "the model's API answers with an error, try 1 of 10", see(fails("API error", "1"), now))
	assert.Empty(t, see(fails("API error", "2"), now))
	assert.Equal(t, "the model's API says 401 no, try 3 of 10", see(fails("401 no", "3"), now))
	assert.Empty(t, see(ready, now))
	assert.Empty(t, see(ready, later), "a turn has begun")
	assert.NotEmpty(t, see(fails("401 no", "1"), later), "another turn")

	n = noticer{Client: client.Of("", []string{"claude"}), silent: true}
	assert.Empty(t, see(ready, now))
	assert.Empty(t, see(ready, later))
}

// The sign names what the client retries, for as long as it does.
func TestTheSignNamesWhatIsRetried(t *testing.T) {
	r, box := newRun(t, Persist)
	r.follow, r.Client, r.StartTimeout = &follower{}, client.Of("", []string{"claude"}), time.Hour
	r.Line, r.Terminal.Signals = func(time.Time, string) {}, signals.Catch()
	defer r.Terminal.Signals.Stop()
	lock, err := claim.Take(box)
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Release()) }()
	r.sign.setLock(lock)
	s := newSession(r.Client, terminal.DefaultSize)
	s.id.Store("s1")
	input := "\r\n" + strings.Repeat("─", 80) + "\r\n❯\r\n" + strings.Repeat("─", 80)
	s.printed([]byte("\x1b[H\x1b[2J✻ 529 Overloaded · retrying in 1s · attempt 2/10" + input))
	go r.guard(s)
	says := func(what string) {
		t.Helper()
		require.Eventually(t, func() bool {
			l := see.LauncherOf(box)
			return l != nil && l.PID == os.Getpid() && l.Doing == "its session is s1"+what
		}, 5*time.Minute, 10*time.Millisecond)
	}
	says(see.Retries + "the model's API says 529 Overloaded, try 2 of 10")
	s.printed([]byte("\x1b[H\x1b[2J✻ Brewing… (4s)" + input))
	says("")
	close(s.over)
}
