package price

import (
	"math"
	"strings"
)

// Usage is what one request took, as its answer says it. The tokens alone do not tell what it
// cost.
type Usage struct {
	Tokens
	CacheWrite1h int64 // how much of Tokens.CacheWrite is kept for an hour; the rest for five minutes
	WebSearches  int64
	Fast         bool // it was asked in the fast mode, which costs more
	Domestic     bool // it was bound to the United States, which costs a tenth more
}

// Most takes the larger of each count: an answer has several lines, which say more and more.
func (u Usage) Most(o Usage) Usage {
	return Usage{u.Tokens.Most(o.Tokens), max(u.CacheWrite1h, o.CacheWrite1h), max(u.WebSearches, o.WebSearches), u.Fast || o.Fast, u.Domestic || o.Domestic}
}

// Rates are what a model costs: dollars for a million tokens of each kind, and for one search of
// the web.
type Rates struct {
	Input, Output, CacheRead, CacheWrite, CacheWrite1h, WebSearch float64

	// LongAbove is how many tokens a prompt has, what the cache holds of it included, above which
	// Long holds in place of these rates; 0 for a model whose long prompts cost the same.
	LongAbove int64
	Long      *Rates
	Fast      *Rates // nil for a model without a fast mode
}

// domestic is by how much a request costs more that is bound to the United States.
const domestic = 1.1

// Of is what a request costs, in billionths of a dollar.
func (r *Rates) Of(u Usage) int64 {
	at := r
	if at.LongAbove > 0 && u.Input+u.CacheRead+u.Tokens.CacheWrite > at.LongAbove {
		at = at.Long
	}
	if u.Fast && r.Fast != nil {
		at = r.Fast
	}
	hour := min(max(0, u.CacheWrite1h), u.Tokens.CacheWrite)
	if at.CacheWrite1h == 0 {
		hour = 0
	}
	million := float64(u.Input)*at.Input + float64(u.Output)*at.Output + float64(u.CacheRead)*at.CacheRead +
		float64(u.Tokens.CacheWrite-hour)*at.CacheWrite + float64(hour)*at.CacheWrite1h
	if u.Domestic {
		million *= domestic
	}
	nanos := million*(perDollar/1e6) + float64(u.WebSearches)*r.WebSearch*perDollar
	return int64(min(math.Round(nanos), MaxUSD*perDollar))
}

// TableDate is the day on which the rates below were copied, from the price lists of the models'
// makers and the catalog in Claude Code 2.1.329.
const TableDate = "2026-11-26"

// rates are by the model's name without a date.
func rates(model string) *Rates {
	switch model {
	case "claude-fable-5-2", "claude-mythos-5-2":
		return claude(8, 40, 0.2).fast(claude(16, 80, 0.4))
	case "claude-fable-5-1", "claude-mythos-5-1":
		return claude(10, 50, 0.25)
	case "claude-fable-5", "claude-mythos-5":
		return claude(10, 50, 1)
	case "claude-opus-5-5":
		return claude(4, 20, 0.2).fast(claude(8, 40, 0.4))
	case "claude-opus-5", "claude-opus-4-8":
		return claude(5, 25, 0.5).fast(claude(10, 50, 1))
	case "claude-opus-4-7", "claude-opus-4-6":
		return claude(5, 25, 0.5).fast(claude(30, 150, 3))
	case "claude-opus-4-5":
		return claude(5, 25, 0.5)
	case "claude-opus-4-1", "claude-opus-4-0", "claude-opus-4":
		return claude(15, 75, 1.5)
	case "claude-sonnet-5-5":
		return claude(2, 10, 0.1)
	case "claude-sonnet-5":
		return claude(2, 10, 0.2)
	case "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4-0", "claude-sonnet-4", "claude-3-7-sonnet", "claude-3-5-sonnet":
		return claude(3, 15, 0.3)
	case "claude-haiku-5-5":
		return claude(0.1, 0.5, 0.01).long(100_000, claude(0.5, 2.5, 0.05))
	case "claude-haiku-4-5":
		return claude(1, 5, 0.1)
	case "claude-3-5-haiku":
		return claude(0.8, 4, 0.08)
	case "gpt-6-astra":
		return gpt(10, 50, 1)
	case "gpt-6.1-sol":
		return gpt(2, 10, 0.1)
	case "gpt-6-sol":
		return gpt(2, 10, 0.2)
	case "gpt-6.1-terra":
		return gpt(1, 5, 0.05)
	case "gpt-6-luna":
		return gpt(0.1, 0.5, 0.01)
	case "gpt-5.6-sol":
		return gpt(4, 20, 0.4)
	case "gpt-5.6-terra":
		return gpt(2, 12, 0.2)
	case "gpt-5.6-luna":
		return gpt(0.2, 1.2, 0.02)
	case "gpt-5.5":
		return gpt(5, 30, 0.5)
	case "gpt-5.4":
		return gpt(2.5, 15, 0.25)
	case "gpt-5.4-mini":
		return plain(0.75, 4.5, 0.075)
	case "gpt-5.3-codex", "gpt-5.2-codex", "gpt-5.2":
		return plain(1.75, 14, 0.175)
	case "gpt-5.1-codex-max", "gpt-5.1-codex", "gpt-5.1", "gpt-5-codex", "gpt-5":
		return plain(1.25, 10, 0.125)
	case "gpt-5-mini":
		return plain(0.25, 2, 0.025)
	}
	return nil
}

