package doctor

import (
	"heartbeat/inbox"
	"heartbeat/internal/command/costs"
	"heartbeat/internal/meter"
	"heartbeat/internal/see"
)

// troubles are what is known to be open in an inbox at work: today that sessions have limits,
// and what they spend cannot be counted.
func troubles(e *examination) string {
	if e.box == nil {
		return "" // another check tells of it
	}
	for _, sentence := range see.First(e.box).NotCounted() {
		e.warn("mend that; what was not counted is counted then", "%s", sentence)
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
	_, _ = e.box.Costs(func(c inbox.Cost) bool { // other checks tell of the files
		check.Add(c.SessionID, c.Amount)
		return true
	})
	if says := check.Sentence(); says != "" {
		e.warn(fix, "%s", says)
	}
	return ""
}
