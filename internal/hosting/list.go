package hosting

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

func list(o *verbs.Listing, s cli.Streams) error {
	all, err := sessions(&o.Shown)
	if o.Running {
		all = slices.DeleteFunc(all, func(h *hosted) bool { return h.status.Ended() })
	}
	if o.JSON {
		return errors.Join(printAll(all, s), err)
	}
	if len(all) == 0 && err == nil {
		s.Note("%s", nobody(o))
		return nil
	}
	return errors.Join(printTable(all, layout.For(s.Out, o.Color)), err)
}

func nobody(o *verbs.Listing) string {
	where, what := "by this user", "no session is hosted"
	if o.DB != "" {
		where = "beside " + o.DB
	}
	if o.Running {
		what += " now"
	}
	return what + " " + where
}

// sessions reads those that the flags mean, the latest last. What cannot be read is
// left out and named in the error.
func sessions(o *verbs.Shown) (all []*hosted, problems error) {
	found, problems := folders(o)
	for _, f := range found {
		h, err := open(f)
		switch {
		case err == nil:
			all = append(all, h)
		case !errors.Is(err, fs.ErrNotExist): // else its folder was removed
			problems = errors.Join(problems, err)
		}
	}
	slices.SortStableFunc(all, func(a, b *hosted) int { return a.State.HostedAt.Compare(b.State.HostedAt) })
	return all, problems
}

func printAll(all []*hosted, s cli.Streams) error {
	for _, h := range all {
		if err := printJSON(s, h.shown()); err != nil {
			return err
		}
	}
	return nil
}

// shown is the record as --json prints it.
func (h *hosted) shown() *folder.State {
	state := *h.State
	state.Status = h.status
	return &state
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
	)
	for _, h := range all {
		t.Add(h.ID, string(h.status), when(out, now, h.since()), entries(h.State.Entries),
			strconv.FormatInt(h.State.Messages, 10), cost(h.State.CostUSD), h.why())
	}
	return out.Table(t)
}

// since is when the session got into its state, as far as that is known.
func (h *hosted) since() time.Time {
	if h.State.EndedAt != nil {
		return *h.State.EndedAt
	}
	return h.State.HostedAt
}

func when(out layout.Output, now, t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case out.ForPeople():
		return words.Ago(now, t)
	}
	return words.Stamp(t)
}

// entries is how many were answered of how many: 2/3.
func entries(e folder.Entries) string {
	return fmt.Sprintf("%d/%d", e.Answered, e.Answered+e.Queued+e.InFlight+e.DeadLettered)
}

func cost(usd *float64) string {
	if usd == nil {
		return ""
	}
	return fmt.Sprintf("$%.4f", *usd)
}

// why is why a session is in its state, one sentence or nothing.
func (h *hosted) why() string {
	switch {
	case h.status == folder.Dead:
		return "its host was killed: " + words.Shell(command, "cancel", h.ID) + " finishes it"
	case h.State.Error != "":
		return words.Line(h.State.Error)
	case h.State.StalledSince != nil:
		return "no progress since " + words.Stamp(*h.State.StalledSince)
	}
	return ""
}

func statusStyle(status string) colour.Style {
	switch folder.Status(status) {
	case folder.Completed:
		return colour.Green
	case folder.Failed, folder.Dead, folder.Timeout:
		return colour.Red
	case folder.Cancelled, folder.RateLimited:
		return colour.Yellow
	}
	return colour.Plain
}
