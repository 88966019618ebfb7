package session

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
)

const (
	timedFrom = 5  // the first iteration whose duration counts: earlier ones set things up
	window    = 10 // how many durations are kept, and how many the speed guard needs
)

// Exhausted reports whether the session has used up its iterations.
func (s State) Exhausted() bool {
	return s.MaxIterations > 0 && s.Iteration >= s.MaxIterations
}

// Times are the durations of the last ten iterations, in whole seconds, with the one that
// ends now. Like the CLI it leaves out the first four iterations, and iterations of less
// than a second or with an unknown start.
func (s State) Times(now time.Time) []int {
	last, err := time.Parse(time.RFC3339, s.LastIterationAt)
	took := now.Unix() - last.Unix()
	if s.Iteration < timedFrom || err != nil || took <= 0 {
		return s.IterationTimes
	}
	times := append(slices.Clone(s.IterationTimes), int(took))
	return times[max(0, len(times)-window):]
}

// TooFast reports whether the iterations took so little time on average that no work can
// have been done, and returns that average in seconds. It needs at least ten durations. An
// average of exactly the minimum is too fast, as with the CLI, whose minimum is 15. With a
// minimum of 0 nothing is too fast.
func TooFast(times []int, minimum int) (average float64, tooFast bool) {
	if len(times) < window || minimum <= 0 {
		return 0, false
	}
	for _, t := range times {
		average += float64(t) / float64(len(times))
	}
	return average, average <= float64(minimum)
}

// Progress tells a session that makes progress from one that repeats itself. The caller
// keeps it between iterations.
type Progress struct {
	Fingerprint string `json:"fingerprint"`
	Unchanged   int    `json:"unchanged"` // how often in a row the fingerprint was the same
}

// After is the progress after an iteration that ended with this fingerprint.
func (p Progress) After(fingerprint string) Progress {
	if fingerprint != p.Fingerprint {
		return Progress{Fingerprint: fingerprint}
	}
	return Progress{Fingerprint: fingerprint, Unchanged: p.Unchanged + 1}
}

// Stuck reports whether nothing changed limit times in a row. It is false for a limit of 0.
func (p Progress) Stuck(limit int) bool { return limit > 0 && p.Unchanged >= limit }

// Fingerprint is equal for two iterations that ended with the same pending effects, in any
// order, and the same last event of the run's journal (its name or number). It has 64 hex
// digits.
func Fingerprint(pending []string, lastEvent string) string {
	h := sha256.New()
	for _, s := range append(slices.Sorted(slices.Values(pending)), lastEvent) {
		h.Write([]byte(strconv.Quote(s)))
	}
	return hex.EncodeToString(h.Sum(nil))
}
