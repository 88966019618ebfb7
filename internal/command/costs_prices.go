package command

import (
	"slices"
	"strconv"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// printPrices prints what models cost, a line each, and what a person may change.
func (o *costsFlags) printPrices(s cli.Streams) error {
	table, err := meter.Prices()
	number := func(title string) layout.Column { return layout.Column{Title: title, Right: true} }
	l := o.on(s.Out).list(layout.Column{Title: "MODEL", Text: true, Cut: true, Most: 40}, number("INPUT"), number("OUTPUT"),
		number("CACHE READ"), number("CACHE WRITE"), number("1 H"), number("FAST INPUT"), layout.Column{Title: "FROM", Text: true})
	row := func(name string, r *price.Rates, from string) {
		fast := "-"
		if r.Fast != nil {
			fast = rate(r.Fast.Input)
		}
		l.row(name, rate(r.Input), rate(r.Output), rate(r.CacheRead), rate(r.CacheWrite), rate(r.CacheWrite1h), fast, from)
	}
	for _, own := range table.Own {
		row(own.Pattern, &own.Rates, table.Path)
	}
	for _, model := range price.Known() {
		r, file := table.Of(model)
		if slices.ContainsFunc(table.Own, func(own price.Own) bool { return own.Pattern == model }) {
			continue // it has its row
		}
		from := "built in, " + price.TableDate
		if file != "" {
			from += ", times " + strconv.FormatFloat(table.Multiplier, 'g', -1, 64) + " by " + file
		}
		row(model, r, from)
	}
	if errEnd := l.end(); errEnd != nil {
		return errEnd
	}
	s.Note("dollars for a million tokens; %s has what you change: see docs/cost.md", meter.PricesPlace())
	return failed("costs", err)
}

func rate(dollars float64) string { return strconv.FormatFloat(dollars, 'g', 6, 64) }
