package verbs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/words"
)

func statusVerb() cli.Verb {
	return cli.Verb{
		Name:  "status",
		Short: "show what waits, what each agent works on, and why nothing moves",
		Long: `Show how many messages the stream holds, how many of them agents have, how old the
oldest is, how many dead letters there are, and for each agent what it works on,
since when, when that made progress, and when the agent was last seen. Ages go by
the server's clock, whatever the agents' clocks show. What is wrong with inboxes
on this machine is shown as heartbeat status shows it. The last sentence says why
nothing moves, or what is being waited for.

Exit status: 0 shown, 1 the server cannot be reached or asked, and the sentence
says why.`,
		Example: `heartbeat-nats status
heartbeat-nats status --json | jq -r .why`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o common
			var color string
			o.begin(f)
			program.AddColor(f, &color)
			return o.action(f, "status", cli.NoArgs, func(ctx context.Context) error {
				now, err := o.gather(ctx)
				if err != nil {
					return err
				}
				now.addTroubles()
				o.s.Warn(now.Warnings)
				if o.json {
					return cli.PrintJSON(o.s.Out, now)
				}
				return now.print(layout.For(o.s.Out, color))
			})
		},
	}
}

func (s *seen) print(d layout.Output) error {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	t.Add("stream", fmt.Sprintf("%s on %s", s.Stream, s.Server))
	t.Add("waiting", fmt.Sprint(s.Waiting))
	t.Add("in work", fmt.Sprint(s.InWork))
	if s.Oldest != nil {
		t.Add("oldest", words.Took(max(0, s.At.Sub(*s.Oldest)))+" old, "+words.Size(int64(s.Bytes))+" in all")
	}
	t.Add("dead letters", fmt.Sprint(s.DeadLetters))
	if err := d.Table(t); err != nil {
		return err
	}
	if len(s.Agents) > 0 {
		shown, rest := s.forTable(d)
		if err := d.Table(s.table(shown, d)); err != nil {
			return err
		}
		if rest != "" {
			if err := d.Text(layout.Plain, rest); err != nil {
				return err
			}
		}
	}
	troubles := layout.NewTable(layout.Column{}, layout.Column{Text: true, Cut: true, Most: 24}, layout.Column{Text: true})
	for _, a := range s.Agents {
		for _, trouble := range a.Troubles {
			troubles.Add("trouble", a.Agent, trouble.Text)
		}
	}
	if err := d.Table(troubles); err != nil {
		return err
	}
	switch s.State {
	case stateEmpty, stateWorking, stateWaiting:
		return d.Text(layout.Plain, s.Why)
	}
	return d.Text(layout.Yellow, s.Why)
}

// Limits on what a person is shown.
const (
	mostRows = 50 // agents
	mostHeld = 10 // messages of each
)

// forTable returns the agents for the table, all unless for a person, and a sentence about those of less importance.
func (s *seen) forTable(d layout.Output) (shown []agentSeen, rest string) {
	if !d.ForPeople() {
		return s.Agents, ""
	}
	shown = slices.Clone(s.Agents)
	var more []string
	if len(shown) > mostRows {
		slices.SortStableFunc(shown, func(a, b agentSeen) int { return slices.Index(byWeight, a.State) - slices.Index(byWeight, b.State) })
		shown = shown[:mostRows]
		more = append(more, words.Count(len(s.Agents)-mostRows, "more agent", "more agents"))
	}
	messages := 0
	for i := range shown {
		held := shown[i].Holds
		shown[i].Holds = held[:min(len(held), mostHeld)]
		messages += len(held) - len(shown[i].Holds)
	}
	if messages > 0 {
		more = append(more, words.Count(messages, "more message of these", "more messages of these"))
	}
	if len(more) > 0 {
		rest = "not shown: " + strings.Join(more, ", and ") + "; --json has all"
	}
	return shown, rest
}

// byWeight is the order in which states matter to a person.
var byWeight = []lives{heldUp, working, draining, away, idle, over}

var styleOf = map[lives]layout.Style{working: layout.Green, heldUp: layout.Yellow, draining: layout.Yellow, away: layout.Red}

func (s *seen) table(agents []agentSeen, d layout.Output) *layout.Table {
	t := layout.NewTable(
		layout.Column{Title: "AGENT", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "STATE", Style: func(cell string) layout.Style { return styleOf[lives(cell)] }},
		layout.Column{Title: "SEEN"},
		layout.Column{Title: "HOST", Text: true, Cut: true, Most: 20},
		layout.Column{Title: "SUBJECT", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "WORKS ON", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "SINCE"},
		layout.Column{Title: "PROGRESS"},
		layout.Column{Title: "WHY", Text: true, IfAny: true},
	)
	for _, a := range agents {
		head := []string{a.Agent, string(a.State), d.When(s.At, a.LastSeen), a.Host, a.Subject}
		if len(a.Holds) == 0 {
			t.Add(append(head, "", "", "", a.HeldUp)...)
		}
		for _, h := range a.Holds {
			why := h.State
			if a.HeldUp != "" {
				why += ": " + a.HeldUp
			}
			t.Add(append(head, words.Brief(h.ID), d.When(s.At, h.Since), d.When(s.At, h.ProgressAt), why)...)
			if d.ForPeople() {
				head = []string{"", "", "", "", ""}
			}
		}
	}
	return t
}

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

