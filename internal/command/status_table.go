package command

import (
	"cmp"
	"fmt"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/internal/watch"
	"heartbeat/internal/words"
)

// table is the status for people.
func (st status) table(d display) *layout.Table {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true, Style: st.style})
	row := func(name, format string, args ...any) { t.Add(name, fmt.Sprintf(format, args...)) }
	row("inbox", "%s", st.Inbox)
	if st.State != see.Unreadable { // nothing else is known then
		st.rows(row, d)
	}
	row("why", "%s", st.Why)
	for _, trouble := range st.Troubles {
		if !strings.Contains(st.Why, trouble.Text) && !hasRow[trouble.Kind] {
			row("trouble", "%s", trouble.Text)
		}
	}
	for _, warning := range st.Warnings {
		row("note", "%s", warning)
	}
	return t
}

// hasRow are the troubles that have their own row in the table.
var hasRow = map[see.Kind]bool{see.KindLetters: true, see.KindPaused: true, see.KindDayOver: true, see.KindQuestion: true}

// style highlights the reason if a person has to act.
func (st status) style(cell string) layout.Style {
	if cell != words.Line(st.Why) {
		return layout.Plain
	}
	return watch.StyleOf(st.State)
}

func (st status) rows(row func(name, format string, args ...any), shown display) {
	if st.Queued > 0 {
		row("queued", "%d (%s)", st.Queued, words.Size(st.QueuedBytes))
	} else {
		row("queued", "0")
	}
	if st.Scheduled > 0 {
		comes := "the next at %s"
		if st.overdue {
			comes = "one is due since %s, and not in the inbox yet: each Stop and heartbeat status try again"
		}
		row("scheduled", "%d, "+comes, st.Scheduled, words.Stamp(*st.NextDue))
	}
	if d := st.InFlight; d != nil {
		cost := ""
		if so := d.Price().String(); so != "" {
			cost = ", " + so + " so far"
		}
		row("in flight", "%s, delivered %s, attempt %d%s", words.Name(d.ID, d.EntryID), shown.at(d.DeliveredAt), d.Attempt, cost)
		d.rows(row, shown)
	} else {
		row("in flight", "nothing")
	}
	if n := st.SelfEnqueued; n != nil {
		row("from agents", "%d entries were sent by agents at work, the last %s", n.Count, shown.at(n.Last))
	}
	row("dead letters", "%d", st.DeadLetters)
	if st.LastAcknowledgedAt != nil {
		checked := ""
		if st.Checked > 0 {
			checked = fmt.Sprintf(" (%d checked)", st.Checked)
		}
		row("answered", "%d%s, the last %s", st.Answered, checked, shown.at(*st.LastAcknowledgedAt))
	} else {
		row("answered", "0")
	}
	for _, c := range st.Consumers {
		row("consumer", "%s", c.shown(shown))
	}
	if st.Today != nil {
		row("spent", "today %s", st.Today)
	}
	if st.Paused != nil {
		row("delivery", "%s", st.Paused.String())
	}
	if st.Backoff != nil {
		row("delivery", "%s", st.Backoff.String())
	}
	if s := st.Session; s != nil {
		row("session", "%s, %s", words.Short(s.ID), s.Life)
	}
	if w := st.Waiter; w != nil {
		wakes := "wakes"
		if w.Life == machine.Gone.String() || w.Life == machine.Rebooted.String() {
			wakes = "was to wake"
		}
		row("background", "process %d, %s, %s %s since %s", w.PID, w.Life, wakes, words.Short(w.SessionID), words.Stamp(w.Since))
	}
	if l := st.Launcher; l != nil {
		row("launcher", "process %d: %s", l.PID, cmp.Or(l.Doing, "it works on the inbox"))
	}
	if q := st.WaitingForPerson; q != nil {
		row("asks", "%s since %s: %s", words.Short(q.SessionID), words.Stamp(q.Since), inbox.Question{Kind: q.Kind, Text: q.Text})
		if st.answerable {
			row("answer it", "%s", words.Shell("heartbeat", "attach", "--inbox", st.Inbox))
		}
	}
}

// rows show what the agent said about the entry in flight.
func (d *flying) rows(row func(name, format string, args ...any), shown display) {
	if p := d.Progress; p != nil {
		row("progress", "%s %s", shown.at(p.At), words.Brief(p.Text))
	}
	if v := d.Verdict; v != nil {
		row("verdict", "%s, once its turn ends: %s", v.Kind, words.Brief(v.Text))
	}
}
