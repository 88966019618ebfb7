package doctor

import (
	"context"

	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
)

// troubles reports what is wrong with the inbox, as status does. A trouble that a session or a timer usually ends
// is shown as ok.
func troubles(e *examination) string {
	if e.box == nil {
		return "" // another check reports it
	}
	for _, t := range see.Look(context.Background(), e.box).Troubles() {
		switch {
		case t.Urgency == see.Act && !t.Lasts():
			e.fail(t.Do, "%s", t.Text)
		case t.Urgency == see.Act, t.Urgency != see.Passes && !t.Lasts():
			e.warn(t.Do, "%s", t.Text)
		default:
			e.note(OK, "", t.Text)
		}
	}
	return ""
}

// prices checks that the price table can be read, and that it agrees with what the client itself reported.
func prices(e *examination) string {
	const fix = "see heartbeat costs --prices, and mend heartbeat/prices.toml in the folder of your settings"
	if _, err := meter.Prices(); err != nil {
		e.warn(fix, "%v", err)
		return ""
	}
	if e.box == nil {
		return ""
	}
	check := book.Check{}
	_, _ = book.Lines(e.box, func(l price.Line) { check.Add(&l) }) // other checks report the files
	if says := check.Sentence(); says != "" {
		e.warn(fix, "%s", says)
	}
	return ""
}
