package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// Two agents with the real client share twenty messages: each is answered once, by its own
// answer, and both agents end once they have drained. One of them keeps its session.
func TestFleetTwoAgents(t *testing.T) {
	ctx := forLong(t)
	c := newCrew(t, working())
	c.join("one").starts()
	c.join("two", "--mode", "persist").starts()
	c.until(ctx, "both ask for messages", func() bool { return c.consumer().NumWaiting >= 2 })
	all := jobs(20)
	c.send(all...)
	c.isEmpty(ctx)
	k := c.keptOnce(all...)
	assert.Equal(t, kept{by: k.by}, k)
	assert.Len(t, k.by, 2, "one agent did it all")
	assert.Equal(t, ownReply("[m7]")+"\n", c.command("results", "job.7"))
	assert.Equal(t, ownReply("[s1]")+"\n", c.command("send", "--subject", "work.review", "--wait", "once more [s1]"))
	assert.Zero(t, c.consumer().NumRedelivered)
	for _, m := range c.agents {
		c.command("drain", m.name)
		assert.Zero(t, m.ended(ctx), m.said())
		m.sessionsGone(ctx)
	}
}

// The server of --embed is killed, and the first agent with all that it started. The other
// agent starts the server again, and goes on with what the first one had.
func TestFleetEmbedded(t *testing.T) {
	ctx := forLong(t)
	Find(t)
	script := first("[m2]", model.Hang()).script()
	dir := filepath.Join(t.TempDir(), "nats")
	c := &crew{t: t, script: script, where: []string{"--embed", dir}}
	killServer := func() error {
		text, err := os.ReadFile(filepath.Join(dir, "server.json"))
		require.NoError(t, err)
		var a struct{ PID int }
		require.NoError(t, json.Unmarshal(text, &a))
		return syscall.Kill(a.PID, syscall.SIGKILL)
	}
	t.Cleanup(func() { _ = killServer() }) // it is gone if an agent had started it
	c.command("setup", "--ack-wait", "20s")
	one := c.join("one").starts()
	one.until(ctx, "it is there", func() bool { return strings.Contains(c.command("status"), "one") })
	two := c.join("two")
	var waiting []*started
	for _, j := range jobs(3) {
		args := append([]string{"send", "--subject", "work.review", "--id", j.id, "--wait", j.text()}, c.where...)
		s := two.start(ctx, nil, "", natsCommand(t), args...)
		waiting = append(waiting, s)
	}
	one.asked(ctx, "[m2]", 1)
	two.starts()
	two.until(ctx, "it is there", func() bool { return strings.Contains(c.command("status"), "two") })
	require.NoError(t, killServer())
	one.killMachine()
	for i, j := range jobs(3) {
		out, errs, status := waiting[i].wait()
		assert.Zero(t, status, errs)
		assert.Equal(t, ownReply(j.tag)+"\n", out)
	}
	c.command("drain", "two", "--wait")
	assert.Zero(t, two.ended(ctx), two.said())
	assert.Equal(t, ownReply("[m2]")+"\n", c.command("results", "job.2"))
}