// known are the models that have rates, for a list.
var known = strings.Fields(`claude-fable-5-2 claude-fable-5-1 claude-fable-5 claude-mythos-5-2 claude-mythos-5-1 claude-mythos-5
claude-opus-5-5 claude-opus-5 claude-opus-4-8 claude-opus-4-7 claude-opus-4-6 claude-opus-4-5 claude-opus-4-1 claude-opus-4-0
claude-sonnet-5-5 claude-sonnet-5 claude-sonnet-4-6 claude-sonnet-4-5 claude-sonnet-4-0 claude-3-7-sonnet claude-3-5-sonnet
claude-haiku-5-5 claude-haiku-4-5 claude-3-5-haiku
gpt-6-astra gpt-6.1-sol gpt-6-sol gpt-6.1-terra gpt-6-luna gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-5.5 gpt-5.4 gpt-5.4-mini
gpt-5.3-codex gpt-5.2-codex gpt-5.2 gpt-5.1-codex-max gpt-5.1-codex gpt-5.1 gpt-5-codex gpt-5 gpt-5-mini`)

// claude has what Anthropic asks for the cache: a quarter more than for input for what is kept
// for five minutes, and twice as much for an hour.
func claude(input, output, cacheRead float64) *Rates {
	return &Rates{Input: input, Output: output, CacheRead: cacheRead, CacheWrite: 1.25 * input, CacheWrite1h: 2 * input, WebSearch: 0.01}
}

// gpt has what OpenAI asks for prompts of over 272,000 tokens, and for the fast mode.
func gpt(input, output, cacheRead float64) *Rates {
	of := func(in, out float64) *Rates {
		return &Rates{Input: in * input, Output: out * output, CacheRead: in * cacheRead, CacheWrite: in * 1.25 * input, WebSearch: 0.01}
	}
	return of(1, 1).long(272_000, of(2, 1.5)).fast(of(2, 2))
}

func plain(input, output, cacheRead float64) *Rates {
	return &Rates{Input: input, Output: output, CacheRead: cacheRead, CacheWrite: input, WebSearch: 0.01}
}

func (r *Rates) long(above int64, long *Rates) *Rates {
	r.LongAbove, r.Long = above, long
	return r
}

func (r *Rates) fast(fast *Rates) *Rates {
	r.Fast = fast
	return r
}

// plainName is a model's name without what a cloud puts around it, the size of its context, and
// the date of its release: us.anthropic.claude-opus-4-6-20260101-v1:0[1m] is claude-opus-4-6.
func plainName(model string) string {
	name := strings.ToLower(strings.TrimSpace(model))
	name, _, _ = strings.Cut(name, "[")
	name, _, _ = strings.Cut(name, "@")
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, maker := range [...]string{"anthropic.", "openai."} {
		if i := strings.LastIndex(name, maker); i >= 0 {
			name = name[i+len(maker):]
		}
	}
	if i := strings.LastIndex(name, "-v"); i > 0 && allDigits(strings.ReplaceAll(name[i+2:], ":", "")) {
		name = name[:i]
	}
	name = strings.TrimSuffix(name, "-latest")
	if n := len(name) - len("-20260101"); n > 0 && name[n] == '-' && allDigits(name[n+1:]) {
		return name[:n]
	}
	if n := len(name) - len("-2026-01-01"); n > 0 && name[n] == '-' && name[n+5] == '-' && name[n+8] == '-' && allDigits(strings.ReplaceAll(name[n+1:], "-", "")) {
		return name[:n]
	}
	return name
}
