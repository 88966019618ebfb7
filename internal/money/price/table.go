package price

import (
	"path"
	"strings"
)

// Table is what models cost: the rates that are built in, and those of a person before them. The
// zero value is what is built in.
type Table struct {
	Own        []Own
	Multiplier float64 // of all that is built in, such as by contract; 0 is 1
	Path       string  // of the file that Own is from, empty for none
}

// Own are a person's rates for the models of a name, which may have the wildcards of [path.Match].
// "*" is for models that nothing else is said of.
type Own struct {
	Pattern string
	Rates
}

// Of is what a model costs, nil where nobody says so. path is the file that says it, empty for
// what is built in.
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
	r = rates(plain)
	switch {
	case r != nil && t.Multiplier > 0:
		return r.Times(t.Multiplier), t.Path
	case r == nil && rest != nil:
		return &rest.Rates, t.Path
	}
	return r, ""
}

func matches(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return err == nil && is
}

// BuiltIn is what a model costs by the table of this release, nil where it does not know.
func BuiltIn(model string) *Rates { return rates(plainName(model)) }

// Known are the models whose rates are built in.
func Known() []string { return known }

// Times are the rates with all of them multiplied.
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
