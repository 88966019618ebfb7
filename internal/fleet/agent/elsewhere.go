package agent

import (
	"context"
	"math/rand/v2"
	"time"

	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/presence"
)

// mostLooked is how many other agents are asked what they hold: after an outage all agents
// of a fleet ask at the same time.
const mostLooked = 64

// elsewhere is which agents have messages that may be here too. It is asked for once it is
// needed.
type elsewhere struct {
	a     *Agent
	asked bool
	holds map[place][]holder
}

// place tells messages apart, as far as what agents say of themselves does.
type place struct {
	id  string
	seq uint64
}

// holder is an agent that has a copy of a message.
type holder struct {
	agent string
	copy  uint64
}

// newer is the agent that has a newer copy of a claim's message, "" for none that is known.
//
// Only the older copy is let go, so that of two agents never both do. What an agent says may
// be out of date: then nobody has the message until the server, which nobody has told that
// it is settled, gives it out again.
func (e *elsewhere) newer(ctx context.Context, c claims.Claim) string {
	if !e.asked {
		e.asked, e.holds = true, e.a.heldByOthers(ctx)
	}
	best := holder{copy: c.Copy}
	for _, h := range e.holds[place{c.ID, c.Seq}] {
		if h.copy > best.copy {
			best = h
		}
	}
	return best.agent
}

// heldByOthers is what other agents of the consumer hold that live. Whether one lives is
// told by the server's times alone; what cannot be asked is not known to be held.
func (a *Agent) heldByOthers(ctx context.Context) map[place][]holder {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	a.tell(ctx, true) // has the server's time of now
	own, err := a.o.Agents.Get(ctx, names.Agent(a.o.Agent))
	if err != nil {
		return nil
	}
	now := own.Created().Add(time.Since(a.told.at))
	keys, err := a.o.Others(ctx)
	if err != nil {
		return nil
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	all := map[place][]holder{}
	for _, key := range keys[:min(len(keys), mostLooked)] {
		if key == names.Agent(a.o.Agent) {
			continue
		}
		e, err := a.o.Agents.Get(ctx, key)
		if err != nil {
			continue
		}
		p, err := presence.Parse(e.Value())
		if err != nil || p.Consumer != a.consumer.CachedInfo().Name || p.Ended || now.Sub(e.Created()) >= gone*p.Every() {
			continue
		}
		for _, h := range p.Holds {
			switch h.State {
			case presence.Waits, presence.InFlight, presence.Answered:
				m := place{h.ID, h.Seq}
				all[m] = append(all[m], holder{p.Agent, h.Copy})
			}
		}
	}
	return all
}
