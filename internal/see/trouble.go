package see

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
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
	KindConsumer    Kind = "consumer-stuck"
)

// Urgency is whether somebody must act.
type Urgency string

// The urgencies, most urgent first.
const (
	Act    Urgency = "act"    // nothing goes on until somebody acts
	Asked  Urgency = "asked"  // a person is asked; whatever does not depend on the answer goes on
	Mind   Urgency = "mind"   // somebody should look into it
	Passes Urgency = "passes" // it ends by itself
)

var urgencies = []Urgency{Act, Asked, Mind, Passes}

// Trouble is one thing that is wrong. Its texts are on one line, without control characters.
type Trouble struct {
	Kind    Kind       `json:"kind"`
	Since   *time.Time `json:"since,omitempty"`
	Urgency Urgency    `json:"urgency"`
	Text    string     `json:"text"`
	Do      string     `json:"do"` // a command line
	About
}

// About identifies what a trouble is about.
type About struct {
	// Key is the same for the same trouble. A trouble that begins anew after Again is another one.
	Key     string         `json:"-"`
	Again   time.Time      `json:"-"`
	Reason  string         `json:"-"` // in a word, or in the words of whoever caused it
	Until   *time.Time     `json:"-"` // when it ends by itself
	Failed  *inbox.Failure `json:"-"`
	Session string         `json:"session_id,omitempty"`
	Run     string         `json:"run,omitempty"`
	Effect  string         `json:"effect,omitempty"`
}

// Row holds what is true of all troubles of a kind.
type Row struct {
	Kind    Kind
	Urgency Urgency
	// Lasts says that a session, a launcher or a timer usually ends it, so that it is worth a message only after a while.
	Lasts bool
	Verb  string // the verb that fixes it, or shows more
	state State  // the state whose reason this trouble is, or ""
}

// Rows has one row for each kind. A state that is in no row only says what is being waited for.
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
	{KindReplaced, Mind, true, "log", Replaced},
	{KindNoSession, Mind, true, "doctor", NoSession},
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
	{KindConsumer, Mind, false, "status", ""},
}

// Known reports whether there is such a kind.
func Known(k Kind) bool { return find(Row{Kind: k}).Kind != "" }

// UrgencyOf returns the urgency of a state, "" if the state is no trouble.
func UrgencyOf(s State) Urgency { return find(Row{state: s}).Urgency }

// Row returns what is true of all troubles of its kind.
func (t Trouble) Row() Row { return find(Row{Kind: t.Kind}) }

// find returns the row of a kind or of a state, and a zero row if there is none.
func find(like Row) (row Row) {
	i := slices.IndexFunc(Rows, func(r Row) bool {
		return like.Kind != "" && r.Kind == like.Kind || like.state != "" && r.state == like.state
	})
	if i >= 0 {
		row = Rows[i]
	}
	return row
}

// TroublesAt returns the troubles of the inboxes at these paths: none of "", or of one that cannot be opened.
func TroublesAt(paths ...string) [][]Trouble {
	all, _ := InEach(paths, func(box *inbox.Inbox) ([]Trouble, error) {
		return Look(context.Background(), box).Troubles(), nil
	})
	return all
}

// InEach returns what read returns for each of these inboxes, in order. The error names those that cannot be read.
func InEach[T any](paths []string, read func(*inbox.Inbox) (T, error)) ([]T, error) {
	all, failed := make([]T, len(paths)), make([]error, len(paths))
	Each(len(paths), func(i int) {
		box, err := inbox.Open(paths[i], inbox.Options{})
		if err == nil {
			all[i], err = read(box)
		}
		if err != nil {
			failed[i] = fmt.Errorf("%s: %w", words.Line(paths[i]), err)
		}
	})
	return all, errors.Join(failed...)
}

// atOnce is how many inboxes are read in parallel, so that a slow or locked one does not hold up the others.
const atOnce = 8

// Each calls f for each of n inboxes, some in parallel, and then returns, or repeats a panic of f where it can be caught.
func Each(n int, f func(i int)) {
	var all sync.WaitGroup
	places, panicked := make(chan struct{}, atOnce), make([]any, n)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer func() { panicked[i] = recover() }()
			f(i)
		})
	}
	all.Wait()
	for _, p := range panicked {
		if p != nil {
			panic(p)
		}
	}
}

// Command returns a heartbeat command for the inbox, or that of status if pasting its text could act on a terminal.
func Command(inbox string, args ...string) string {
	verb := strings.Fields(args[0]) // "run status" is one verb of two words
	all := slices.Concat([]string{"heartbeat"}, verb, args[1:])
	end := len(all)
	if i := slices.Index(all, "--"); i >= 0 {
		end = i // what follows belongs to another command
	}
	all = slices.Insert(all, end, "--inbox", inbox)
	if text := words.Shell(all...); text == words.Line(text) {
		return text
	}
	return words.Line(words.Shell("heartbeat", "status", "--inbox", inbox))
}

// Key returns a short key that is the same for the same parts.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
