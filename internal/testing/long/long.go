// Package long decides how often tests repeat themselves: everything once by
// default, the exhaustive rounds where HEARTBEAT_LONG is set, as .ci/run does.
package long

import (
	"os"
	"testing"
)

// Wanted reports whether the exhaustive rounds are to run.
func Wanted() bool { return os.Getenv("HEARTBEAT_LONG") != "" }

// Only skips a test that takes too long for more than the exhaustive rounds, and says why.
func Only(t testing.TB, why string) {
	t.Helper()
	if !Wanted() {
		t.Skip(why + ": HEARTBEAT_LONG=1 runs it")
	}
}

// Rounds returns few, or many for the exhaustive rounds.
func Rounds(few, many int) int {
	if Wanted() {
		return many
	}
	return few
}

// Full reports whether what takes hours is to run, too: HEARTBEAT_LONG is "full", as .ci/run has it with CI_FULL.
func Full() bool { return os.Getenv("HEARTBEAT_LONG") == "full" }

// Messages returns few, or many for the exhaustive rounds, or all with [Full]: each message of a fleet is a turn, and
// a thousand of them take a quarter of an hour.
func Messages(few, many, all int) int {
	if Full() {
		return all
	}
	return Rounds(few, many)
}
