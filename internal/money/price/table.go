package price

import (
	"path"
	"strings"
)

// Table is what models cost: a person's own rates first, then the built-in ones, which the zero value has.
type Table struct {
	Own        []Own
	Multiplier *float64 // of all built-in rates, such as by contract; nil is 1
	Path       string   // of the file with Own, or ""
}

// Own are a person's rates for models whose names match Pattern, a pattern of [path.Match]. "*" is for models that have no
// other rates.
type Own struct {
	Pattern string
	Rates
}

// Of returns what a model costs, or nil. file is the person's file that decided, or "" for a built-in rate.
func (t *Table) Of(model string) (r *Rates, file string) {
	name, plain := strings.ToLower(model), plainName(model)
	var best, rest *Own
	for i := range t.Own {
		switch own := &t.Own[i]; {
		case own.Pattern == "*":
			rest = own
		case (matches(own.Pattern, name) || matches(own.Pattern, plain)) && (best == nil || len(own.Pattern) > len(best.Pattern)):
			best = own
		}
	}
	if best != nil {
		return &best.Rates, t.Path
	}
	r = BuiltIn(model)
	switch {
	case r != nil && t.Multiplier != nil:
		return r.Times(*t.Multiplier), t.Path
	case r == nil && rest != nil:
		return &rest.Rates, t.Path
	}
	return r, ""
}

func matches(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return err == nil && is
}

// Times multiplies all rates.
func (r *Rates) Times(by float64) *Rates {
	if r == nil {
		return nil
	}
	m := *r
	for _, rate := range [...]*float64{&m.Input, &m.Output, &m.CacheRead, &m.CacheWrite, &m.CacheWrite1h, &m.WebSearch} {
		*rate *= by
	}
	m.Long, m.Fast = r.Long.Times(by), r.Fast.Times(by)
	return &m
}
