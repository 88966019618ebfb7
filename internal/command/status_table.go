package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/watch"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

func (st status) table(d display) *layout.Table {
	style := func(cell string) layout.Style { // highlights the reason if a person has to act
		if cell != words.Line(st.Why) {
			return layout.Plain
		}
		return watch.StyleOf(st.State)
	}
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true, Style: style})
	row := func(name, format string, args ...any) { t.Add(name, fmt.Sprintf(format, args...)) }
	row("inbox", "%s", st.Inbox)
	if st.State != see.Unreadable {
		st.rows(row, d)
	}
	row("why", "%s", st.Why)
	for _, trouble := range st.Troubles {
		if !strings.Contains(st.Why, trouble.Text) && !hasRow[trouble.Kind] {
			row("trouble", "%s", trouble.Text)
		}
	}
	for _, text := range see.GoOn(st.Runs, st.Inbox, st.Why) {
		row("run", "%s", text)
	}
	for _, warning := range st.Warnings {
		row("note", "%s", warning)
	}
	return t
}

// hasRow are the troubles that have their own row in the table.
var hasRow = map[see.Kind]bool{see.KindLetters: true, see.KindPaused: true, see.KindDayOver: true, see.KindQuestion: true}

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
		if so := price.Of(d.Cost).String(); so != "" {
			cost = ", " + so + " so far"
		}
		row("in flight", "%s, delivered %s, attempt %d%s", words.Name(d.ID, d.EntryID), shown.at(d.DeliveredAt), d.Attempt, cost)
		d.rows(row, shown)
	} else {
		row("in flight", "nothing")
	}
	if n := st.SelfEnqueued; n != nil {
		row("from agents", "%s sent by agents at work, the last %s", words.Count(int(n.Count), "entry was", "entries were"), shown.at(n.Last))
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

func (d *flying) rows(row func(name, format string, args ...any), shown display) {
	if p := d.Progress; p != nil {
		row("progress", "%s %s", shown.at(p.At), words.Brief(p.Text))
	}
	if v := d.Verdict; v != nil {
		row("verdict", "%s, once its turn ends: %s", v.Kind, words.Brief(v.Text))
	}
}

// spentToday is what was spent since midnight, and the limits of a day.
type spentToday struct {
	Date string `json:"date"`
	inbox.Cost
	LimitUSD    *price.Nanos `json:"limit_usd,omitempty"`
	LimitTokens int64        `json:"limit_tokens,omitempty"`
}

// String returns "3.10 of 50.00 USD", or without the limit. Tokens appear if limited, or if no dollars are known.
func (t spentToday) String() string {
	p := price.Of(t.Cost)
	var parts []string
	switch {
	case p.Dollars && t.LimitUSD != nil:
		parts = append(parts, p.Cell()+" of "+price.FormatUSD(int64(*t.LimitUSD))+" USD")
	case p.Dollars:
		parts = append(parts, p.String())
	case t.LimitUSD != nil && p.Requests > 0:
		parts = append(parts, "an unknown part of "+price.FormatUSD(int64(*t.LimitUSD))+" USD")
	case t.LimitUSD != nil:
		parts = append(parts, "nothing of "+price.FormatUSD(int64(*t.LimitUSD))+" USD")
	}
	switch sum := price.FormatTokens(p.Tokens.Sum()); {
	case t.LimitTokens > 0:
		parts = append(parts, sum+" of "+price.FormatTokens(t.LimitTokens)+" tokens")
	case !p.Dollars && p.Requests > 0:
		parts = append(parts, sum+" tokens")
	}
	return strings.Join(parts, ", ")
}

// spent sets what was spent today and on the entry in flight. What cannot be read becomes a warning.
func (st *status) spent(f see.Facts) {
	now, err := f.Spent()
	if err != nil {
		st.Warnings = append(st.Warnings, "what was spent cannot be told: "+err.Error())
		return
	}
	if d := f.InFlight; d != nil && st.InFlight != nil {
		if p, known := now.OfDelivery(d); known {
			st.InFlight.Cost = p.Cost()
		}
	}
	limit := recovery.DayLimit(&now.Account)
	if now.Total().IsZero() && !limit.Any() {
		return // nobody counts, or nothing was spent yet
	}
	spent := price.Price{Amount: now.Today()}
	if n := spent.Unpriced; n > 0 {
		st.Warnings = append(st.Warnings, "what was spent today is at least that much: for "+words.Count(int(n), "request", "requests")+
			" nobody knows the price of the model: "+meter.SayPrices())
	}
	spent.Dollars = now.Total().Dollars // dollars are known, so none today is 0
	st.Today = &spentToday{Date: f.Now.Local().Format(time.DateOnly), Cost: spent.Cost(), LimitTokens: limit.Tokens}
	if limit.Nanos > 0 {
		st.Today.LimitUSD = new(price.Nanos(limit.Nanos))
	}
}

// taker is a consumer of results, as --json prints it.
type taker struct {
	Name   string     `json:"name"`
	Behind int        `json:"behind"` // not handed over yet
	Had    int64      `json:"had"`
	LastAt *time.Time `json:"last_at"`
	Error  string     `json:"error,omitempty"` // of the last try
}

func (st *status) takers(box *inbox.Inbox, f see.Facts) {
	for _, c := range f.Consumers {
		if c.Err != nil {
			continue // a warning tells why
		}
		behind, err := outcomes.Behind(box, c)
		if err != nil {
			st.Warnings = append(st.Warnings, err.Error())
			continue
		}
		t := taker{Name: c.Name, Behind: behind, Had: c.Had, LastAt: c.LastAt}
		if c.Failing != nil {
			t.Error = words.Sentence(c.Failing.Error)
		}
		st.Consumers = append(st.Consumers, t)
	}
}

func (t taker) shown(d display) string {
	text := t.Name + " has had all"
	if t.Behind > 0 {
		text = fmt.Sprintf("%s is %d behind", t.Name, t.Behind)
	}
	if t.LastAt != nil {
		text += ", and was handed the last " + d.at(*t.LastAt)
	}
	return text
}
