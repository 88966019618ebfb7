package client

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/guild"
	repeat "heartbeat/internal/testing/long"
)

// Host, client, guild and network fail at any time. No session whose start was told of
// is without its one terminal report, and completed is only what was answered.
func TestHostedRandomKills(t *testing.T) {
	h := newHouse(t, nil).standIn()
	results := map[string]int{}
	for n := range repeat.Rounds(12, 200) {
		id := fmt.Sprintf("ses-%d", n)
		what := h.disturbed(id, rand.New(rand.NewPCG(12, uint64(n))))
		s := h.known(id)
		results[what+": "+s.Status]++
		h.isClean()
		require.False(t, t.Failed(), "session %s, %s", id, what)
	}
	for what, count := range results {
		t.Log(count, what)
	}
	assert.Empty(t, h.letters())
}

// disturbed hosts one session while something fails, and says what.
func (h *house) disturbed(id string, random *rand.Rand) string {
	t := h.t
	t.Helper()
	delay := time.Duration(random.IntN(400)) * time.Millisecond
	what := []string{"host", "client", "guild", "network", "host and guardian"}[random.IntN(5)]
	config := h.seed(id, "go", guildOf...)
	if what == "network" {
		kinds, does := []string{"running", "record"}, []string{guild.Reset, guild.Answer, guild.Die}
		f := guild.Fault{On: kinds[random.IntN(2)], Step: guild.Steps[random.IntN(len(guild.Steps))], Do: does[random.IntN(3)], Status: 503}
		what = fmt.Sprintf("%s at %s of %s", f.Do, f.Step, f.On)
		require.NoError(t, h.guild.Break(f))
		if f.Do == guild.Die {
			revived := make(chan struct{})
			t.Cleanup(func() { <-revived })
			go func() {
				defer close(revived)
				h.guild.Wait()
				assert.NoError(t, h.guild.Start())
			}()
		}
	}
	cmd := h.host("start", "--claude", h.claude)
	cmd.Stdin = strings.NewReader(asJSON(config))
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	time.Sleep(delay) // at whatever it is then
	h.strike(id, what)
	begun := cmd.Wait() == nil
	ctx := minutes(t)
	if what == "host and guardian" {
		h.until(ctx, "the host is gone", func() bool { return h.folder(id).Holder() == 0 })
		h.verb("drain-dlq", "--db", h.db(), "--once")
	}
	if _, err := h.folder(id).Read(); err != nil {
		require.False(t, begun, "%s after %v: %v", what, delay, err)
		return what
	}
	h.until(ctx, fmt.Sprintf("session %s is over (%s after %v, %s)", id, what, delay, &said), func() bool { return h.over(id) })
	s, state := h.known(id), h.state(id)
	assert.Equal(t, 1, s.Record.Applied, "%s after %v", what, delay)
	assert.Equal(t, state.Status, folder.Status(s.Status))
	assert.Equal(t, s.Status == "completed", state.Entries.Answered == 1, "%s after %v: %+v", what, delay, state.Entries)
	h.agrees(s)
	return what
}

// strike kills what is there of a session.
func (h *house) strike(id, what string) {
	h.t.Helper()
	s, err := h.folder(id).Read()
	if what == "guild" {
		h.guild.Kill()
		require.NoError(h.t, h.guild.Start())
	}
	if err != nil {
		return // it has not begun
	}
	var victims []*folder.Process
	switch what {
	case "host":
		victims = []*folder.Process{s.Host}
	case "host and guardian":
		victims = []*folder.Process{s.Guardian, s.Host}
	case "client":
		victims = []*folder.Process{s.Client}
	}
	for _, v := range victims {
		if v == nil {
			continue
		}
		if alive, known := v.Alive(); known && alive {
			_ = syscall.Kill(v.PID, syscall.SIGKILL) // it may end at this moment
		}
	}
}
