package see

import (
	"slices"
	"time"

	"heartbeat/inbox"
)

// Kind names what is wrong, for programs. docs/operate.md has a row for each.
type Kind string

// The kinds.
const (
	KindUnreadable  Kind = "unreadable"
	KindUnwritable  Kind = "unwritable"
	KindFull        Kind = "disk-full"
	KindLocked      Kind = "locked"
	KindQuestion    Kind = "question"
	KindBreakpoint  Kind = "breakpoint"
	KindCode        Kind = "run-code"
	KindRunStuck    Kind = "run-stuck"
	KindFailed      Kind = "turn-failed"
	KindUnchecked   Kind = "unchecked"
	KindOrphaned    Kind = "orphaned"
	KindStalled     Kind = "stalled"
	KindOverdue     Kind = "overdue"
	KindTorn        Kind = "torn-line"
	KindReplaced    Kind = "replaced"
	KindNoSession   Kind = "no-session"
	KindSessionDown Kind = "session-stuck"
	KindNoWaker     Kind = "waker-gone"
	KindLauncher    Kind = "launcher-waits"
	KindUncounted   Kind = "not-counted"
	KindFailing     Kind = "failing"
	KindPaused      Kind = "paused"
	KindDayOver     Kind = "day-over-limit"
	KindDayNear     Kind = "day-near-limit"
	KindBackingOff  Kind = "backing-off"
	KindLetters     Kind = "dead-letters"
)

// Urgency is who has to do what.
type Urgency string

// The urgencies, the most urgent first.
const (
	Act    Urgency = "act"    // nothing goes on until somebody acts
	Asked  Urgency = "asked"  // a person is asked; what does not depend on that goes on
	Mind   Urgency = "mind"   // somebody should look into it
	Passes Urgency = "passes" // it ends by itself
)

var urgencies = []Urgency{Act, Asked, Mind, Passes}

// Trouble is one thing that is wrong. Its texts are on one line, without control characters.
type Trouble struct {
	Kind    Kind       `json:"kind"`
	Since   *time.Time `json:"since,omitempty"` // nil if it is not known
	Urgency Urgency    `json:"urgency"`
	Text    string     `json:"text"`
	// Do is a command line that does something about it, or shows more.
	Do string `json:"do"`
	About
}

// About is what a trouble is about, for who tells of it.
type About struct {
	// Key is the same for the same trouble. One that begins anew after Again is another.
	Key    string         `json:"-"`
	Again  time.Time      `json:"-"`
	Reason string         `json:"-"` // in a word, or in the words of whoever caused it
	Until  *time.Time     `json:"-"` // when it ends by itself
	Failed *inbox.Failure `json:"-"`
	// Session, Run and Effect are empty where it is about none.
	Session string `json:"session_id,omitempty"`
	Run     string `json:"run,omitempty"`
	Effect  string `json:"effect,omitempty"`
}

// Row is what holds of all troubles of a kind.
type Row struct {
	Kind    Kind
	Urgency Urgency
	// Lasts says that a session, a launcher or a timer ends it in the usual run of things, so
	// that it is worth a message only once it has lasted.
	Lasts bool
	verb  string // what does something about it, or shows more
	state State  // which says it where it is why nothing moves, "" if none does
}

// Rows are all kinds. States that are in no row say what is being waited for.
var Rows = []Row{
	{KindUnreadable, Act, false, "doctor", Unreadable},
	{KindUnwritable, Act, true, "doctor", Unwritable},
	{KindFull, Act, false, "doctor", Full},
	{KindLocked, Act, true, "status", Locked},
	{KindQuestion, Asked, false, "status", Person},
	{KindBreakpoint, Asked, false, "breakpoint list", Held},
	{KindCode, Asked, false, "run accept-code", ""},
	{KindRunStuck, Act, false, "run status", Stuck},
	{KindFailed, Act, true, "status", Failed},
	{KindUnchecked, Act, false, "peek", Unchecked},
	{KindOrphaned, Act, true, "status", Orphaned},
	{KindStalled, Act, true, "status", Stalled},
	{KindOverdue, Act, true, "status", ""},
	{KindTorn, Mind, true, "status", Torn},
	{KindReplaced, Mind, true, "status", Replaced},
	{KindNoSession, Mind, true, "status", NoSession},
	{KindSessionDown, Act, true, "status", SessionDown},
	{KindNoWaker, Mind, true, "status", NoWaker},
	{KindLauncher, Mind, true, "status", ""},
	{KindUncounted, Mind, false, "doctor", ""},
	{KindFailing, Mind, false, "log", ""},
	{KindPaused, Mind, false, "resume", Paused},
	{KindDayOver, Mind, false, "status", ""},
	{KindDayNear, Mind, false, "costs", ""},
	{KindBackingOff, Passes, true, "status", BackingOff},
	{KindLetters, Mind, false, "dead-letter list", ""},
}

// Known reports whether there is such a kind.
func Known(k Kind) bool { return slices.ContainsFunc(Rows, func(r Row) bool { return r.Kind == k }) }

// rowOf finds the row of a kind.
func rowOf(k Kind) Row { return Rows[slices.IndexFunc(Rows, func(r Row) bool { return r.Kind == k })] }

// ofState is the row of a state that is a trouble.
func ofState(s State) (Row, bool) {
	i := slices.IndexFunc(Rows, func(r Row) bool { return r.state == s && s != "" })
	if i < 0 {
		return Row{}, false
	}
	return Rows[i], true
}

// UrgencyOf is that of a state, "" for one that is no trouble.
func UrgencyOf(s State) Urgency {
	r, _ := ofState(s)
	return r.Urgency
}

// Lasts is that of its [Row].
func (t Trouble) Lasts() bool { return rowOf(t.Kind).Lasts }
