package cli

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// InboxVariable names the inbox where no flag does.
const InboxVariable = "HEARTBEAT_INBOX"

// LaunchedVariable names, in a session that heartbeat-launch manages, the inbox
// that it wired a hook for: an absolute path.
const LaunchedVariable = "HEARTBEAT_LAUNCHED"

// DefaultSettle is how long a last line without newline must stand still to be an
// entry.
const DefaultSettle = 250 * time.Millisecond

// WatchPoll is how often a command that waits looks where file events do not arrive.
const WatchPoll = time.Second

// NewFlags is a set of flags, shown in the order in which they are added.
func NewFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {} // errors get a sentence, not the whole help
	return f
}

// Span is a flag of whole or broken seconds, or a Go duration.
type Span time.Duration

// Set takes what was typed.
func (s *Span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, numErr := strconv.ParseFloat(text, 64); numErr == nil && math.Abs(seconds) < math.MaxInt64/1e9 {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return errors.New("it takes seconds or a duration, such as 300, 0.5 or 5m")
	}
	*s = Span(d)
	return nil
}

// String is the span as a Go duration.
func (s *Span) String() string { return time.Duration(*s).String() }

// Type is what the help calls it.
func (s *Span) Type() string { return "duration" }
