package claude

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Release is a version of Claude Code, such as 2.1.329.
type Release [3]int

// The releases that added what heartbeat uses, by the client's changelog. How it
// behaves was measured on 2.1.329.
var (
	LongTimeout = Release{2, 1, 3}   // a hook without a timeout gets 600 s instead of 60 s
	LastMessage = Release{2, 1, 47}  // last_assistant_message in the hook's input
	StopFailure = Release{2, 1, 78}  // the event StopFailure
	ExecForm    = Release{2, 1, 139} // args of a hook, which older releases ignore
	BlockCap    = Release{2, 1, 143} // the cap on blocks in a row, and the variable that lifts it
	PromptID    = Release{2, 1, 196} // prompt_id in the hook's input
)

// Measured is the release on which heartbeat's knowledge was measured.
var Measured = Release{2, 1, 329}

// ParseRelease reads a version as `claude --version` prints it. It takes the first
// word and ignores a suffix such as -beta.1.
func ParseRelease(text string) (Release, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	numbers, _, _ := strings.Cut(strings.TrimPrefix(word, "v"), "-")
	parts := strings.Split(numbers, ".")
	var r Release
	if len(parts) != len(r) {
		return Release{}, fmt.Errorf("%q is no version: want three numbers, such as %s", clip(text), Measured)
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return Release{}, fmt.Errorf("%q is no version: want three numbers, such as %s", clip(text), Measured)
		}
		r[i] = int(n)
	}
	return r, nil
}

// Before reports whether r is older than other.
func (r Release) Before(other Release) bool {
	return slices.CompareFunc(r[:], other[:], cmp.Compare[int]) < 0
}

// String is the version as the client spells it.
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

// Feature is something of the client's that heartbeat uses.
type Feature struct {
	Since Release
	What  string
	// Without is what heartbeat does worse on older releases, "" for nothing.
	Without string
}

// Features returns what heartbeat uses of the client, newest first.
func Features() []Feature {
	return []Feature{
		{PromptID, "prompt_id", "answers are told by weaker evidence"},
		{BlockCap, "the cap on blocks in a row, and the variable that lifts it", ""},
		{ExecForm, "hooks with args", "the hook starts without its inbox"},
		{StopFailure, "StopFailure", "a failed turn is told by nothing"},
		{LastMessage, "last_assistant_message", "results have no reply"},
		{LongTimeout, "600 s for a hook without a timeout", ""},
	}
}

// Lacks says, newest first, what heartbeat does worse on this release, and since
// which one it does not.
func (r Release) Lacks() []string {
	var lacks []string
	for _, f := range Features() {
		if f.Without != "" && r.Before(f.Since) {
			lacks = append(lacks, fmt.Sprintf("%s (%s), since %s", f.What, f.Without, f.Since))
		}
	}
	return lacks
}

func clip(text string) string {
	const limit = 60
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}
