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
	assert.Empty(t, n.see(ready, false, now))
	assert.Regexp(t, "^the session sits at its prompt", n.see(ready, false, later))
	assert.Empty(t, n.see(ready, false, later.Add(time.Hour)), "once")

	n = noticer{Client: client.Of("", []string{"claude"})}
	assert.Empty(t, n.see(ready, false, now))
	assert.Empty(t, n.see(busy, false, now))
	assert.Equal(t, "the model's API says API error, try 1 of 10", n.see(fails("API error", "1"), false, now))
	assert.Empty(t, n.see(fails("API error", "2"), false, now))
	assert.Equal(t, "the model's API says 401 no, try 3 of 10", n.see(fails("401 no", "3"), false, now))
	assert.Empty(t, n.see(ready, false, now))
	assert.Empty(t, n.see(ready, false, later), "a turn has begun")
	assert.NotEmpty(t, n.see(fails("401 no", "1"), false, later), "another turn")

	n = noticer{Client: client.Of("", []string{"claude"}), silent: true}
	assert.Empty(t, n.see(ready, false, now))
	assert.Empty(t, n.see(ready, false, later))
}
