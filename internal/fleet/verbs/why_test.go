package verbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/fleet/message"
)

// An agent says why nobody works on what it holds, and so does status.
func TestWhyWhatIsHeldLiesStill(t *testing.T) {
	desk := agentSeen{Agent: "desk", State: working, HeldUp: "its session ended", Holds: []holding{{Hold: message.Hold{ID: "a", State: "in flight"}}}}
	other := agentSeen{Agent: "other", State: working, Holds: []holding{{Hold: message.Hold{ID: "b", State: "in flight"}}}}
	free := agentSeen{Agent: "free", State: idle}
	ill := agentSeen{Agent: "ill", State: heldUp, HeldUp: "a rate limit"}
	busy := agentSeen{Agent: "two", State: working, HeldUp: "its inbox has entries of others", busy: true}
	both := busy
	both.Holds = other.Holds
	for name, c := range map[string]struct {
		agents  []agentSeen
		waiting uint64
		state   state
		why     string
	}{
		"alone":                       {[]agentSeen{desk}, 0, stateHeldUp, "1 message is with an agent that is held up: desk: its session ended"},
		"beside one that has nothing": {[]agentSeen{desk, free}, 0, stateHeldUp, "1 message is with an agent that is held up: desk: its session ended"},
		"beside one that works":       {[]agentSeen{desk, other}, 0, stateWorking, "2 messages are worked on, and no more wait"},
		"busy":                        {[]agentSeen{busy}, 2, stateWorking, "2 messages wait until the agent has room: two: its inbox has entries of others"},
		"busy beside one held up":     {[]agentSeen{busy, ill}, 2, stateWorking, "2 messages wait until one of 2 agents has room: two: its inbox has entries of others; ill: a rate limit"},
		"busy with a message, too":    {[]agentSeen{both}, 2, stateWorking, "1 message is worked on, and 2 messages wait until the agent has room"},
		"others wait":                 {[]agentSeen{desk}, 2, stateHeldUp, "1 message is with an agent that is held up, and 2 messages wait: desk: its session ended"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &seen{Messages: 2 + c.waiting, Waiting: c.waiting, Consumers: make([]consumer, 1), Agents: c.agents}
			is, why := s.explain()
			assert.Equal(t, c.state, is)
			assert.Equal(t, c.why, why)
		})
	}
}

// A rolling upgrade is said, by release; who has ended is not of it.
func TestSeveralReleases(t *testing.T) {
	s := &seen{Agents: []agentSeen{{Agent: "one", Release: "v0.2.0"}, {Agent: "two"}, {Agent: "three", Release: "v0.2.0"}, {Agent: "four", Release: "v0.1.0", State: over}}}
	s.warnOfReleases()
	assert.Equal(t, []string{"agents have several releases: an older release (two), v0.2.0 (one, three)"}, s.Warnings)
	s = &seen{Agents: s.Agents[:1]}
	s.warnOfReleases()
	assert.Empty(t, s.Warnings)
}

// An agent that holds nothing is forgotten after an hour, also one that ended in order.
func TestAgentsThatAreForgotten(t *testing.T) {
	now := time.Now()
	seenAgo := func(is lives, ago time.Duration, holds ...holding) *agentSeen {
		return &agentSeen{State: is, LastSeen: now.Add(-ago), Holds: holds}
	}
	for _, is := range []lives{away, over} {
		assert.True(t, seenAgo(is, time.Hour).isForgotten(now), is)
		assert.False(t, seenAgo(is, time.Hour-time.Second).isForgotten(now), is)
		assert.False(t, seenAgo(is, time.Hour, holding{}).isForgotten(now), is)
	}
	assert.False(t, seenAgo(idle, time.Hour).isForgotten(now), "its AckWait is longer")
}
