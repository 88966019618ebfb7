package verbs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/fleet/message"
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
	statePaused     state = "paused"
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
		return stateNoConsumer, fmt.Sprintf("%s: the stream has no consumer, which %s makes", waits(s.Messages), words.Shell(commandName, "setup", "--stream", s.Stream))
	case len(s.Unclaimed) > 0:
		return stateUnclaimed, fmt.Sprintf("no consumer takes messages of %s: %s", listed(s.Unclaimed), words.Shell(commandName, "setup", "--stream", s.Stream, "--for", s.Unclaimed[0])+" makes one")
	case s.PausedFor > 0 && s.Waiting > 0:
		until := ""
		if s.PausedFor < forever.Seconds()/2 {
			until = " until " + words.Stamp(s.At.Add(time.Duration(s.PausedFor*float64(time.Second))))
		}
		return statePaused, fmt.Sprintf("%s: the stream is paused%s: %s ends that", waits(s.Waiting), until, words.Shell(commandName, "resume", "--stream", s.Stream))
	case len(live) == 0:
		return s.nobody()
	}
	return s.moving(live)
}

// nobody says why nothing moves if no agent is there.
func (s *seen) nobody() (state, string) {
	gone := slices.DeleteFunc(slices.Clone(s.Agents), func(a agentSeen) bool { return a.State != away })
	if len(gone) == 0 {
		return stateNoAgent, waits(s.Messages) + ": no agent is there, which heartbeat-nats agent starts"
	}
	last := slices.MaxFunc(gone, func(a, b agentSeen) int { return a.LastSeen.Compare(b.LastSeen) })
	return stateAway, fmt.Sprintf("%s: no agent is there; %s on %s was seen last, %s", waits(s.Messages), words.Brief(last.Agent), words.Brief(last.Host), words.Ago(s.At, last.LastSeen))
}

// moving says what is waited for if agents are there.
func (s *seen) moving(live []agentSeen) (state, string) {
	var holds, stuck, kept []string
	for _, a := range live {
		for _, h := range a.Holds {
			switch {
			case h.State == message.Stalled:
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
			more = ", and " + waits(s.Waiting)
		}
		return stateHeldUp, fmt.Sprintf("%s with an agent that is held up%s: %s", are(len(kept)), more, s.holdUps(live))
	case worked > 0 && s.Waiting == 0:
		return stateWorking, are(worked) + " worked on, and no more wait"
	case worked > 0:
		return stateWorking, fmt.Sprintf("%s worked on, and %s until one of %s has room", are(worked), waits(s.Waiting), words.Count(len(live), "agent", "agents"))
	case len(stuck) > 0:
		return stateStalled, fmt.Sprintf("nothing moves on %s: its session made no progress, so others may get it", listed(stuck))
	case of(draining):
		return stateDraining, fmt.Sprintf("%s: every agent drains and takes no more", waits(s.Messages))
	case of(heldUp, draining):
		return stateHeldUp, fmt.Sprintf("%s: no agent takes any: %s", waits(s.Messages), s.holdUps(live))
	}
	if s.Waiting == 0 {
		return stateWaiting, words.Count(int(s.Messages), "message comes", "messages come") + " again later: given back until a time, or its agent was killed"
	}
	return stateWaiting, fmt.Sprintf("%s for an agent to pull: %s there", waits(s.Messages), words.Count(len(live), "agent is", "agents are"))
}

// holdUps names what holds up the first few agents.
func (s *seen) holdUps(live []agentSeen) string {
	var all []string
	for _, a := range live {
		if a.HeldUp != "" {
			all = append(all, words.Brief(a.Agent)+": "+words.Line(strings.TrimSuffix(a.HeldUp, ".")))
		}
	}
	return strings.Join(all[:min(len(all), maxUnclaimed)], "; ")
}

func waits(n uint64) string { return words.Count(int(n), "message waits", "messages wait") }

func are(n int) string { return words.Count(n, "message is", "messages are") }

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
