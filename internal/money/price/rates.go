package price

import (
	"math"
	"strings"
)

// Usage is what one request took, by its answer. Its tokens alone do not determine its cost.
type Usage struct {
	Tokens
	CacheWrite1h int64 // part of Tokens.CacheWrite kept for an hour; the rest for five minutes
	WebSearches  int64
	Fast         bool // in the fast mode, which costs more
	Domestic     bool // bound to the United States, which costs a tenth more
}

// Most returns the larger of each count. An answer has several lines, whose counts grow.
func (u Usage) Most(o Usage) Usage {
	return Usage{u.Tokens.Most(o.Tokens), max(u.CacheWrite1h, o.CacheWrite1h), max(u.WebSearches, o.WebSearches), u.Fast || o.Fast, u.Domestic || o.Domestic}
}

// Rates are what a model costs: dollars for a million tokens of each kind, and for one web search.
type Rates struct {
	Input, Output, CacheRead, CacheWrite, CacheWrite1h, WebSearch float64

	// LongAbove is the length of a prompt, in tokens, cached ones included, above which Long replaces these rates.
	// It is 0 for a model whose long prompts cost the same.
	LongAbove int64
	Long      *Rates
	Fast      *Rates // nil for a model without a fast mode
}

// Of returns what a request costs, in billionths of a dollar.
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
		million *= 1.1
	}
	nanos := million*(perDollar/1e6) + float64(u.WebSearches)*r.WebSearch*perDollar
	return int64(min(math.Round(nanos), MaxUSD*perDollar))
}

// TableDate is when the rates below were copied, from the makers' prices and the catalog in Claude Code 2.1.329.
const TableDate = "2026-11-26"

// builtIn are the rates by the models' names without a date.
var builtIn = [...]struct {
	models string
	rates  func() *Rates
}{
	{"claude-fable-5-2 claude-mythos-5-2", func() *Rates { return claude(8, 40, 0.2).fast(claude(16, 80, 0.4)) }},
	{"claude-fable-5-1 claude-mythos-5-1", func() *Rates { return claude(10, 50, 0.25) }},
	{"claude-fable-5 claude-mythos-5", func() *Rates { return claude(10, 50, 1) }},
	{"claude-opus-5-5", func() *Rates { return claude(4, 20, 0.2).fast(claude(8, 40, 0.4)) }},
	{"claude-opus-5 claude-opus-4-8", func() *Rates { return claude(5, 25, 0.5).fast(claude(10, 50, 1)) }},
	{"claude-opus-4-7 claude-opus-4-6", func() *Rates { return claude(5, 25, 0.5).fast(claude(30, 150, 3)) }},
	{"claude-opus-4-5", func() *Rates { return claude(5, 25, 0.5) }},
	{"claude-opus-4-1 claude-opus-4-0 claude-opus-4", func() *Rates { return claude(15, 75, 1.5) }},
	{"claude-sonnet-5-5", func() *Rates { return claude(2, 10, 0.1) }},
	{"claude-sonnet-5", func() *Rates { return claude(2, 10, 0.2) }},
	{"claude-sonnet-4-6 claude-sonnet-4-5 claude-sonnet-4-0 claude-sonnet-4 claude-3-7-sonnet claude-3-5-sonnet", func() *Rates { return claude(3, 15, 0.3) }},
	{"claude-haiku-5-5", func() *Rates { return claude(0.1, 0.5, 0.01).long(100_000, claude(0.5, 2.5, 0.05)) }},
	{"claude-haiku-4-5", func() *Rates { return claude(1, 5, 0.1) }},
	{"claude-3-5-haiku", func() *Rates { return claude(0.8, 4, 0.08) }},
	{"gpt-6-astra", func() *Rates { return gpt(10, 50, 1) }},
	{"gpt-6.1-sol", func() *Rates { return gpt(2, 10, 0.1) }},
	{"gpt-6-sol", func() *Rates { return gpt(2, 10, 0.2) }},
	{"gpt-6.1-terra", func() *Rates { return gpt(1, 5, 0.05) }},
	{"gpt-6-luna", func() *Rates { return gpt(0.1, 0.5, 0.01) }},
	{"gpt-5.6-sol", func() *Rates { return gpt(4, 20, 0.4) }},
	{"gpt-5.6-terra", func() *Rates { return gpt(2, 12, 0.2) }},
	{"gpt-5.6-luna", func() *Rates { return gpt(0.2, 1.2, 0.02) }},
	{"gpt-5.5", func() *Rates { return gpt(5, 30, 0.5) }},
	{"gpt-5.4", func() *Rates { return gpt(2.5, 15, 0.25) }},
	{"gpt-5.4-mini", func() *Rates { return plain(0.75, 4.5, 0.075) }},
	{"gpt-5.3-codex gpt-5.2-codex gpt-5.2", func() *Rates { return plain(1.75, 14, 0.175) }},
	{"gpt-5.1-codex-max gpt-5.1-codex gpt-5.1 gpt-5-codex gpt-5", func() *Rates { return plain(1.25, 10, 0.125) }},
	{"gpt-5-mini", func() *Rates { return plain(0.25, 2, 0.025) }},
}

// BuiltIn returns what a model costs by the built-in table, or nil if it is not in there.
func BuiltIn(model string) *Rates {
	known := plainName(model)
	for _, row := range builtIn {
		for name := range strings.FieldsSeq(row.models) {
			if name == known {
				return row.rates()
			}
		}
	}
	return nil
}

// Known returns the models whose rates are built in.
func Known() (all []string) {
	for _, row := range builtIn {
		all = append(all, strings.Fields(row.models)...)
	}
	return all
}

// claude adds Anthropic's prices of the cache: 1.25 times the input price for five minutes, and twice for an hour.
func claude(input, output, cacheRead float64) *Rates {
	return &Rates{Input: input, Output: output, CacheRead: cacheRead, CacheWrite: 1.25 * input, CacheWrite1h: 2 * input, WebSearch: 0.01}
}

// gpt adds OpenAI's prices of prompts over 272,000 tokens, and of the fast mode.
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

// plainName strips from a model's name what a cloud adds, the size of its context, and the date of its release:
// us.anthropic.claude-opus-4-6-20260101-v1:0[1m] becomes claude-opus-4-6.
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
