package hosting

import (
	"context"
	"fmt"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

const askTimeout = 10 * time.Second

var statusVerb = cli.Verb{
	Name:  "status",
	Args:  "ID",
	IDs:   sessionIDs,
	Short: "show what a session is doing, and what became of it",
	Long: `Show a session's state, its entries, how its client ended, which reports the guild has,
and what is wrong; until it has ended, also with its inbox, as heartbeat status shows it.
It asks the session's host, or reads what the host left behind.

` + whichID + `

Exit status: 0 shown; 1 not: there is no such session, or more than one.`,
	Example: `heartbeat-host status ses-1
heartbeat-host status ses-1 --json | jq -r .status`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o oneFlags
		o.add(f)
		program.AddColor(f, &o.Color)
		return o.action(f, func(h *hosted, s cli.Streams) error { return h.status(&o, s) })
	},
}

func (h *hosted) status(o *oneFlags, s cli.Streams) error {
	h.refresh()
	loadTroubles([]*hosted{h})
	if o.JSON {
		return cli.PrintJSON(s.Out, h.shown())
	}
	out := layout.For(s.Out, o.Color)
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true, Style: statusStyle})
	for _, row := range h.rows(out, time.Now()) {
		if row[1] != "" {
			t.Add(row[0], row[1])
		}
	}
	return out.Table(t)
}

// refresh gets the state from the host: the record is not written at each message.
func (h *hosted) refresh() {
	if h.Host == 0 || h.Status.Ended() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	var now folder.State
	if err := (attach.Host{Folder: h.Dir()}).Status(ctx, &now); err != nil {
		_ = h.reopen() // it may have ended just now; on an error the old record will do
	} else if now.SessionID == h.ID {
		h.State, h.Status = &now, now.Status
		// The host counts entries only when a client has ended.
		if counted, err := session.Entries(h.Folder, now); err == nil {
			now.Entries = counted
		}
	}
}

// rows returns the rows of status, a name and a value each. Rows with an empty value are not shown.
func (h *hosted) rows(out layout.Output, now time.Time) [][2]string {
	s := h.State
	at := func(t *time.Time) string { return known(t, func(t *time.Time) string { return out.When(now, *t) }) }
	rows := [][2]string{
		{"session", h.ID}, {"state", string(h.Status)}, {"why", h.why()},
		{"started", s.StartedAt}, {"hosted", out.When(now, s.HostedAt)}, {"ended", at(s.EndedAt)},
		{"entries", entriesOf(s.Entries)}, {"result", known(s.Result, resultOf)}, {"exit", known(s.Exit, exitOf)},
		{"messages", messagesOf(s)}, {"last message", at(s.LastMessageAt)}, {"cost", cost(s.CostUSD)},
		{"tools", known(s.Tools, toolsOf)}, {"cancel", known(s.Cancel, cancelOf)},
		{"running report", reportOf(s.RunningReport, "")}, {"final report", reportOf(s.TerminalReport, s.Status)},
		{"store", s.Store}, {"guild", s.GuildToolURL}, {"database", s.DB}, {"inbox", s.Inbox}, {"log", s.LogPath}, {"cwd", s.Cwd},
	}
	if s.Host != nil && !s.Status.Ended() {
		rows = append(rows, [2]string{"host", fmt.Sprintf("pid %d, process group %d", s.Host.PID, s.PGID)})
	}
	for _, trouble := range h.troubles {
		rows = append(rows, [2]string{"trouble", trouble.Text})
	}
	for _, w := range s.Warnings {
		rows = append(rows, [2]string{"warning", w})
	}
	return append(rows, [2]string{"output", words.Brief(s.Output)})
}

func known[T any](what *T, say func(*T) string) string {
	if what == nil {
		return ""
	}
	return say(what)
}

func entriesOf(e folder.Entries) string {
	return fmt.Sprintf("%d answered", e.Answered) + e.Rest([4]string{"in flight", "queued", "dead-lettered", "replied to unread"})
}

func resultOf(r *folder.Result) string {
	text := r.Subtype
	if r.IsError {
		text += ", an error"
	}
	return text + ", " + words.Count(r.NumTurns, "turn", "turns")
}

func exitOf(e *folder.Exit) string {
	text := fmt.Sprintf("code %d", e.Code)
	if e.Signal != "" {
		text = e.Signal
	}
	if e.Forced {
		text += ", killed since it did not exit after its result"
	}
	return text
}

func messagesOf(s *folder.State) string {
	text := fmt.Sprint(s.Messages)
	if s.Lost > 0 {
		text += fmt.Sprintf(", %d lost", s.Lost)
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf(", %d not in the database when it was reported", s.Waiting)
	}
	return text
}

func toolsOf(t *folder.Tools) string {
	text := words.Count(int(t.Calls), "call", "calls")
	if t.Open > 0 {
		text += fmt.Sprintf(", %d of them open", t.Open)
	}
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d of them failed, at last %s", t.Failed, words.Line(t.LastError))
	}
	if !t.Listed {
		text += ", and the client has not asked for the list"
	}
	return text
}

func cancelOf(c *folder.Cancel) string {
	return "by " + words.Line(c.By) + " at " + words.Stamp(c.At)
}

// reportOf describes what became of a report, and with which other status the guild took it.
func reportOf(r folder.Report, status folder.Status) string {
	text := string(r.State)
	if r.As != "" && r.As != status {
		text += " as " + string(r.As)
	}
	if r.Reason != "" {
		text += ": " + words.Line(r.Reason)
	}
	return text
}
