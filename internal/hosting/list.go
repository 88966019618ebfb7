package hosting

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/see"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

var listVerb = cli.Verb{
	Name:  "list",
	Short: "show one line for each session",
	Long: `Show one line for each session that this user hosts or has hosted: its state, since
when, what became of its entries, and why it ended; until it has ended, also what is
wrong with its inbox, as heartbeat status shows it. A session whose host was killed is
dead until it is finished (by cancel, gc or drain-dlq).`,
	Example: `heartbeat-host list --running
heartbeat-host list --json | jq -r 'select(.status == "failed") | .sessionId'`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o shownFlags
		var running bool
		o.add(f)
		f.BoolVar(&running, "running", false, "only those that have not ended")
		program.AddColor(f, &o.Color)
		return actionOf(f, cli.NoArgs, func(s cli.Streams) error { return list(&o, running, s) })
	},
}

func list(o *shownFlags, running bool, s cli.Streams) error {
	all, err := byStart(o)
	if running {
		all = slices.DeleteFunc(all, func(h *hosted) bool { return h.Status.Ended() })
	}
	loadTroubles(all)
	if o.JSON {
		for _, h := range all {
			if failed := cli.PrintJSON(s.Out, h.shown()); failed != nil {
				return errors.Join(failed, err)
			}
		}
		return err
	}
	if len(all) == 0 && err == nil {
		where, what := "by this user", "no session is hosted"
		if o.DB != "" {
			where = "beside " + o.DB
		}
		if running {
			what += " now"
		}
		s.Note("%s %s", what, where)
		return nil
	}
	return errors.Join(printTable(all, layout.For(s.Out, o.Color)), err)
}

// byStart returns the selected sessions, latest last.
func byStart(o *shownFlags) ([]*hosted, error) {
	all, err := sessions(o, "")
	slices.SortStableFunc(all, func(a, b *hosted) int { return a.State.HostedAt.Compare(b.State.HostedAt) })
	return all, err
}

// maxOffered bounds the sessions that a shell offers: more do not fit on a screen.
const maxOffered = 200

// offeredSessions returns the sessions that a shell offers, running ones first. Unreadable ones are left out.
func offeredSessions() (hints []program.Hint) {
	all, _ := byStart(&shownFlags{})
	running := slices.DeleteFunc(slices.Clone(all), func(h *hosted) bool { return h.Status.Ended() })
	ended := slices.DeleteFunc(all, func(h *hosted) bool { return !h.Status.Ended() })
	all = append(running, ended...)
	for _, h := range all[:min(len(all), maxOffered)] {
		hints = append(hints, program.Hint{ID: h.ID, What: string(h.Status)})
	}
	return hints
}

func (h *hosted) shown() any {
	state := *h.State
	state.Status = h.Status
	return struct {
		*folder.State
		Troubles []see.Trouble `json:"troubles,omitempty"`
	}{&state, h.troubles}
}

// loadTroubles sets the troubles of sessions that have not ended.
func loadTroubles(all []*hosted) {
	open := slices.DeleteFunc(slices.Clone(all), func(h *hosted) bool { return h.Status.Ended() })
	paths := make([]string, len(open))
	for i, h := range open {
		paths[i] = h.State.Inbox
	}
	for i, troubles := range see.TroublesAt(paths...) {
		open[i].troubles = troubles
	}
}

func printTable(all []*hosted, out layout.Output) error {
	now := time.Now()
	t := layout.NewTable(
		layout.Column{Title: "SESSION", Least: 12},
		layout.Column{Title: "STATE", Style: statusStyle},
		layout.Column{Title: "SINCE"},
		layout.Column{Title: "ENTRIES", Right: true},
		layout.Column{Title: "MESSAGES", Right: true},
		layout.Column{Title: "COST", Right: true, IfAny: true},
		layout.Column{Title: "WHY", Text: true, IfAny: true},
		layout.Column{Title: "TROUBLE", Text: true, IfAny: true},
	)
	for _, h := range all {
		since, trouble := h.State.HostedAt, ""
		if h.State.EndedAt != nil {
			since = *h.State.EndedAt
		}
		if len(h.troubles) > 0 {
			trouble = h.troubles[0].Text // the most urgent one
		}
		e := h.State.Entries
		answered := fmt.Sprintf("%d/%d", e.Answered, e.Answered+e.Unanswered())
		t.Add(h.ID, string(h.Status), out.When(now, since), answered,
			strconv.FormatInt(h.State.Messages, 10), cost(h.State.CostUSD), h.why(), trouble)
	}
	return out.Table(t)
}

func cost(usd *float64) string {
	if usd == nil {
		return ""
	}
	return fmt.Sprintf("$%.4f", *usd)
}

// why explains the session's state in one sentence, or is "".
func (h *hosted) why() string {
	switch {
	case h.Status == folder.Dead && h.State.Version == 0:
		return "it has no record: " + words.Shell(command, "cancel", h.ID) + " says what is left"
	case h.Status == folder.Dead:
		return "its host was killed: " + words.Shell(command, "cancel", h.ID) + " finishes it"
	case h.State.Error != "":
		return words.Line(h.State.Error)
	case h.State.StalledSince != nil:
		return "no progress since " + words.Stamp(*h.State.StalledSince)
	}
	return ""
}

func statusStyle(status string) layout.Style {
	switch folder.Status(status) {
	case folder.Completed:
		return layout.Green
	case folder.Failed, folder.Dead, folder.Timeout:
		return layout.Red
	case folder.Cancelled, folder.RateLimited:
		return layout.Yellow
	}
	return layout.Plain
}
