package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/budget"
	"heartbeat/internal/cli"
)

// limits reads what may be spent: an object whose members are named, and read, as the
// flags of the host are. Numbers may be spelled as such.
func (p *parser) limits() (l budget.Plan) {
	const name = "limits"
	value := p.take(name)
	if value == nil {
		return l
	}
	members, _ := p.objectAt(name, value)
	var all budget.Plan
	flags := cli.NewFlags(name)
	cli.AddLimits(flags, &all)
	var known []string
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	for _, flag := range known {
		v := members[flag]
		delete(members, flag)
		path := member(name, flag)
		if text, ok := p.limitAt(path, v); ok && text != "" {
			if err := flags.Lookup(flag).Value.Set(text); err != nil {
				p.fail(path, "cannot be used: %v", err)
			}
		}
	}
	for _, other := range slices.Sorted(maps.Keys(members)) { // a limit that is misspelled would not hold
		p.fail(member(name, other), "is no limit: they are %s", strings.Join(known, ", "))
	}
	if p.problem != nil {
		return l
	}
	return all
}

// limitAt is the text of a limit, "" for none.
func (p *parser) limitAt(path string, value json.RawMessage) (text string, ok bool) {
	switch kind(value) {
	case "nothing", "null":
		return "", true
	case "a number":
		return string(value), true
	case "a string":
		if text, ok = p.stringAt(path, value); ok && text == "" {
			p.fail(path, "must not be empty: leave it out for no limit")
		}
		return text, ok
	}
	p.fail(path, "must be a number or a string, and is %s", kind(value))
	return "", false
}
