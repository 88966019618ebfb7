package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/money/price"
	recovery "heartbeat/recover"
)

// limit returns the flag value for a cost limit. Its text keeps every digit, because install writes
// it into settings files. With none, the flag also accepts 0 for no limit.
func limit[T ~int64](to *T, none bool, kind string, parse func(string) (T, error), text func(T) string) pflag.Value {
	return value[T]{to, kind, func(text string) (T, error) {
		if n, err := strconv.ParseFloat(text, 64); none && err == nil && n == 0 {
			return 0, nil
		}
		return parse(text)
	}, func(v T) string {
		if v == 0 {
			return ""
		}
		return text(v)
	}}
}

// usd reads dollars into billionths of a dollar.
func usd(to *int64, none bool) pflag.Value {
	return limit(to, none, "usd", price.ParseUSD, func(nanos int64) string { return price.Nanos(nanos).String() })
}

func tokens(to *int64, none bool) pflag.Value {
	return limit(to, none, "tokens", price.ParseTokens, func(n int64) string { return strconv.FormatInt(n, 10) })
}

func limitTime(to *time.Duration, none bool) pflag.Value {
	return limit(to, none, "duration", price.ParseTime, time.Duration.String)
}

// EntryCost is the help of --max-cost for a new entry.
const EntryCost = "set the entry aside once it has cost this many dollars, over all its attempts"

// AddEntryLimits declares the flags for what one entry may cost. They refuse 0. cost is the help of --max-cost.
func AddEntryLimits(f *pflag.FlagSet, l *price.Limits, cost string) {
	f.Var(usd(&l.Nanos, false), "max-cost", cost)
	f.Var(tokens(&l.Tokens, false), "max-tokens", "the same for tokens of every kind, such as 400k")
	f.Var(limitTime(&l.Time, false), "max-time", "the same for the time spent on it, such as 30m")
}

// addRemoved declares limits of earlier releases, perhaps as NAME=DEFAULT. 0, which meant none, still passes, and so does
// the default, which launchers of such releases hand to hooks. The error of another value names the replacement.
func addRemoved(f *pflag.FlagSet, instead string, names ...string) {
	for _, name := range names {
		name, former, _ := strings.Cut(name, "=")
		f.Var(value[string]{new(string), "string", func(text string) (string, error) {
			if text == "0" || text == cmp.Or(former, "0") {
				return "", nil
			}
			return "", refusal("is no limit any more: " + instead)
		}, same}, name, "")
		f.Lookup(name).Hidden = true
	}
}

// AddLimits declares the flags for what an entry and a day may cost. 0 is no limit.
func AddLimits(f *pflag.FlagSet, l *price.Plan) {
	f.Var(usd(&l.Entry.Nanos, true), "max-cost-per-entry", "set an entry aside once it has cost this many dollars, over all its attempts")
	f.Var(usd(&l.Day.Nanos, true), "max-cost-per-day", "pause the inbox until midnight once its sessions have cost this much in the day")
	f.Var(tokens(&l.Entry.Tokens, true), "max-tokens-per-entry", "as --max-cost-per-entry, for tokens of every kind, such as 400k")
	f.Var(tokens(&l.Day.Tokens, true), "max-tokens-per-day", "as --max-cost-per-day, for tokens")
	f.Var(limitTime(&l.Entry.Time, true), "max-time-per-entry", "set an entry aside once it was worked on for this long, all attempts together")
	addRemoved(f, "limit each entry (--max-cost-per-entry, --max-tokens-per-entry) or the day (--max-cost-per-day, --max-tokens-per-day)", "max-cost-per-session", "max-tokens-per-session")
}

// LimitArguments returns the flags that give another command the same limits.
func LimitArguments(l price.Plan) []string {
	f := NewFlags("limits")
	AddLimits(f, &l)
	return spellAll(f)
}

// policy is the value of --on-orphan. It records that a person chose it.
type policy struct {
	choice
	chosen *bool
}

func (p policy) Set(text string) error {
	*p.chosen = true
	return p.choice.Set(text)
}

// AddOrphan declares the flags for what happens to an entry whose session is gone.
func AddOrphan(f *pflag.FlagSet, s *recovery.Settings) {
	s.Policy = cmp.Or(s.Policy, recovery.DeadLetter)
	s.MaxAttempts = recovery.DefaultMaxAttempts
	policies := choice{(*string)(&s.Policy), []string{string(recovery.DeadLetter), string(recovery.Retry), string(recovery.Drop)}}
	f.Var(policy{policies, &s.Chosen}, "on-orphan", "what becomes of an entry whose session ended without answering it (an entry of a run: retry, unless this is given)")
	f.Var(AtLeast(&s.MaxAttempts, 1), "max-attempts", "deliveries of one entry before retry gives up on it")
}

// HookArguments returns the flags that make a hook treat entries in the same way.
func HookArguments(s recovery.Settings) []string {
	args := []string{"--max-attempts", fmt.Sprint(s.MaxAttempts)}
	if s.Chosen {
		args = append(args, "--on-orphan", string(s.Policy))
	}
	return slices.Concat(args, LimitArguments(s.Limits), CheckArguments(s.Checks))
}
