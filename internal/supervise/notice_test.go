package supervise

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/supervise/client"
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
