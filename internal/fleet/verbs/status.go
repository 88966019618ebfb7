package verbs

import (
	"fmt"
	"slices"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/words"
)

func status(o *page.Status, s cli.Streams) error {
	ctx, stop := untilSignal(0)
	defer stop()
	return connected(ctx, &o.Link, "status", s, func(c *link.Conn) error {
		var now *seen
		err := c.Again(ctx, func() (err error) {
			now, err = gather(ctx, c, o.Stream)
			return err
		})
		if err != nil {
			return ended(ctx, err)
		}
		s.Warn(now.Warnings)
		if o.JSON {
			return cli.PrintJSON(s.Out, now)
		}
		return now.print(on(s.Out, o.Color, now.At))
	})
}

func (s *seen) print(d display) error {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	t.Add("stream", fmt.Sprintf("%s on %s", s.Stream, s.Server))
	t.Add("waiting", fmt.Sprint(s.Waiting))
	t.Add("in work", fmt.Sprint(s.InWork))
	if s.Oldest != nil {
		t.Add("oldest", words.Took(s.age(*s.Oldest))+" old, "+words.Size(int64(s.Bytes))+" in all")
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
			if err := d.Text(colour.Plain, rest); err != nil {
				return err
			}
		}
	}
	return d.Text(s.style(), s.Why)
}

// style is that of the last sentence.
func (s *seen) style() colour.Style {
	switch s.State {
	case stateEmpty, stateWorking, stateWaiting:
		return colour.Plain
	}
	return colour.Yellow
}

// A person is shown so many agents, and of each so many messages.
const (
	mostRows = 50
	mostHeld = 10
)

// forTable is what the table has, with a sentence about the rest. A file and a program get
// all; a person gets those agents first that do something.
func (s *seen) forTable(d display) (shown []agentSeen, rest string) {
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
func (s *seen) table(agents []agentSeen, d display) *layout.Table {
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
		head := []string{a.Agent, string(a.State), d.when(a.LastSeen), a.Host, a.Subject}
		if len(a.Holds) == 0 {
			t.Add(append(head, "", "", "", a.HeldUp)...)
		}
		for _, h := range a.Holds {
			progress := ""
			if h.Progress != nil {
				progress = d.when(*h.Progress)
			}
			t.Add(append(head, words.Brief(h.ID), d.when(h.Since), progress, because(h, a))...)
			if d.ForPeople() {
				head = []string{"", "", "", "", ""}
			}
		}
	}
	return t
}

// because is what is said of a message that an agent holds.
func because(h holding, a agentSeen) string {
	if a.HeldUp != "" {
		return h.State + ": " + a.HeldUp
	}
	return h.State
}

func livesStyle(cell string) colour.Style {
	switch lives(cell) {
	case working:
		return colour.Green
	case heldUp, draining:
		return colour.Yellow
	case away:
		return colour.Red
	}
	return colour.Plain
}
