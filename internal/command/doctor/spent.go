package doctor

import (
	"context"

	"heartbeat/internal/command/costs"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
)

// troubles are what is wrong with the inbox, as status has it. What a session or a timer ends in the
// usual run of things is told, and nothing amiss.
func troubles(e *examination) string {
	if e.box == nil {
		return "" // another check tells of it
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

// prices looks at the table by which requests are priced: whether it can be read, and whether
// it fits what the client itself said.
func prices(e *examination) string {
	const fix = "see heartbeat costs --prices, and mend heartbeat/prices.toml in the folder of your settings"
	if _, err := meter.Prices(); err != nil {
		e.warn(fix, "%v", err)
		return ""
	}
	if e.box == nil {
		return ""
	}
	var check costs.Check
	_, _ = charging.Lines(e.box, func(l price.Line) { check.Add(&l) }) // other checks tell of the files
	if says := check.Sentence(); says != "" {
		e.warn(fix, "%s", says)
	}
	return ""
}
