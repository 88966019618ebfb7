package session

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
)

const (
	timedFrom = 5  // the first iteration whose duration counts: the first ones set up
	window    = 10 // how many durations are kept, and how many the speed guard needs
)

// Exhausted reports whether the session has had all its iterations.
func (s State) Exhausted() bool {
	return s.MaxIterations > 0 && s.Iteration >= s.MaxIterations
}

// Times are the iteration times with that of the iteration which ends now: the
// last ten, in whole seconds. As with the CLI the first four iterations are not
// timed, and neither is one of less than a second or of an unknown beginning.
func (s State) Times(now time.Time) []int {
	last, err := time.Parse(time.RFC3339, s.LastIterationAt)
	took := now.Unix() - last.Unix()
	if s.Iteration < timedFrom || err != nil || took <= 0 {
		return s.IterationTimes
	}
	times := append(slices.Clone(s.IterationTimes), int(took))
	return times[max(0, len(times)-window):]
}

// TooFast reports whether iterations took so little time, on average, that nothing
// can have been done in them, and that average in seconds. At least ten times are
// needed, and an average of exactly the minimum is too fast, as with the CLI,
// whose minimum is 15. A minimum of 0 is never undercut.
func TooFast(times []int, minimum int) (average float64, tooFast bool) {
	if len(times) < window || minimum <= 0 {
		return 0, false
	}
	for _, t := range times {
		average += float64(t) / float64(len(times))
	}
	return average, average <= float64(minimum)
}

// Progress tells a session that gets on from one that goes round. The caller keeps
// it from one iteration to the next.
type Progress struct {
	Fingerprint string `json:"fingerprint"`
	Unchanged   int    `json:"unchanged"` // how often in a row the fingerprint was the one before
}

// See is the progress after an iteration that ended with this fingerprint.
func (p Progress) See(fingerprint string) Progress {
	if fingerprint != p.Fingerprint {
		return Progress{Fingerprint: fingerprint}
	}
	return Progress{Fingerprint: fingerprint, Unchanged: p.Unchanged + 1}
}

// Stuck reports whether nothing has changed limit times in a row. A limit of 0 is
// never reached.
func (p Progress) Stuck(limit int) bool { return limit > 0 && p.Unchanged >= limit }

// Fingerprint is the same for two iterations that ended with the same pending
// effects, in whatever order, and the same last event of the run's journal (its
// name or number). It is 64 hex digits.
func Fingerprint(pending []string, lastEvent string) string {
	h := sha256.New()
	for _, s := range append(slices.Sorted(slices.Values(pending)), lastEvent) {
		h.Write([]byte(strconv.Quote(s)))
	}
	return hex.EncodeToString(h.Sum(nil))
}
