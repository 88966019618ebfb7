package client

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	repeat "heartbeat/internal/testing/long"
)

// The faults of TestFleetKilled: what SIGKILL ends.
const (
	killsAgent = iota
	killsLauncher
	killsSession
	killsMachine // all of it, at once
	killsMachineForLong
	faults
)

// Three agents with the real client, whose processes are killed at random: each message has
// one answer that counts, none is lost, none is replied to twice, and for each kill one turn
// more is made at most.
func TestFleetKilled(t *testing.T) {
	ctx := forLong(t)
	all := jobs(repeat.Rounds(12, 40))
	kills := repeat.Rounds(5, 15)
	random := rand.New(rand.NewPCG(14, uint64(kills)))
	c := newCrew(t, working(), "--ack-wait", "45s")
	for _, name := range []string{"one", "two", "three"} {
		c.join(name, "--max-attempts", "100").starts()
	}
	c.agents[1].flags = append(c.agents[1].flags, "--mode", "persist") // once it starts again
	c.send(all...)
	answered := func() (n int) {
		for _, m := range all {
			if c.known(m) != nil {
				n++
			}
		}
		return n
	}
	var away *member
	done, order := make([]int, faults), []int(nil)
	for n := range kills {
		// The work goes on between two kills.
		c.until(ctx, "the next is answered", func() bool { return answered() >= n*len(all)/(kills+1) })
		if away != nil {
			away.starts()
			away = nil
		}
		var victim *member
		c.until(ctx, "an agent works", func() bool {
			victim = c.agents[random.IntN(len(c.agents))]
			return len(victim.held()) > 0 || answered() == len(all)
		})
		// A moment in its turn, or in what comes before and after.
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		if len(order) == 0 {
			order = random.Perm(faults)
		}
		fault := order[0]
		order = order[1:]
		done[fault]++
		switch fault {
		case killsAgent:
			victim.kill()
			victim.starts()
		case killsLauncher:
			victim.killLauncher()
		case killsSession:
			victim.killSessions()
		case killsMachine:
			victim.killMachine()
			victim.starts()
		case killsMachineForLong:
			victim.killMachine()
			away = victim
		}
	}
	if away != nil {
		c.until(ctx, "the others have answered all they get", func() bool { return answered() >= len(all)-1 })
		away.starts()
	}
	c.isEmpty(ctx)
	k := c.keptOnce(all...)
	t.Logf("%d messages, %d kills (agent %d, launcher %d, client %d, all %d, all and away %d): %d turns twice, %d replies in doubt, %d answers superseded; answered by %v",
		len(all), kills, done[killsAgent], done[killsLauncher], done[killsSession], done[killsMachine], done[killsMachineForLong], k.twice, k.doubts, k.second, k.by)
	assert.LessOrEqual(t, k.twice, kills)
	assert.LessOrEqual(t, k.doubts, kills)
	letters, err := c.js.Stream(ctx, "WORK-dead")
	if assert.NoError(t, err) {
		assert.Zero(t, letters.CachedInfo().State.Msgs, "dead letters")
	}
	for _, m := range c.agents {
		c.command("drain", m.name)
		assert.Zero(t, m.ended(ctx), m.said())
		m.sessionsGone(ctx)
	}
}
