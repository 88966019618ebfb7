package price

import "strconv"

// String is the amount for people: "2.50 USD", "41.2k tokens" where no dollars are
// known, empty where nothing was spent.
func (a Amount) String() string {
	switch {
	case a.Dollars:
		return FormatUSD(a.Nanos) + " USD"
	case a.IsZero():
		return ""
	}
	return FormatTokens(a.Tokens.Sum()) + " tokens"
}

// String is [Amount.String] with the marks of [Price.Cell].
func (p Price) String() string { return p.marked(p.Amount.String(), " USD") }

// Cell is the price for a narrow column: dollars without their unit. "~" says that a
// sum for several entries was divided by tokens, "+" that what the last request cost
// may not be known yet.
func (p Price) Cell() string {
	if p.Dollars {
		return p.marked(FormatUSD(p.Nanos), "")
	}
	return p.marked(p.Amount.String(), "")
}

func (p Price) marked(text, unit string) string {
	if text == "" {
		return ""
	}
	if p.Divided && p.Dollars {
		text = "~" + text
	}
	if p.Open {
		if n := len(text) - len(unit); unit != "" && text[max(0, n):] == unit {
			return text[:n] + "+" + unit
		}
		text += "+"
	}
	return text
}

// Sentence is the price with its tokens, on one line: "2.50 USD, 14 requests, 41.2k
// tokens (1.2k in, 8.0k out, 30.0k from the cache, 2.0k to it)". It is empty where
// nothing was spent.
func (p Price) Sentence() string {
	text := p.String()
	if text == "" || p.Requests == 0 && p.Tokens == (Tokens{}) {
		return text
	}
	t, requests := p.Tokens, " requests"
	if p.Requests == 1 {
		requests = " request"
	}
	if p.Dollars {
		text += ", " + strconv.FormatInt(p.Requests, 10) + requests + ", " + FormatTokens(t.Sum()) + " tokens"
	} else {
		text += ", " + strconv.FormatInt(p.Requests, 10) + requests
	}
	text += " (" + FormatTokens(t.Input) + " in, " + FormatTokens(t.Output) + " out"
	if t.CacheRead > 0 {
		text += ", " + FormatTokens(t.CacheRead) + " from the cache"
	}
	if t.CacheWrite > 0 {
		text += ", " + FormatTokens(t.CacheWrite) + " to it"
	}
	return text + ")"
}

// FormatTokens is a number of tokens in at most five characters and a unit: 950,
// 41.2k, 1.5M.
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
