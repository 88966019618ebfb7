package cli

import (
	"time"

	"github.com/spf13/pflag"
)

// InboxVariable names the inbox where no flag does.
const InboxVariable = "HEARTBEAT_INBOX"

// LaunchedVariable names, in a session that heartbeat-launch manages, the inbox
// that it wired a hook for: an absolute path.
const LaunchedVariable = "HEARTBEAT_LAUNCHED"

// DefaultSettle is how long a last line without newline must stay unchanged to count
// as an entry.
const DefaultSettle = 250 * time.Millisecond

// WatchPoll is how often a waiting command looks at the inbox if it gets no file events.
const WatchPoll = time.Second

// NewFlags returns a set of flags that are listed in the order in which they are added.
func NewFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {} // errors get a sentence, not the whole help
	return f
}
