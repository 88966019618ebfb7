package price

import "strconv"

// String returns the amount for people: "2.50 USD", "41.2k tokens" if no dollars are known, "" if nothing was
// spent. "2.50+ USD" says that a part of it has no known price.
func (a Amount) String() string { return a.text(" USD") }

// Cell returns the amount for a narrow column: dollars without their unit.
func (a Amount) Cell() string { return a.text("") }

func (a Amount) text(unit string) string {
	switch {
	case a.Dollars && a.Unpriced > 0:
		return FormatUSD(a.Nanos) + "+" + unit
	case a.Dollars:
		return FormatUSD(a.Nanos) + unit
	case !a.hasRequests():
		return ""
	}
	return FormatTokens(a.Tokens.Sum()) + " tokens"
}

// Sentence returns the price with its tokens, on one line: "2.50 USD, 14 requests, 41.2k tokens (1.2k in, 8.0k out,
// 30.0k from the cache, 2.0k to it)". It is "" if nothing was spent.
func (p Price) Sentence() string {
	text := p.String()
	if !p.hasRequests() {
		return text
	}
	t := p.Tokens
	text += ", " + strconv.FormatInt(p.Requests, 10) + " request"
	if p.Requests != 1 {
		text += "s"
	}
	if p.Dollars {
		text += ", " + FormatTokens(t.Sum()) + " tokens"
	}
	text += " (" + FormatTokens(t.Input) + " in, " + FormatTokens(t.Output) + " out"
	if t.CacheRead > 0 {
		text += ", " + FormatTokens(t.CacheRead) + " from the cache"
	}
	if t.CacheWrite > 0 {
		text += ", " + FormatTokens(t.CacheWrite) + " to it"
	}
	text += ")"
	if p.Unpriced > 0 {
		text += ", " + strconv.FormatInt(p.Unpriced, 10) + " of a model whose price is not known"
	}
	return text
}

// FormatTokens returns a number of tokens with one decimal and a unit: 950, 41.2k, 1.5M.
func FormatTokens(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	value, units := float64(n), "kMGTPE"
	for value /= 1000; value >= 999.95 && len(units) > 1; value /= 1000 {
		units = units[1:]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + units[:1]
}
