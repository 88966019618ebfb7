package verbs

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
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
on this machine is said as heartbeat status says it. The last sentence says why
nothing moves, or what is being waited for.

Exit status: 0 shown, 1 the server cannot be reached or asked, and the sentence
says why.`,
		Example: `heartbeat-nats status
heartbeat-nats status --json | jq -r .why`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o common
			var color string
			f := o.begin("status")
			program.AddColor(f, &color)
			return o.action(f, "status", cli.NoArgs, func(ctx context.Context) error {
				now, err := o.gather(ctx)
				if err != nil {
					return err
				}
				now.lookInto()
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
	if err := d.Table(s.troubles()); err != nil {
		return err
	}
	switch s.State {
	case stateEmpty, stateWorking, stateWaiting:
		return d.Text(layout.Plain, s.Why)
	}
	return d.Text(layout.Yellow, s.Why)
}

// troubles has a row for each trouble of an inbox on this machine.
func (s *seen) troubles() *layout.Table {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true, Cut: true, Most: 24}, layout.Column{Text: true})
	for _, a := range s.Agents {
		for _, trouble := range a.Troubles {
			t.Add("trouble", a.Agent, trouble.Text)
		}
	}
	return t
}

// Limits for a person: agents, and messages of each agent.
const (
	mostRows = 50
	mostHeld = 10
)

// forTable returns the agents for the table, and a sentence about the rest. A file or a program gets all. A person
// gets the most important states first.
func (s *seen) forTable(d layout.Output) (shown []agentSeen, rest string) {
	if !d.ForPeople() {
		return s.Agents, ""
	}
	shown = slices.Clone(s.Agents)
	if len(shown) > mostRows {
		slices.SortStableFunc(shown, func(a, b agentSeen) int { return slices.Index(byWeight, a.State) - slices.Index(byWeight, b.State) })
		shown = shown[:mostRows]
		rest = words.Count(len(s.Agents)-mostRows, "more agent", "more agents")
	}
	messages := 0
	for i := range shown {
		held := shown[i].Holds
		shown[i].Holds = held[:min(len(held), mostHeld)]
		messages += len(held) - len(shown[i].Holds)
	}
	if messages > 0 {
		if rest != "" {
			rest += ", and "
		}
		rest += words.Count(messages, "more message of these", "more messages of these")
	}
	if rest != "" {
		rest = "not shown: " + rest + "; --json has all"
	}
	return shown, rest
}

// byWeight is the order in which states matter to a person.
var byWeight = []lives{heldUp, working, draining, away, idle, over}

// table has a row for each agent, and one for each message that it holds.
func (s *seen) table(agents []agentSeen, d layout.Output) *layout.Table {
	t := layout.NewTable(
		layout.Column{Title: "AGENT", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "STATE", Style: livesStyle},
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

func livesStyle(cell string) layout.Style {
	switch lives(cell) {
	case working:
		return layout.Green
	case heldUp, draining:
		return layout.Yellow
	case away:
		return layout.Red
	}
	return layout.Plain
}
