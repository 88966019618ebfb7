package cli

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/budget"
	"heartbeat/internal/price"
)

// usd is the value of a flag that takes dollars, as billionths. zero says that 0 is
// taken too, for no limit.
type usd struct {
	to   *int64
	zero bool
}

func (u usd) Set(text string) (err error) {
	if nanos, wrong := price.DollarsOf(text); u.zero && wrong == nil && nanos == 0 {
		*u.to = 0
		return nil
	}
	nanos, err := price.ParseUSD(text)
	if err == nil {
		*u.to = nanos
	}
	return err
}

// String has every digit: install writes it into settings files.
func (u usd) String() string {
	if u.to == nil || *u.to == 0 {
		return ""
	}
	text, _ := price.Nanos(*u.to).MarshalJSON() // it never fails
	return string(text)
}

func (u usd) Type() string { return "usd" }

// tokens is the same for a flag that takes a number of tokens.
type tokens struct {
	to   *int64
	zero bool
}

func (n tokens) Set(text string) error {
	if n.zero && text == "0" {
		*n.to = 0
		return nil
	}
	count, err := price.ParseTokens(text)
	if err == nil {
		*n.to = count
	}
	return err
}

func (n tokens) String() string {
	if n.to == nil || *n.to == 0 {
		return ""
	}
	return strconv.FormatInt(*n.to, 10)
}

func (n tokens) Type() string { return "tokens" }

// limitTime is the same for a flag that takes a length of time.
type limitTime struct {
	to   *time.Duration
	zero bool
}

func (l limitTime) Set(text string) error {
	if l.zero && text == "0" {
		*l.to = 0
		return nil
	}
	d, err := budget.ParseTime(text)
	if err == nil {
		*l.to = d
	}
	return err
}

func (l limitTime) String() string {
	if l.to == nil || *l.to == 0 {
		return ""
	}
	return l.to.String()
}

func (l limitTime) Type() string { return "duration" }

// AddEntryLimits declares the flags that say what one entry may cost. They take no 0.
func AddEntryLimits(f *pflag.FlagSet, l *budget.Limits) {
	f.Var(usd{to: &l.Nanos}, "max-cost", "set the entry aside once it has cost so many dollars, over all its attempts")
	f.Var(tokens{to: &l.Tokens}, "max-tokens", "the same for tokens of every kind, such as 400k")
	f.Var(limitTime{to: &l.Time}, "max-time", "the same for the time that is worked on it, such as 30m")
}

// AddRaisedLimits declares the same flags for an entry that gets other limits.
func AddRaisedLimits(f *pflag.FlagSet, l *budget.Limits) {
	f.Var(usd{to: &l.Nanos}, "max-cost", "the entry may cost so many dollars, whatever the flags of the hook say")
	f.Var(tokens{to: &l.Tokens}, "max-tokens", "the same for tokens of every kind, such as 400k")
	f.Var(limitTime{to: &l.Time}, "max-time", "the same for the time that is worked on it, such as 30m")
}

// AddLimits declares the flags of what an entry, a session and a day may cost. 0 is no limit.
func AddLimits(f *pflag.FlagSet, l *budget.Plan) {
	f.Var(usd{&l.Entry.Nanos, true}, "max-cost-per-entry", "set an entry aside once it has cost so many dollars, over all its attempts")
	f.Var(usd{&l.Session.Nanos, true}, "max-cost-per-session", "go on in a fresh session once this one has cost so much")
	f.Var(usd{&l.Day.Nanos, true}, "max-cost-per-day", "pause the inbox until midnight once its sessions have cost so much that day")
	f.Var(tokens{&l.Entry.Tokens, true}, "max-tokens-per-entry", "as --max-cost-per-entry, for tokens of every kind, such as 400k")
	f.Var(tokens{&l.Session.Tokens, true}, "max-tokens-per-session", "as --max-cost-per-session, for tokens")
	f.Var(tokens{&l.Day.Tokens, true}, "max-tokens-per-day", "as --max-cost-per-day, for tokens")
	f.Var(limitTime{&l.Entry.Time, true}, "max-time-per-entry", "set an entry aside once it was worked on for so long, all attempts together")
}

// LimitArguments returns the flags with which another command keeps the same limits.
func LimitArguments(l budget.Plan) []string {
	var args []string
	f := NewFlags("limits")
	AddLimits(f, &l)
	f.VisitAll(func(flag *pflag.Flag) {
		if text := flag.Value.String(); text != "" {
			args = append(args, "--"+flag.Name, text)
		}
	})
	return args
}
