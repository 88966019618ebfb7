package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Release is a version of Claude Code, such as 2.1.329.
type Release [3]int

// ExecForm is the release that added args of a hook, which older releases ignore.
var ExecForm = Release{2, 1, 139}

// Measured is the release on which the client's behaviour was measured.
var Measured = Release{2, 1, 329}

// ParseRelease reads a version as `claude --version` prints it: the first word, without a suffix such as -beta.1.
func ParseRelease(text string) (Release, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	numbers, _, _ := strings.Cut(strings.TrimPrefix(word, "v"), "-")
	parts := strings.Split(numbers, ".")
	var r Release
	ok := len(parts) == len(r)
	for i := 0; ok && i < len(r); i++ {
		n, err := strconv.ParseUint(parts[i], 10, 31)
		r[i], ok = int(n), err == nil
	}
	if !ok {
		return Release{}, fmt.Errorf("%q is no version: want three numbers, such as %s", clip(text, 60), Measured)
	}
	return r, nil
}

// Before reports whether r is older than other.
func (r Release) Before(other Release) bool {
	return slices.Compare(r[:], other[:]) < 0
}

// String returns the version as the client spells it.
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

// Features lists what heartbeat uses of the client, newest first, from the client's changelog. Without is what heartbeat
// does worse on older releases, "" for nothing.
var Features = []struct {
	Since         Release
	What, Without string
}{
	{Release{2, 1, 196}, "prompt_id", "answers are recognised by weaker evidence"},
	{Release{2, 1, 143}, "the cap on blocks in a row, and the variable that lifts it", ""},
	{ExecForm, "hooks with args", "the hook starts without its inbox"},
	{Release{2, 1, 78}, "StopFailure", "nothing reports a failed turn"},
	{Release{2, 1, 47}, "last_assistant_message", "results have no reply"},
	{Release{2, 1, 3}, "600 s for a hook without a timeout", ""},
}

// Lacks returns sentences about what heartbeat does worse on this release, newest feature first, with the release that
// added it.
func (r Release) Lacks() []string {
	var lacks []string
	for _, f := range Features {
		if f.Without != "" && r.Before(f.Since) {
			lacks = append(lacks, fmt.Sprintf("%s (%s), since %s", f.What, f.Without, f.Since))
		}
	}
	return lacks
}
