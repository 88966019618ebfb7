package price

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/words"
)

// MaxTime is the longest limit of time: ten years.
const MaxTime = 10 * 365 * 24 * time.Hour

// Limits are what may be spent. 0 is no limit.
type Limits struct {
	Nanos  int64 // billionths of a dollar
	Tokens int64
	Time   time.Duration // of work on an entry, over all attempts
	// Raised says that a person set these limits after earlier ones stopped the entry. They replace those of the flags.
	Raised bool
}

// ParseLimits reads the limits of an envelope: an object of cost_usd (2.5), tokens (400000 or "400k") and time ("30m", or
// seconds), each above 0, and raised (true). Empty input and null mean no limits. Any other member is an error, since a
// misspelled limit would not hold.
func ParseLimits(object []byte) (l Limits, err error) {
	if len(object) == 0 || string(object) == "null" {
		return l, nil
	}
	m, err := flat.Parse(object)
	if err != nil {
		return l, fmt.Errorf("limits: %w", err)
	}
	m.Without([]string{"cost_usd", "tokens", "time", "raised"}, func(name string, _ []byte) {
		err = cmp.Or(err, fmt.Errorf("limits: %q is none of cost_usd, tokens and time", words.Brief(name)))
	})
	if err != nil {
		return l, err
	}
	if l.Raised = m.Bool("raised"); m.Err() != nil {
		return Limits{}, fmt.Errorf("limits: %w", m.Err())
	}
	for _, part := range []struct {
		name string
		set  func(string) error
	}{
		{"cost_usd", func(text string) (err error) { l.Nanos, err = ParseUSD(text); return err }},
		{"tokens", func(text string) (err error) { l.Tokens, err = ParseTokens(text); return err }},
		{"time", func(text string) (err error) { l.Time, err = ParseTime(text); return err }},
	} {
		if !m.Has(part.name) {
			continue
		}
		if err := part.set(m.Value(part.name).Shown()); err != nil {
			return Limits{}, fmt.Errorf("limits: %s: %w", part.name, err)
		}
	}
	return l, nil
}

// ParseSentLimits is [ParseLimits] for the limits of a sender, who may not raise them.
func ParseSentLimits(object []byte) (Limits, error) {
	l, err := ParseLimits(object)
	if err == nil && l.Raised { // whoever may append to an inbox must not lift the limits of the flags
		return Limits{}, errors.New("limits: raised is what dead-letter requeue says of the limits that it is given: leave it out")
	}
	return l, err
}

// ParseTime reads a limit of time, such as 30m, 90 (seconds) or 1d. It is above 0 and at most [MaxTime].
func ParseTime(text string) (time.Duration, error) {
	d, err := words.ParseSpan(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no length of time, such as 30m", words.Brief(text))
	}
	return Limit(words.Brief(text), d, MaxTime, "a time above 0, such as 30m", "ten years")
}

// JSON returns the object that [ParseLimits] reads, or nil without a limit.
func (l Limits) JSON() []byte {
	if !l.Any() {
		return nil
	}
	var o flat.Object
	if l.Nanos > 0 {
		o.Raw("cost_usd", []byte(Nanos(l.Nanos).String()))
	}
	to := flat.To(&o)
	to.NonZero("tokens", &l.Tokens)
	if l.Time > 0 {
		o.String("time", l.Time.String())
	}
	to.Flag("raised", &l.Raised)
	return o.End()
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l.Nanos > 0 || l.Tokens > 0 || l.Time > 0 }

// Spending reports whether there is a limit of dollars or tokens.
func (l Limits) Spending() bool { return l.Nanos > 0 || l.Tokens > 0 }

// Within returns the smaller of each limit. Raised limits win over flags wherever they are set.
func (l Limits) Within(flags Limits) Limits {
	if l.Raised {
		return l.Or(flags)
	}
	return Limits{smaller(l.Nanos, flags.Nanos), smaller(l.Tokens, flags.Tokens), smaller(l.Time, flags.Time), false}
}

// Or returns l, with the limits of defaults where l has none.
func (l Limits) Or(defaults Limits) Limits {
	return Limits{cmp.Or(l.Nanos, defaults.Nanos), cmp.Or(l.Tokens, defaults.Tokens), cmp.Or(l.Time, defaults.Time), l.Raised}
}

func smaller[T ~int64](a, b T) T {
	if a > 0 && (b <= 0 || a < b) {
		return a
	}
	return b
}

// Plan is what may be spent: on one entry, and in one day on all entries of the inbox.
type Plan struct{ Entry, Day Limits }

// Within returns the smaller of each limit.
func (p Plan) Within(other Plan) Plan {
	return Plan{p.Entry.Within(other.Entry), p.Day.Within(other.Day)}
}

// Any reports whether an entry or a day has a limit.
func (p Plan) Any() bool { return p.Entry.Any() || p.Day.Any() }

// Spent is spending to compare with limits.
type Spent struct {
	Amount
	Time time.Duration
}

// Over reports whether a limit is reached, and returns the figures of the first such limit, as "it cost 2.61 of 2.50 USD".
// A limit in dollars holds only if dollars are known.
func (l Limits) Over(s Spent) (figures string, over bool) {
	tokens := s.Tokens.Sum()
	switch {
	case l.Nanos > 0 && s.Dollars && s.Nanos >= l.Nanos:
		return "it cost " + USDOf(s.Nanos, l.Nanos), true
	case l.Tokens > 0 && tokens >= l.Tokens:
		return fmt.Sprintf("it took %d of %d tokens", tokens, l.Tokens), true
	case l.Time > 0 && s.Time >= l.Time:
		return fmt.Sprintf("it took %s of %s", words.Took(s.Time), words.Took(l.Time)), true
	}
	return "", false
}

// USDOf returns spent and limit, as "2.61 of 2.50 USD". If the limit is in cents and the two differ in cents, it rounds to
// cents. Otherwise spent has every digit, so that spending that reached the limit never appears to be below it.
func USDOf(spent, limit int64) string {
	of, limited := FormatUSD(spent), FormatUSD(limit)
	const cent = 10_000_000
	if limit%cent != 0 {
		limited = Nanos(limit).String()
	}
	if of == limited && spent != limit || limit%cent != 0 {
		of = Nanos(spent).String()
	}
	return of + " of " + limited + " USD"
}
