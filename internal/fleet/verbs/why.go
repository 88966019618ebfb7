package verbs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/presence"
	"heartbeat/internal/words"
)

// state is why nothing moves, in a word for programs.
type state string

const (
	stateEmpty      state = "empty"
	stateNoConsumer state = "no consumer"
	stateUnclaimed  state = "unclaimed"
	stateNoAgent    state = "no agent"
	stateAway       state = "agents away"
	stateDraining   state = "draining"
	stateHeldUp     state = "held up"
	stateStalled    state = "stalled"
	stateWorking    state = "working"
	stateWaiting    state = "waiting"
)

// explain says in one sentence why nothing moves, or what is being waited for.
func (s *seen) explain() (state, string) {
	live := slices.DeleteFunc(slices.Clone(s.Agents), func(a agentSeen) bool { return a.State == away || a.State == over })
	switch {
	case s.Messages == 0:
		return stateEmpty, "nothing waits: the stream is empty"
	case len(s.Consumers) == 0:
		return stateNoConsumer, fmt.Sprintf("%s: the stream has no consumer, which %s makes", messages(s.Messages, "waits", "wait"), words.Shell(page.CommandName, "setup", "--stream", s.Stream))
	case len(s.Unclaimed) > 0:
		return stateUnclaimed, fmt.Sprintf("no consumer takes messages of %s: %s", listed(s.Unclaimed), words.Shell(page.CommandName, "setup", "--stream", s.Stream, "--for", s.Unclaimed[0])+" makes one")
	case len(live) == 0:
		return s.nobody()
	}
	return s.moving(live)
}

// nobody is why nothing moves where no agent is there.
func (s *seen) nobody() (state, string) {
	waits := messages(s.Messages, "waits", "wait")
	gone := slices.DeleteFunc(slices.Clone(s.Agents), func(a agentSeen) bool { return a.State != away })
	if len(gone) == 0 {
		return stateNoAgent, waits + ": no agent is there, which heartbeat-nats agent starts"
	}
	last := slices.MaxFunc(gone, func(a, b agentSeen) int { return a.LastSeen.Compare(b.LastSeen) })
	return stateAway, fmt.Sprintf("%s: no agent is there; %s on %s was seen last, %s", waits, words.Brief(last.Agent), words.Brief(last.Host), words.Ago(s.At, last.LastSeen))
}

// moving is what is waited for where agents are there.
func (s *seen) moving(live []agentSeen) (state, string) {
	var holds, stuck, kept []string
	for _, a := range live {
		for _, h := range a.Holds {
			switch {
			case h.State == presence.Stalled:
				stuck = append(stuck, h.ID)
			case a.HeldUp != "":
				kept = append(kept, h.ID)
			default:
				holds = append(holds, h.ID)
			}
		}
	}
	of := func(is ...lives) bool {
		return !slices.ContainsFunc(live, func(a agentSeen) bool { return !slices.Contains(is, a.State) })
	}
	switch worked := len(holds) + len(kept); {
	case len(holds) == 0 && len(kept) > 0 && (s.Waiting == 0 || of(heldUp, working, draining)):
		more := ""
		if s.Waiting > 0 {
			more = ", and " + messages(s.Waiting, "waits", "wait")
		}
		return stateHeldUp, fmt.Sprintf("%s with an agent that is held up%s: %s", are(len(kept)), more, s.holdUps(live))
	case worked > 0 && s.Waiting == 0:
		return stateWorking, are(worked) + " worked on, and no more wait"
	case worked > 0:
		return stateWorking, fmt.Sprintf("%s worked on, and %s until one of %s has room", are(worked), messages(s.Waiting, "waits", "wait"), words.Count(len(live), "agent", "agents"))
	case len(stuck) > 0:
		return stateStalled, fmt.Sprintf("nothing moves on %s: its session made no progress, so others may get it", listed(stuck))
	case of(draining):
		return stateDraining, fmt.Sprintf("%s: every agent drains and takes no more", messages(s.Messages, "waits", "wait"))
	case of(heldUp, draining):
		return stateHeldUp, fmt.Sprintf("%s: no agent takes any: %s", messages(s.Messages, "waits", "wait"), s.holdUps(live))
	}
	if s.Waiting == 0 {
		return stateWaiting, messages(s.Messages, "comes", "come") + " again later: given back until a time, or its agent was killed"
	}
	return stateWaiting, fmt.Sprintf("%s for an agent to pull: %s there", messages(s.Messages, "waits", "wait"), areAgents(len(live)))
}

// holdUps names what holds up each agent, the first few.
func (s *seen) holdUps(live []agentSeen) string {
	var all []string
	for _, a := range live {
		if a.HeldUp != "" {
			all = append(all, words.Brief(a.Agent)+": "+words.Line(strings.TrimSuffix(a.HeldUp, ".")))
		}
	}
	return strings.Join(all[:min(len(all), maxUnclaimed)], "; ")
}

func messages(n uint64, one, many string) string {
	if n == 1 {
		return "1 message " + one
	}
	return fmt.Sprintf("%d messages %s", n, many)
}

func are(n int) string {
	if n == 1 {
		return "1 message is"
	}
	return fmt.Sprintf("%d messages are", n)
}

func areAgents(n int) string {
	if n == 1 {
		return "1 agent is"
	}
	return fmt.Sprintf("%d agents are", n)
}

// listed names the first few.
func listed(all []string) string {
	var b []string
	for _, one := range all[:min(len(all), maxUnclaimed)] {
		b = append(b, words.Brief(one))
	}
	text := strings.Join(b, ", ")
	if len(all) > maxUnclaimed {
		text += " and more"
	}
	return text
}

// age is how long ago something was, by the server's clock.
func (s *seen) age(t time.Time) time.Duration { return max(0, s.At.Sub(t)) }