// explain returns in one sentence why nothing moves, or what is being waited for.
func (s *seen) explain() (state, string) {
	live := slices.DeleteFunc(slices.Clone(s.Agents), func(a agentSeen) bool { return a.State == away || a.State == over })
	switch {
	case s.Messages == 0:
		return stateEmpty, "nothing waits: the stream is empty"
	case len(s.Consumers) == 0:
		return stateNoConsumer, fmt.Sprintf("%s: the stream has no consumer, which %s makes", waits(s.Messages), link.Typed(s.nc, "setup", "--stream", s.Stream))
	case len(s.Unclaimed) > 0:
		return stateUnclaimed, fmt.Sprintf("no consumer takes messages of %s: %s", listed(s.Unclaimed), link.Typed(s.nc, "setup", "--stream", s.Stream, "--for", s.forSetup)+" makes one")
	case s.passed != "":
		return stateUnclaimed, fmt.Sprintf("%s: the consumer %s has handed out some as often as it was allowed to: nats consumer rm %s %[2]s removes it, and %[4]s makes one that hands them out again", waits(s.Waiting), s.passed, s.Stream, link.Typed(s.nc, "setup", "--stream", s.Stream))
	case s.PausedFor > 0 && s.Waiting > 0:
		until := ""
		if s.PausedFor < forever.Seconds()/2 {
			until = " until " + words.Stamp(s.At.Add(time.Duration(s.PausedFor*float64(time.Second))))
		}
		return statePaused, fmt.Sprintf("%s: the stream is paused%s: %s ends that", waits(s.Waiting), until, link.Typed(s.nc, "resume", "--stream", s.Stream))
	case len(live) == 0:
		return s.nobody(waits(s.Messages), s.Agents)
	}
	for _, c := range s.Consumers {
		notIts := func(a agentSeen) bool { return a.consumer != c.Name && a.consumer != "" }
		of := " of " + listed(c.Subjects)
		these := words.Count(int(c.Waiting), "message"+of+" waits", "messages"+of+" wait")
		switch {
		case c.Waiting == 0:
		case !setup.IsOurs(c.info) && !s.lackConsumer(): // the stream is shared on purpose
		case !setup.IsOurs(c.info):
			return stateUnclaimed, fmt.Sprintf("%s for the consumer %s, which is not for agents: remove that one, and %s makes one", these, c.Name, link.Typed(s.nc, "setup", "--stream", s.Stream))
		case c.info.Paused:
			return statePaused, fmt.Sprintf("%s: the consumer %s is paused: %s ends that", these, c.Name, link.Typed(s.nc, "resume", "--stream", s.Stream))
		case !slices.ContainsFunc(live, func(a agentSeen) bool { return !notIts(a) }):
			return s.nobody(these, slices.DeleteFunc(slices.Clone(s.Agents), notIts))
		case c.info.Config.MaxAckPending > 0 && c.InWork >= c.info.Config.MaxAckPending:
			return stateWaiting, fmt.Sprintf("%s: the consumer %s has no more than %d out at a time, also of those that come again later: %s ends that", these, c.Name, c.InWork, link.Typed(s.nc, "setup", "--stream", s.Stream))
		}
	}
	return s.moving(live)
}

// lackConsumer reports whether agents have no consumer, or one of them has a consumer that is gone.
func (s *seen) lackConsumer() bool {
	ours := map[string]bool{}
	for _, c := range s.Consumers {
		ours[c.Name] = setup.IsOurs(c.info)
	}
	return !slices.Contains(slices.Collect(maps.Values(ours)), true) || slices.ContainsFunc(s.Agents, func(a agentSeen) bool { return a.consumer != "" && !ours[a.consumer] })
}

// nobody returns that no agent is there for what waits, and which of the agents that could take it was seen last.
func (s *seen) nobody(waiting string, agents []agentSeen) (state, string) {
	gone := slices.DeleteFunc(slices.Clone(agents), func(a agentSeen) bool { return a.State != away })
	if len(gone) == 0 {
		return stateNoAgent, waiting + ": no agent is there, which heartbeat-nats agent starts"
	}
	last := slices.MaxFunc(gone, func(a, b agentSeen) int { return a.LastSeen.Compare(b.LastSeen) })
	return stateAway, fmt.Sprintf("%s: no agent is there; %s on %s was seen last, %s", waiting, words.Brief(last.Agent), words.Brief(last.Host), words.Ago(s.At, last.LastSeen))
}

func (s *seen) moving(live []agentSeen) (state, string) {
	var holds, stuck, kept []string
	for _, a := range live {
		for _, h := range a.Holds {
			switch {
			case h.State == message.Stalled:
				stuck = append(stuck, h.ID)
			case a.HeldUp != "" && !a.busy:
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
		return stateWorking, fmt.Sprintf("%s worked on, and %s until %s has room", are(worked), waits(s.Waiting), oneOf(len(live)))
	case len(stuck) > 0:
		return stateStalled, fmt.Sprintf("nothing moves on %s: its session made no progress, so others may get it", listed(stuck))
	case of(draining):
		return stateDraining, fmt.Sprintf("%s: every agent drains and takes no more", waits(s.Messages))
	case of(heldUp, draining):
		return stateHeldUp, fmt.Sprintf("%s: no agent takes any: %s", waits(s.Messages), s.holdUps(live))
	case of(heldUp, draining, working) && s.Waiting > 0:
		return stateWorking, fmt.Sprintf("%s until %s has room: %s", waits(s.Waiting), oneOf(len(live)), s.holdUps(live))
	}
	if s.Waiting == 0 {
		return stateWaiting, words.Count(int(s.Messages), "message comes", "messages come") + " again later: given back until a time, or its agent was killed"
	}
	return stateWaiting, fmt.Sprintf("%s for an agent to pull: %s there", waits(s.Messages), words.Count(len(live), "agent is", "agents are"))
}

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

func oneOf(agents int) string {
	if agents == 1 {
		return "the agent"
	}
	return fmt.Sprintf("one of %d agents", agents)
}

func are(n int) string { return words.Count(n, "message is", "messages are") }

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
